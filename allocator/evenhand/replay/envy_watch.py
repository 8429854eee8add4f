"""Envy over the window of a replay, whoever decides: the world looked at now and then, as a round would see it."""

from __future__ import annotations

import numpy as np

from evenhand.entitlement import entitle
from evenhand.fairness.group_value import FloatArray, GroupValues, group_values
from evenhand.fairness.pins import pinned_split
from evenhand.replay.metrics.measures import WindowEnvy
from evenhand.replay.schedulers.engine.full_round import state_of
from evenhand.replay.world import World
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand.window_envy import EnvyWindow, WindowPair, forced_envy

LOOKS = 120
"""How often a watch looks by itself: often enough for means over the period, and cheap beside the rounds."""
LEAST_TOGETHER = 12
"""Pairs that were owed something together at fewer looks are too few to judge; where there are fewer looks, all count."""
HOUR_S = 3_600


class EnvyWatch:
    """Looks at the world at equal distances and adds envy up.

    What groups are owed, and what GPUs are worth to them, is what the policy of the replay says, from what jobs
    declare: comparators are held to the same. A pair's envy is a share of the envious group's floors; forced is
    what contracts force on any scheduler that honours them.

    Parameters
    ----------
    every_s : seconds between two looks, the first after so many.
    """

    def __init__(self, every_s: int) -> None:
        self._every = every_s
        self._window = EnvyWindow()
        self.due_s = every_s

    @classmethod
    def over(cls, end_s: int) -> EnvyWatch:
        """A watch for a period of that length, by whole hours."""
        return cls(max(1, -(-end_s // (LOOKS * HOUR_S))) * HOUR_S)

    def look(self, world: World) -> None:
        """Count the world as it stands; its clock shows `due_s`."""
        self.due_s += self._every
        if not any(any(row) for row in world.wanted_milli.values()):
            return
        s = take_snapshot(state_of(world, world.t0), world.policy)
        values, job_class = group_values(s, entitle(s))
        if not len(values.leaves):
            return
        held, reached = _holdings(s, values)
        forced = forced_envy(values, values.slices, pinned_split(s, values, job_class))
        self._window.count(s.tree.ids, values, held, reached, forced)

    def result(self) -> WindowEnvy | None:
        """What the looks so far come to; None if nobody was owed anything at any of them."""
        found = self._window.report()
        if not found.rounds:
            return None
        least = min(LEAST_TOGETHER, found.rounds)
        pairs = [pair for pair in found.pairs if pair.rounds >= least]
        worst = max(pairs, key=lambda pair: pair.envy, default=None)
        return WindowEnvy(
            worst=_of(worst, "envy"),
            forced_by_pins=_of(worst, "forced_by_pins"),
            worst_ours=max((pair.ours for pair in pairs), default=0.0),
            pairs=len(pairs),
            envious=None if worst is None else worst.group,
            envied=None if worst is None else worst.envied,
            looks=found.rounds,
            least_sharing_incentive=found.least_sharing_incentive,
        )


def _of(pair: WindowPair | None, figure: str) -> float:
    return 0.0 if pair is None else float(getattr(pair, figure))


def _holdings(s: Snapshot, values: GroupValues) -> tuple[FloatArray, FloatArray]:
    """What budgeted jobs of the leaves hold, GPUs [L, T], and their declared throughput, [L]."""
    place = np.full(len(s.tree.ids), -1, dtype=np.int64)
    place[values.leaves] = np.arange(len(values.leaves))
    jobs: IntArray = np.flatnonzero(s.running & s.budgeted & (s.held_type >= 0))
    at, kind = place[s.group[jobs]], s.held_type[jobs]
    known = at >= 0
    jobs, at, kind = jobs[known], at[known], kind[known]
    held = np.zeros(values.slices.shape)
    np.add.at(held, (at, kind), s.held[jobs])
    reached = np.zeros(len(values.leaves))
    np.add.at(reached, at, s.held[jobs] * s.speed_milli[jobs, kind] / 1000.0)
    return held, reached
