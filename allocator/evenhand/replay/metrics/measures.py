"""measure(): everything a replay is judged by, in one frozen record."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from evenhand.replay.metrics.delivery import Delivery, capacity_by_hour, delivery, hourly
from evenhand.replay.metrics.incentive import SharingIncentive, sharing_incentive, turnover
from evenhand.replay.metrics.waits import (
    Distribution,
    WaitClass,
    completion_times,
    distribution,
    first_waits,
    slowdowns,
    wait_classes,
)
from evenhand.replay.result import IntArray, ReplayResult, RoundCounts
from evenhand.replay.rules import JobEnd

LARGE_GANG_GPUS = 128
_GPU_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class WindowEnvy:
    """Envy over many rounds, in shares of the envious group's slices; `replay.EnvyWatch` measures it.

    Attributes
    ----------
    worst : of the pair that envies most, `envious` and `envied`; 0 if none does.
    forced_by_pins : the part of it that contracts force on any plan.
    worst_ours : most of any pair that contracts do not force.
    pairs : how many envy; looks : how often the world was looked at.
    least_sharing_incentive : throughput over that of its slices, of the group that has least of it.
    """

    worst: float
    forced_by_pins: float
    worst_ours: float
    pairs: int
    envious: str | None
    envied: str | None
    looks: int
    least_sharing_incentive: float | None


@dataclass(frozen=True, slots=True)
class ReplayMetrics:
    """What a replay is judged by; shares are between 0 and 1, times in seconds, amounts in GPU-hours.

    Attributes
    ----------
    delivery : owed against received by level of the tree, from the top.
    occupancy : GPU-hours held over GPU-hours there.
    unallocated_share : GPU-hours of unallocated use over GPU-hours held.
    lost_gpu_hours : done and not kept; restart_gpu_hours : spent on starting again; lost_share : both, of all held.
    lost_allocated_share : the same of budgeted use alone (unallocated use may be stopped at once).
    priced_share : of all held, counted as rule O5 prices a stop: at most one contract, restarts included.
    turnover : how much shares swing: GPU-hours that change hands from hour to hour, over GPU-hours held.
    work_gpu_hours : done and kept, at true speed: GPUs times `done_s` (GPU-hours at a true speedup of 1).
    throughput : of it, a GPU there and hour; 1 where every GPU works all the time as a job's best type does.
    large_first_wait_s : first waits of gangs of 128 GPUs and more.
    decisions_per_s : answers the scheduler gave, over the seconds it took; None: nobody looked at a clock.
    """

    trace: str
    credit: str
    scheduler: str
    seed: int
    simulated_s: int
    gpu_hours: float
    delivery: tuple[Delivery, ...]
    occupancy: float
    unallocated_share: float
    lost_gpu_hours: float
    restart_gpu_hours: float
    lost_share: float
    lost_allocated_share: float
    priced_share: float
    jobs: dict[str, int]
    starts: int
    preemptions: int
    migrations: int
    node_losses: int
    waits_by_kind: tuple[WaitClass, ...]
    waits_by_size: tuple[WaitClass, ...]
    large_first_wait_s: Distribution
    completion_s: Distribution
    slowdown: Distribution
    sharing_incentive: SharingIncentive
    turnover: float
    work_gpu_hours: float
    throughput: float
    window_envy: WindowEnvy | None
    rounds: RoundCounts
    seconds: float | None
    decisions_per_s: float | None

    def to_json(self) -> str:
        """Write all of it, keys in order: equal metrics, equal bytes."""
        return json.dumps(asdict(self), sort_keys=True, indent=1, ensure_ascii=False) + "\n"

    def wait(self, kind: str) -> WaitClass | None:
        """Waits of one kind of jobs."""
        return next((w for w in self.waits_by_kind if w.name == kind), None)

    def level(self, depth: int) -> Delivery:
        """Owed against received at one depth of the tree, 0 at the top; negative counts from the bottom."""
        return self.delivery[depth]


def measure(
    result: ReplayResult, *, seconds: float | None = None, window_envy: WindowEnvy | None = None
) -> ReplayMetrics:
    """Work out the figures of a replay.

    Parameters
    ----------
    seconds : what the replay took, for decisions a second; the library itself looks at no clock.
    window_envy : envy over the window, if the replay had an `EnvyWatch`.
    """
    jobs, stays, end = result.jobs, result.stays, result.end_s
    hours = hourly(result)
    there = float(capacity_by_hour(result.capacity, end).sum())
    gpu_s = stays.gpus * (stays.end_s - stays.start_s)
    held = float(gpu_s.sum()) / _GPU_HOUR_S
    loose = float(gpu_s[~stays.charged].sum()) / _GPU_HOUR_S
    lost = float(jobs.lost_gpu_s.sum()) / _GPU_HOUR_S
    restarts = float(jobs.restart_gpu_s.sum()) / _GPU_HOUR_S
    work = float((jobs.size * jobs.done_s).sum()) / _GPU_HOUR_S
    by_kind, by_size = wait_classes(jobs, end)
    large = (jobs.size >= LARGE_GANG_GPUS) & (jobs.end != JobEnd.INFEASIBLE)
    return ReplayMetrics(
        trace=result.trace,
        credit=result.credit,
        scheduler=result.scheduler,
        seed=result.seed,
        simulated_s=end,
        gpu_hours=there,
        delivery=delivery(result.tree, hours),
        occupancy=held / there if there else 0.0,
        unallocated_share=loose / held if held else 0.0,
        lost_gpu_hours=lost,
        restart_gpu_hours=restarts,
        lost_share=(lost + restarts) / held if held else 0.0,
        lost_allocated_share=_share(jobs.lost_gpu_s + jobs.restart_gpu_s, jobs.budgeted, gpu_s[stays.charged]),
        priced_share=_share(jobs.priced_gpu_s + jobs.restart_gpu_s, jobs.size > 0, gpu_s),
        jobs=result.summary(),
        starts=int(jobs.starts.sum()),
        preemptions=int(jobs.preemptions.sum()),
        migrations=int(jobs.migrations.sum()),
        node_losses=int(jobs.node_losses.sum()),
        waits_by_kind=by_kind,
        waits_by_size=by_size,
        large_first_wait_s=distribution(first_waits(jobs, end)[large]),
        completion_s=distribution(completion_times(jobs)),
        slowdown=distribution(slowdowns(jobs)),
        sharing_incentive=sharing_incentive(result, hours),
        turnover=turnover(result, hours),
        work_gpu_hours=work,
        throughput=work / there if there else 0.0,
        window_envy=window_envy,
        rounds=result.rounds,
        seconds=seconds,
        decisions_per_s=result.rounds.decisions / seconds if seconds else None,
    )


def _share(lost: IntArray, chosen: npt.NDArray[np.bool_], held: IntArray) -> float:
    return float(lost[chosen].sum() / held.sum()) if held.size and held.sum() else 0.0


def lost_by_group(result: ReplayResult) -> dict[str, float]:
    """GPU-hours lost to stops and restarts, by group id."""
    known = result.jobs.group >= 0
    lost = np.bincount(
        result.jobs.group[known],
        weights=(result.jobs.lost_gpu_s + result.jobs.restart_gpu_s)[known],
        minlength=len(result.tree.ids),
    )
    return {g: float(x) / _GPU_HOUR_S for g, x in zip(result.tree.ids, lost.tolist(), strict=True)}
