"""The measured rates that docs/speedups.md quotes: who is flagged within 20 observations, audited after each."""

from __future__ import annotations

from math import log

import pytest
from speedups.rates import World, share_flagged

CHEATERS = [{"throttle": 1.5}, {"boost": 1.5}, {"throttle": 1 / 1.5}, {"boost": 1 / 1.5}]


def at_most(share: float, count: int) -> float:
    """Upper end of the 95 % interval of a rate seen as `share` of `count` runs (Wilson; 3 / n if never seen)."""
    if share == 0:
        return -log(0.05) / count
    z = 1.645
    centre = share + z * z / (2 * count)
    half = z * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5
    return (centre + half) / (1 + z * z / count)


@pytest.mark.parametrize("cheat", CHEATERS, ids=str)
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_a_cheater_of_half_as_much_again_is_flagged_within_20_observations(cheat, jobs):
    assert share_flagged(World(jobs=jobs, **cheat), range(12), every=4) == 1.0


@pytest.mark.parametrize("jobs", [1, 5])
def test_nobody_honest_is_flagged_within_20_observations_of_10_percent_noise(jobs):
    assert share_flagged(World(jobs=jobs), range(80)) == 0.0


@pytest.mark.heavy
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_fewer_than_1_in_100_honest_groups_are_ever_flagged_within_20_observations(jobs):
    count = 2000
    assert at_most(share_flagged(World(jobs=jobs), range(count)), count) < 0.01


@pytest.mark.heavy
def test_fewer_than_1_in_100_honest_groups_are_ever_flagged_within_400_observations():
    count = 600
    assert at_most(share_flagged(World(), range(count), most=400, every=10), count) < 0.01


@pytest.mark.heavy
@pytest.mark.parametrize("cheat", CHEATERS, ids=str)
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_of_cheaters_of_half_as_much_again_99_in_100_are_flagged_within_20_observations(cheat, jobs):
    assert share_flagged(World(jobs=jobs, **cheat), range(500), every=2) >= 0.99
