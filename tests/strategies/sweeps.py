"""Holding a law against many seeded clusters: failures are counted, the first ones named by their seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import reject

from evenhand_models import ClusterState, Policy
from strategies.clusters import random_state
from strategies.rules import random_policy

Law = Callable[[ClusterState, Policy], object]
"""Raises AssertionError where it does not hold; may return a word to be counted."""
NAMED = 5


class Unfit(Exception):
    """A law has nothing to say about this cluster; counted, never taken for a success."""


def case(seed: int, profile: str) -> tuple[ClusterState, Policy]:
    """Return the cluster and the policy of a seed."""
    rng = Random(seed)
    state = random_state(rng, profile)
    return state, random_policy(rng, state)


def sweep(law: Law, count: int, profile: str, most_unfit: float = 0.0) -> Counter[str]:
    """Hold a law against the clusters of the seeds 0 to count - 1.

    Parameters
    ----------
    most_unfit : share of clusters about which the law may have nothing to say; more of them fail the sweep.
    """
    seen: Counter[str] = Counter()
    broken: list[str] = []
    for seed in range(count):
        try:
            seen[str(law(*case(seed, profile)) or "holds")] += 1
        except Unfit as why:
            seen[f"unfit: {why}"] += 1
        except Exception as reason:  # noqa: BLE001  a crash breaks the law as well, and its seed is wanted
            seen["broken"] += 1
            broken.append(f"seed {seed}: {type(reason).__name__}: {str(reason)[:500]}")
    said = dict(sorted(seen.items()))
    print(f"{getattr(law, '__name__', 'law')} on {count} {profile} clusters: {said}")
    if broken:
        head = f"{len(broken)} of {count} {profile} clusters break the law"
        pytest.fail("\n".join([head, *broken[:NAMED]]))
    unfit = sum(n for word, n in seen.items() if word.startswith("unfit"))
    assert unfit <= most_unfit * count, f"the law says nothing about {unfit} of {count}: {said}"
    return seen


def hold(law: Law, state: ClusterState, policy: Policy) -> None:
    """Hold a law against one cluster that Hypothesis drew; where it says nothing, another is drawn."""
    try:
        law(state, policy)
    except Unfit:
        reject()
