"""Which gangs are owed whole (rule O3), worked out by hand."""

from __future__ import annotations

import pytest
from entitlement.built import group, jobs, snapshot

from evenhand.entitlement import entitle
from evenhand.owed_gangs import owed_gangs

ABC = [group("a"), group("b"), group("c")]


@pytest.mark.parametrize(
    ("gang", "asks", "owed"),
    [
        (64, 4, True),  # a is owed the 4 it asks for: 64 fit beside them
        (96, 4, False),  # 96 do not, and a stands first
        (92, 4, True),
        (64, 90, False),  # a wants more than its share of 96 and stands first
    ],
)
def test_who_is_owed_all_it_asks_for_stands_in_the_way_only_of_what_does_not_fit_beside_it(
    gang: int, asks: int, owed: bool
) -> None:
    work = [*jobs("a", asks), *jobs("b", 1, gang), *jobs("c", 96)]
    s = snapshot({"h100": 96}, ABC, work, usage={"b": 1_000.0, "c": 2_000.0, "a": 0.0}, node=8)
    found = [s.jobs[j].id for j in owed_gangs(s, entitle(s))]
    assert found == ([f"b-h100-{gang}-00000"] if owed else [])
