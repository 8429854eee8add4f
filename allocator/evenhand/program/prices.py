"""What each move is worth in goals O4 to O7, and the weights of the ranked goals.

Every change costs something and costs obey the triangle inequality, so that a proven plan is a fixed point (rule A3).
All figures are in GPUs at the job's best type for `lookahead_s`. Scaling to integers happens here and nowhere else:
one unit is `SCALE` in the solver, so a coefficient is off by less than 0.5e-8 and the objective by that times the moves made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.shapes import BoolArray, IntArray
from evenhand.snapshot import Snapshot

FloatArray = npt.NDArray[np.float64]
SCALE = 160_000_000
WEIGHT_CLAIM = 300.0
"""Above what a stop may cost at the default weight of lost work: a gang that holds ten times what is owed makes way."""
WEIGHT_DEBUG = 3.0
"""What a GPU of a debug run weighs at least: about twenty minutes of lost work and its restart (docs/defaults.md)."""
WEIGHT_ENVY = 1 / 16
MOST_HEIGHT = 10
"""Levels above this weigh alike: the sums must stay whole numbers that a solver can hold."""
PRESENCE = 1 / 16
PRIORITY = 1 / 2
AGE_STEP = 1 / 224
STOP = 1 / 16
RESIZE = 1 / 256


def height_factor(height: int) -> float:
    """How much more a GPU short weighs at an inner group of this height than at a leaf (O2)."""
    return 2.0 ** min(height, MOST_HEIGHT)


def guarantee_weight(top_height: int) -> float:
    """Weight of a charged GPU short of a guarantee (O1): above every inner level."""
    return 2 * WEIGHT_CLAIM * height_factor(top_height)


@dataclass(frozen=True)
class Worth:
    """One move's part of the goals: order (O4), work (O5), least change (O6); budgeted or not (O7)."""

    order: float = 0.0
    work: float = 0.0
    change: float = 0.0

    @property
    def total(self) -> float:
        """The sum; every goal has weight 1."""
        return self.order + self.work + self.change

    def __add__(self, other: Worth) -> Worth:
        return Worth(self.order + other.order, self.work + other.work, self.change + other.change)


@dataclass(frozen=True, eq=False)
class Worths:
    """The same of many moves, each float [m]; every figure is what `Worth` would say, to the last bit."""

    order: FloatArray
    work: FloatArray
    change: FloatArray

    @property
    def total(self) -> FloatArray:
        """The sums."""
        return self.order + self.work + self.change

    def __add__(self, other: Worths) -> Worths:
        return Worths(self.order + other.order, self.work + other.work, self.change + other.change)

    def __neg__(self) -> Worths:
        return Worths(-self.order, -self.work, -self.change)

    def where(self, some: BoolArray) -> Worths:
        """Nothing but for some."""
        return Worths(*(np.where(some, part, 0.0) for part in (self.order, self.work, self.change)))


def scaled(values: FloatArray) -> IntArray:
    """Figures of goals as a solver's whole numbers.

    Raises
    ------
    OverflowError
        If one is too large to be counted in them.
    """
    found = np.rint(values * SCALE)
    if not (np.abs(found) < 2.0**63).all():
        raise OverflowError("a price is too large to be counted in whole numbers")
    return found.astype(np.int64)


class Prices:
    """Prices of moves under one snapshot (rules O4 to O7)."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._s = snapshot
        lookahead = float(snapshot.policy.lookahead_s)
        self._lookahead = lookahead
        self.started_share = 1.0 - min(1.0, snapshot.policy.restart_cost_s / lookahead)
        self.epsilon = 1.0 / (64.0 * snapshot.total_gpus) if snapshot.total_gpus else 0.0

    def factor(self, job: int) -> float:
        """1 for budgeted work, epsilon for unallocated (O7)."""
        return 1.0 if self._s.budgeted[job] else self.epsilon

    def order(self, job: int, gpus: int) -> float:
        """O4 for a job that runs on so many GPUs."""
        s = self._s
        return gpus * (PRESENCE + PRIORITY * float(s.level[job]) + AGE_STEP * int(s.age_step[job]))

    def runs(self, job: int, gpu_type: int, gpus: int, *, arrives: bool) -> Worth:
        """A job that holds so many GPUs of a type afterwards: newly there, or kept in place."""
        s = self._s
        speed = int(s.speed_milli[job, gpu_type]) / 1000.0 if gpu_type >= 0 else 0.0
        share = min(1.0, max(0.0, float(s.left_s[job])) / self._lookahead)
        if arrives:
            share = min(share, self.started_share)
        return Worth(self.order(job, gpus), gpus * speed * share)

    def lost(self, job: int) -> float:
        """Work lost by stopping a running job, in GPU-lookaheads, weighted (O5)."""
        s = self._s
        lost = float(s.lost_s[job]) / self._lookahead * s.policy.lost_work_weight
        return int(s.held[job]) * s.held_speed_milli(job) / 1000.0 * lost

    def stops(self, job: int) -> Worth:
        """A preempted job (O5, O6); one whose node was lost pays no more than for a move."""
        s = self._s
        held = int(s.held[job])
        if s.hit[job]:
            return Worth(0.0, 0.0, -held * STOP)
        work = -self.lost(job)
        if not s.jobs[job].contract.resumable:
            work -= held * s.held_speed_milli(job) / 1000.0
        return Worth(0.0, work, -held * (STOP + PRIORITY * (1.0 - float(s.level[job]))))

    def moves_away(self, job: int) -> Worth:
        """What leaving its place costs a migrated job, beside the start it pays (a hit job has nothing left to lose)."""
        return Worth(0.0, -self.lost(job), -STOP * int(self._s.held[job]))

    def resizes(self, gpus_before: int, gpus_after: int) -> Worth:
        """Growing or shrinking in place."""
        return Worth(0.0, 0.0, -RESIZE * abs(gpus_after - gpus_before))

    def repairs(self, replaced: int) -> Worth:
        """Replacing lost GPUs of a hit job."""
        return Worth(0.0, 0.0, -STOP * replaced)

    def handover(self, level_count: int) -> float:
        """Credit for a GPU taken over by a higher priority of the same group, across one cut (O4)."""
        return PRIORITY / (level_count - 1)

    def factors(self, jobs: IntArray) -> FloatArray:
        """`factor` of jobs."""
        return np.where(self._s.budgeted[jobs], 1.0, self.epsilon)

    def all_run(self, jobs: IntArray, types: IntArray, gpus: IntArray, arrive: BoolArray) -> Worths:
        """`runs` of jobs."""
        s = self._s
        order = np.asarray(gpus * (PRESENCE + PRIORITY * s.level[jobs] + AGE_STEP * s.age_step[jobs]), dtype=np.float64)
        speed = self._speed(jobs, types) / 1000.0
        share = np.minimum(1.0, np.maximum(0.0, s.left_s[jobs]) / self._lookahead)
        share = np.where(arrive, np.minimum(share, self.started_share), share)
        return Worths(order, gpus * speed * share, np.zeros(len(jobs)))

    def _speed(self, jobs: IntArray, types: IntArray) -> IntArray:
        """Throughput of one GPU of a type in thousandths, 0 where it is unknown."""
        found = np.zeros(len(jobs), dtype=np.int64)
        known = types >= 0
        found[known] = self._s.speed_milli[jobs[known], types[known]]
        return found

    def _held_speed(self, jobs: IntArray) -> FloatArray:
        """Throughput of what jobs hold, in GPUs."""
        s = self._s
        return np.asarray(s.held[jobs] * self._speed(jobs, s.held_type[jobs]) / 1000.0)

    def all_lost(self, jobs: IntArray) -> FloatArray:
        """`lost` of jobs."""
        s = self._s
        return self._held_speed(jobs) * (s.lost_s[jobs] / self._lookahead * s.policy.lost_work_weight)

    def all_stop(self, jobs: IntArray) -> Worths:
        """`stops` of jobs."""
        s = self._s
        hit, held = s.hit[jobs], s.held[jobs]
        work = -self.all_lost(jobs) - np.where(s.resumable[jobs], 0.0, self._held_speed(jobs))
        change = -held * np.where(hit, STOP, STOP + PRIORITY * (1.0 - s.level[jobs]))
        return Worths(np.zeros(len(jobs)), np.where(hit, 0.0, work), np.asarray(change, dtype=np.float64))

    def all_move_away(self, jobs: IntArray) -> Worths:
        """`moves_away` of jobs."""
        change = np.asarray(-STOP * self._s.held[jobs], dtype=np.float64)
        return Worths(np.zeros(len(jobs)), -self.all_lost(jobs), change)
