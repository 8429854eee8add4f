"""Gavel's max-min fairness (OSDI'20) as programs of our own for cvxpy and Clarabel, beside `allocate` and its target.

Jobs hold a part of the time on each type, at most all of it together; what counts is a job's throughput over that of an
equal share of the cluster, times a weight: its leaf's entitlement over the leaf's jobs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import process_time
from typing import Any

import numpy as np

import evenhand.deadline
from evenhand import allocate
from evenhand.entitlement import entitle
from evenhand.fairness.group_value import FloatArray, GroupValues, value_of
from evenhand.fairness.max_min import max_min
from evenhand.fairness.target import fair_target
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand_models import AllocateRequest

_HELD = 1e-6
"""Price of the level, as a part of all prices, from which on a job cannot rise in any optimum (Clarabel ends between
all optima, so that every such job has one)."""
_STEP = 1e-3
"""Who can rise no more by this part of the level is held, where a mixed-integer program decides."""


@dataclass(frozen=True)
class Filled:
    """What one water filling took: jobs, levels, whether it came to an end within its time, CPU seconds."""

    jobs: int
    levels: int
    finished: bool
    cpu_s: float


@dataclass(frozen=True)
class BesideGavel:
    """What was measured on one state.

    Attributes
    ----------
    by_choice, by_price : the lexicographic program over jobs, those that can rise no more found by a mixed-integer
        program as Gavel does, or by prices.
    allocate_s : CPU seconds of an audited plan under a limit of `limit_s`; gap : its proven one.
    least, our_least : least throughput over floor of a leaf, by Gavel's program over the same leaves, and in our target.
    """

    by_choice: Filled
    by_price: Filled
    allocate_s: float
    limit_s: float
    gap: float | None
    least: float
    our_least: float


def beside_gavel(request: AllocateRequest, limit_s: float, most_s: float) -> dict[str, Any]:
    """Measure one state, in this process."""
    evenhand.deadline.perf_counter = process_time  # type: ignore[attr-defined]  limits in CPU seconds
    policy = request.effective_policy.model_copy(update={"time_limit_s": limit_s})
    start = process_time()
    plan = allocate(request.state, policy)
    took = process_time() - start
    s = take_snapshot(request.state, policy)
    entitled = entitle(s)
    values = fair_target(s, entitled).values
    ways = [water_filling(s, entitled.leaf_entitled, most_s, by_choice=how) for how in (True, False)]
    return asdict(BesideGavel(*ways, took, limit_s, plan.certificate.gap, least_served(values), _our_least(values)))


def _our_least(values: GroupValues) -> float:
    served = values.floor > 0
    found, _ = max_min(values)
    return float((value_of(values, found)[served] / values.floor[served]).min())


def least_served(values: GroupValues) -> float:
    """The least throughput over floor that any leaf need have, by Gavel's linear program over job classes of leaves."""
    import cvxpy as cp

    held, level = cp.Variable(values.weights.shape, nonneg=True), cp.Variable()
    served = np.flatnonzero(values.floor > 0)
    member = (values.of[None, :] == served[:, None]).astype(float)
    rules = [
        cp.sum(held, axis=1) <= values.cap.astype(float),
        cp.sum(held, axis=0) <= values.capacity.astype(float),
        member @ cp.sum(cp.multiply(values.weights, held), axis=1) >= cp.multiply(values.floor[served], level),
    ]
    cp.Problem(cp.Maximize(level), rules).solve(solver=cp.CLARABEL)
    return float(level.value)


def water_filling(s: Snapshot, leaf_entitled: FloatArray, most_s: float, *, by_choice: bool) -> Filled:
    """Raise all jobs together until some can rise no more, hold these, raise the others.

    Parameters
    ----------
    by_choice : whether a mixed-integer program finds who can rise no more, as Gavel does (HiGHS); else the prices of
        the level do, in the same linear program.
    """
    import cvxpy as cp

    jobs = np.flatnonzero(s.budgeted)
    size, speed = s.size[jobs].astype(float), s.speed_milli[jobs] / 1000
    count = np.bincount(s.group[jobs], minlength=len(s.tree.ids))[s.group[jobs]]
    weight = np.maximum(leaf_entitled[s.group[jobs]] / count, 1e-6)
    equal = (speed * s.capacity).sum(axis=1) / max(1, s.capacity.sum())
    measure = weight * equal / np.mean(weight * equal)
    time, level, more = cp.Variable(speed.shape, nonneg=True), cp.Variable(), cp.Variable(len(jobs), boolean=True)
    rises, reached = cp.Parameter(len(jobs), nonneg=True), cp.Parameter(len(jobs), nonneg=True)
    through = cp.sum(cp.multiply(speed * size[:, None], time), axis=1)
    shared = [cp.sum(time, axis=1) <= 1, size @ time <= s.capacity.astype(float)]
    floor = through >= cp.multiply(rises, level) + reached
    raised = cp.Problem(cp.Maximize(level), [*shared, floor])
    higher = cp.Problem(cp.Maximize(cp.sum(more)), [*shared, through >= reached + cp.multiply(rises, more)])
    rising, levels, held = np.ones(len(jobs), dtype=bool), 0, np.zeros(len(jobs))
    start = process_time()
    while rising.any() and process_time() - start < most_s:
        rises.value, reached.value = np.where(rising, measure, 0.0), np.where(rising, 0.0, held)
        raised.solve(solver=cp.CLARABEL)
        levels += 1
        at = measure * float(level.value) * (1 - 1e-6)
        if by_choice:
            reached.value = np.where(rising, at, held)
            rises.value = np.where(rising, _STEP * measure * float(level.value), 0.0)
            higher.solve(solver=cp.SCIPY)  # HiGHS's branch and bound, without its banner
            if more.value is None:
                raise RuntimeError(f"the mixed-integer program is {higher.status}")
            stuck = rising & (more.value < 0.5)
        else:
            price = np.where(rising, np.abs(floor.dual_value) * measure, 0.0)
            stuck = price > _HELD * price.sum()
        if not stuck.any():
            break
        held[stuck] = at[stuck]
        rising &= ~stuck
    return Filled(len(jobs), levels, not rising.any(), process_time() - start)


def section(rows: list[dict[str, Any]]) -> list[str]:
    """The part of the page that shows what was measured."""
    measured = [row for row in rows if row.get("gavel")]
    if not measured:
        return []
    lines = [
        "",
        "## Beside Gavel's max-min fairness",
        "",
        "Gavel's lexicographic water filling over jobs as programs of our own (cvxpy): a linear one a level (Clarabel), and",
        "who can rise no more found by a mixed-integer one as Gavel does (HiGHS), or by prices. CPU seconds for the fractional",
        "answer alone, against `allocate` for an integer plan, placed and audited, under a short limit; and the least",
        "throughput over floor of a leaf, by Gavel's linear program over the same leaves and in our `max_min` target.",
        "",
        "| " + " | ".join(_COLUMNS) + " |",
        "| " + " | ".join(["---"] * len(_COLUMNS)) + " |",
    ]
    for row in measured:
        g = row["gavel"]
        ways = [g["by_choice"], g["by_price"]]
        filled = [f"{'' if way['finished'] else 'more than '}{way['cpu_s']:.1f}" for way in ways]
        ratios = [f"{way['cpu_s'] / g['allocate_s']:.3g}" for way in ways]
        gap = "-" if g["gap"] is None else f"{100 * g['gap']:.3g}"
        cells = (
            row["size"], row["corner"], row["seed"], ways[1]["jobs"], ways[1]["levels"], *filled, f"{g['allocate_s']:.2f}",
            f"{g['limit_s']:g}", gap, *ratios, f"{g['least']:.8f}", f"{g['our_least']:.8f}",
        )  # fmt: skip
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


_COLUMNS = (
    "size", "contention", "seed", "jobs", "levels", "mixed-integer s", "prices s", "allocate s", "limit s", "gap %",
    "mixed-integer / allocate", "prices / allocate", "least", "our least",
)  # fmt: skip
