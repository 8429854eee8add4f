"""The whole program of a round: ways, limits, wishes, envy and victims."""

from __future__ import annotations

from evenhand.crosscheck.crews import crews_of
from evenhand.crosscheck.draft import Draft
from evenhand.crosscheck.facts import Facts
from evenhand.crosscheck.leaving import add_limits, add_victims
from evenhand.crosscheck.ways import add_ways
from evenhand.crosscheck.wishes import add_envy, add_wishes


def write(facts: Facts) -> Draft:
    """Write the program of a round."""
    draft = Draft(facts, crews_of(facts))
    add_ways(draft)
    add_limits(draft)
    add_wishes(draft)
    add_envy(draft)
    add_victims(draft)
    return draft
