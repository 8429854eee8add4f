"""How a replay went over time, in at most a few hundred points: what plots are drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.replay.metrics.delivery import capacity_by_hour, hourly
from evenhand.replay.metrics.incentive import sharing_incentive
from evenhand.replay.metrics.integrals import by_hour
from evenhand.replay.result import ReplayResult
from evenhand.replay.rules import JobEnd
from evenhand.tree import ROOT

FloatArray = npt.NDArray[np.float64]
POINTS = 360
"""Most points of a line."""
MOST_GROUPS = 24
"""Most groups that get a line; those owed most come first."""


def series_of(result: ReplayResult) -> dict[str, Any]:
    """Averages over equal steps of whole hours.

    Returns
    -------
    dict
        `step_h`: hours a point stands for; `capacity`, `held`, `unallocated`, `waiting` (GPUs that wait for
        their first start): mean GPUs; `working`: GPUs at true speed (work an hour); `incentive`: throughput of
        groups, at most that of their slices, over that of their slices, None where nobody had one; `groups`: by
        id `owed` and `received`, mean charged GPUs, groups at the top of the tree, or one level further down
        where the top holds one group.
    """
    end = result.end_s
    hours = max(1, -(-end // 3_600))
    step = -(-hours // POINTS)
    stays, jobs = result.stays, result.jobs
    none = np.zeros(len(stays.job), dtype=np.int64)
    held = by_hour(stays.start_s, stays.end_s, stays.gpus, none, 1, end)[0] / 3_600
    loose = by_hour(stays.start_s, stays.end_s, stays.gpus * ~stays.charged, none, 1, end)[0] / 3_600
    could = jobs.end != JobEnd.INFEASIBLE
    begun = np.where(jobs.first_start_s >= 0, jobs.first_start_s, end)[could]
    nobody = np.zeros(int(could.sum()), dtype=np.int64)
    waiting = by_hour(jobs.submit_s[could], begun, jobs.size[could], nobody, 1, end)[0] / 3_600
    account = hourly(result)
    shown = _shown(result, account.owed)
    return {
        "step_h": step,
        "capacity": _means(capacity_by_hour(result.capacity, end).sum(axis=0), step),
        "held": _means(held, step),
        "unallocated": _means(loose, step),
        "waiting": _means(waiting, step),
        "working": _means(_working(result), step),
        "incentive": _ratios(sharing_incentive(result, account).by_hour, step),
        "groups": {
            result.tree.ids[c]: {
                "owed": _means(account.owed[c], step),
                "received": _means(account.received[c], step),
            }
            for c in shown
        },
    }


def _working(result: ReplayResult) -> FloatArray:
    """GPUs held by hour, each at its true speed, float [H]."""
    stays = result.stays
    none = np.zeros(len(stays.job), dtype=np.int64)
    work = stays.gpus * result.jobs.speed_milli[stays.job, stays.gpu_type] if stays.job.size else stays.gpus
    return np.asarray(by_hour(stays.start_s, stays.end_s, work, none, 1, result.end_s)[0] / 3_600_000)


def _ratios(by_hour: tuple[float | None, ...], step: int) -> list[float | None]:
    """Means of what is known in each step, None where nothing is."""
    steps = [[x for x in by_hour[i : i + step] if x is not None] for i in range(0, len(by_hour), step)]
    return [round(sum(known) / len(known), 4) if known else None for known in steps]


def _shown(result: ReplayResult, owed: FloatArray) -> list[int]:
    """Groups whose accounts are drawn."""
    tree = result.tree
    chosen = list(tree.top)
    while len(chosen) == 1 and tree.children[chosen[0]]:
        chosen = list(tree.children[chosen[0]])
    ranked = sorted(chosen, key=lambda c: (-float(owed[c].sum()), tree.ids[c]))
    assert ROOT not in ranked
    return ranked[:MOST_GROUPS]


def _means(values: FloatArray, step: int) -> list[float]:
    """Means over steps of so many hours, to three decimals."""
    starts = np.arange(0, len(values), step)
    lengths = np.minimum(step, len(values) - starts)
    return [round(float(x), 3) for x in np.add.reduceat(values, starts) / lengths] if len(values) else []
