"""How often honest groups are accused and cheaters found, audit after audit as observations come in.

A world is one group with `jobs` jobs that run on a slow and a fast type in turn. After each observation an
operator audits, and takes note of the first flag: over- or underdeclared, of the group or of one of its jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from cases.states import cluster, job

from evenhand.speedups import audit_speedups
from evenhand_models import Observation, SpeedupAuditRequest, SpeedupFlag, SpeedupPolicy

WRONG = {SpeedupFlag.OVERDECLARED, SpeedupFlag.UNDERDECLARED}
SLOW, FAST = "slow", "fast"


@dataclass(frozen=True)
class World:
    """How a group behaves.

    Attributes
    ----------
    throttle : what it divides its pace on the fast type by; boost : what it multiplies its pace on the slow type by.
    noise : standard deviation of the logarithm of a rate; stalls : share of observations at a tenth of the pace.
    profile_error : standard deviation of the logarithm of what is honestly declared about the truth.
    """

    jobs: int = 1
    throttle: float = 1.0
    boost: float = 1.0
    noise: float = 0.1
    stalls: float = 0.0
    profile_error: float = 0.0


def first_flag(world: World, seed: int, most: int = 20, every: int = 1) -> int | None:
    """Observations after which the group or a job of it is flagged first; None: never within `most`."""
    rng = np.random.default_rng(seed)
    work, pace = [], []
    for i in range(world.jobs):
        true = {SLOW: 1.0, FAST: float(np.exp(rng.uniform(0.1, 2.0)))}
        off = float(np.exp(rng.normal(0, world.profile_error)))
        work.append(job(f"j{i}", "A", 2, speedup={SLOW: true[SLOW], FAST: true[FAST] * off}))
        unit = float(np.exp(rng.uniform(-9, 9)))
        pace.append({SLOW: unit * true[SLOW] * world.boost, FAST: unit * true[FAST] / world.throttle})
    state = cluster("1x8 slow, 1x8 fast", {"A": 1}, work)
    seen: list[Observation] = []
    for n in range(1, most + 1):
        i, gpu_type = ((n - 1) // 2) % world.jobs, (SLOW, FAST)[(n - 1) % 2]
        seconds = float(rng.uniform(120, 7200))
        rate = pace[i][gpu_type] * float(np.exp(rng.normal(0, world.noise)))
        rate *= 0.1 if rng.random() < world.stalls else 1.0
        seen.append(Observation(job=f"j{i}", gpu_type=gpu_type, gpus=2, work_done=rate * 2 * seconds, seconds=seconds))
        if n % every == 0 or n == most:
            report = audit_speedups(SpeedupAuditRequest(state=state, observations=tuple(seen), policy=SpeedupPolicy()))
            own = [ratio for entry in report.jobs for ratio in entry.measured]
            if any(entry.flag in WRONG for entry in (*report.groups, *own)):
                return n
    return None


def share_flagged(world: World, seeds: Iterable[int], most: int = 20, every: int = 1) -> float:
    """Share of worlds in which somebody is flagged within so many observations, whoever audits after each."""
    found = [first_flag(world, seed, most, every) is not None for seed in seeds]
    return sum(found) / len(found)
