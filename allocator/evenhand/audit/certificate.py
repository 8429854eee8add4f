"""A4 and the reports of groups: every number recomputed from the state, the targets and the decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evenhand.audit.decisions import Decisions
from evenhand.audit.dues import Dues
from evenhand.audit.envy import check_envy_report
from evenhand.audit.fairness import missed_by_envy
from evenhand.audit.numbers import close, slack
from evenhand.audit.pareto import check_pareto
from evenhand.audit.reading import MILLI, Reading
from evenhand.audit.report import Finding
from evenhand.audit.target import Target
from evenhand.audit.worth import GOALS, RUNS, Tally, Worth, tally, worth
from evenhand_models import CertificateStatus, GroupReport, Objective, Plan

RULE_OF_GOAL = dict(zip(GOALS, ("O1", "O2", "O3", "E1", "O4", "O5", "O6", "O7"), strict=True))
"""The rule each goal is defined by."""
PROOF_TOLERANCE = 1e-3
"""GPUs by which the bound of an optimal plan may pass its objective: what rounding to integers may cost."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What groups hold and reach under a plan, everything below them included.

    Attributes
    ----------
    counted : Tally
        The same of each group's own budgeted jobs.
    allocated, unallocated : mapping of str to mapping of str to int
        GPUs by group and type of budgeted and of unallocated jobs that run.
    throughput : mapping of str to float
        Throughput of the budgeted jobs that run.
    floor, target : mapping of str to float
        Sums of the leaves' floors and of their `V_i`.
    """

    counted: Tally
    allocated: Mapping[str, Mapping[str, int]]
    unallocated: Mapping[str, Mapping[str, int]]
    throughput: Mapping[str, float]
    floor: Mapping[str, float]
    target: Mapping[str, float]


def figures(reading: Reading, target: Target, decisions: Decisions) -> Figures:
    """Add up what the decisions give, from the bottom of the tree up."""
    order, counted = reading.tree.order, tally(reading, decisions)
    allocated = {group: {**counted.runs.get(group, {})} for group in order}
    unallocated: dict[str, dict[str, int]] = {group: {} for group in order}
    for job, choice in decisions.taken(reading):
        kind, group = choice.gpu_type, job.group
        if job.live and not job.budgeted and group is not None and choice.action in RUNS and kind is not None:
            unallocated[group][kind] = unallocated[group].get(kind, 0) + choice.gpus
    throughput = {group: counted.running.get(group, 0) / MILLI for group in order}
    floors = dict.fromkeys(order, 0.0) | {leaf.group: leaf.floor for leaf in target.leaves}
    targets = dict.fromkeys(order, 0.0) | dict(target.value)
    for group in reversed(order):
        if (above := reading.tree.parent[group]) is not None:
            for holding in (allocated, unallocated):
                for kind, gpus in holding[group].items():
                    holding[above][kind] = holding[above].get(kind, 0) + gpus
            for sums in (throughput, floors, targets):
                sums[above] += sums[group]
    return Figures(counted, allocated, unallocated, throughput, floors, targets)


def check_groups(reading: Reading, dues: Dues, seen: Figures, plan: Plan) -> Iterator[Finding]:
    """Check the numbers of every group's report (D, T2, T5, A4)."""
    share = {group.id: group.share for group in reading.state.groups}
    for report in plan.groups:
        group = report.group
        floor, reached = seen.floor[group], seen.throughput[group]
        expected = (
            ("S7", "share", report.share, share[group]),
            ("D3", "usage_gpu_hours", report.usage_gpu_hours, dues.usage[group]),
            ("D1", "demand_gpus", report.demand_gpus, dues.demand[group] / MILLI),
            ("D4", "entitled_gpus", report.entitled_gpus, dues.entitled[group]),
            ("D5", "standing", report.standing, dues.standing[group]),
            ("T2", "floor", report.floor, floor),
            ("T5", "throughput_target", report.throughput_target, seen.target[group]),
            ("A4", "throughput", report.throughput, reached),
            ("A4", "sharing_incentive", report.sharing_incentive, reached / floor if floor > 0 else None),
        )
        for rule, name, said, true in expected:
            if not close(said, true):
                yield Finding(rule, f"group {group!r} reports {name} {said}, should be {true}.", (group,))
        yield from _check_holdings(report, seen)


def _check_holdings(report: GroupReport, seen: Figures) -> Iterator[Finding]:
    """Check what a report says its group holds by type."""
    for name, said, true in (
        ("allocated", report.allocated, seen.allocated[report.group]),
        ("unallocated_use", report.unallocated_use, seen.unallocated[report.group]),
    ):
        if {kind: gpus for kind, gpus in said.items() if gpus} != {
            kind: gpus for kind, gpus in true.items() if gpus > 0
        }:
            message = f"group {report.group!r} reports {name} {dict(said)}, should be {dict(true)}."
            yield Finding("A4", message, (report.group,))


def check_certificate(
    reading: Reading, dues: Dues, target: Target, decisions: Decisions, seen: Figures, plan: Plan
) -> Iterator[Finding]:
    """Check goals, objective, bound, gap, envy and totals (A4), and the Pareto gap (T6)."""
    valued = worth(reading, dues, target, decisions, seen.counted)
    yield from _check_goals(valued, plan)
    yield from _check_bound(valued, target, plan)
    yield from _check_totals(reading, target, seen, plan)
    yield from check_pareto(reading, target, plan.certificate)
    yield from check_envy_report(reading, target, seen.counted, plan)


def _check_goals(valued: Worth, plan: Plan) -> Iterator[Finding]:
    """Every goal, in rank order, at its true value; no goal's bound below its value."""
    goals = plan.certificate.goals
    if tuple(goal.name for goal in goals) != GOALS:
        yield Finding("A4", f"the goals are {', '.join(goal.name for goal in goals)}, not those of A4.")
    for goal in goals:
        if goal.name not in RULE_OF_GOAL:
            continue
        true, weight = valued.goals[goal.name], valued.weights[goal.name]
        if not close(goal.value, true):
            message = f"goal {goal.name} says {goal.value:g}, should be {true:g}."
            yield Finding(RULE_OF_GOAL[goal.name], message)
        if abs(goal.weight - weight) > slack() * abs(weight):
            yield Finding("A4", f"goal {goal.name} weighs {goal.weight:g}, should be {weight:g}.")
        said = goal.value * goal.weight
        if goal.bound is not None and goal.bound * goal.weight < said - slack(said):
            yield Finding("A4", f"goal {goal.name} has a bound of {goal.bound:g}, below its {goal.value:g}.")


def _check_bound(valued: Worth, target: Target, plan: Plan) -> Iterator[Finding]:
    """The objective is the goals' sum, no bound is below it, and the gap is what lies between."""
    seal = plan.certificate
    if not close(seal.objective, valued.total):
        yield Finding("A4", f"the objective says {seal.objective:g}, the goals sum to {valued.total:g}.")
    total = sum(target.value.values())
    if not close(seal.target_throughput, total):
        yield Finding("T5", f"target_throughput says {seal.target_throughput:g}, should be {total:g}.")
    if seal.bound is None:
        if seal.gap is not None or seal.status is CertificateStatus.OPTIMAL:
            yield Finding("A4", "there is a gap or a proof of optimality, but no bound.")
        return
    if seal.bound < valued.total - slack(valued.total):
        yield Finding("A4", f"the bound of {seal.bound:g} is below the objective of {valued.total:g}.")
    proven = PROOF_TOLERANCE + slack(seal.objective)
    if seal.status is CertificateStatus.OPTIMAL and seal.bound - seal.objective > proven:
        yield Finding("A4", f"called optimal, but the bound is {seal.bound:g}, objective {seal.objective:g}.")
    gap = (seal.bound - seal.objective) / total if total > 0 else None
    if not close(seal.gap, gap):
        yield Finding("A4", f"the gap says {seal.gap}, should be {gap}.")


def _check_totals(reading: Reading, target: Target, seen: Figures, plan: Plan) -> Iterator[Finding]:
    """Throughput, what the target misses of floors and by envy, and the claim to keep all hard rules."""
    seal = plan.certificate
    reached = sum(seen.throughput[group] for group in reading.tree.below(None))
    if not close(seal.throughput, reached):
        yield Finding("A4", f"throughput says {seal.throughput:g}, should be {reached:g}.")
    missed = sum(max(0.0, leaf.floor - target.brings[leaf.group]) for leaf in target.leaves)
    count = len(target.leaves)
    if abs(seal.floor_slack - missed) > count * slack(missed):
        yield Finding("T2", f"floor_slack says {seal.floor_slack:g}, should be {missed:g}.")
    if reading.policy.objective is Objective.ENVY_FREE and target.leaves:
        envy = missed_by_envy(reading, target)
        if abs(seal.target_envy_slack - envy) > count**2 * slack(envy):
            yield Finding("T3", f"target_envy_slack says {seal.target_envy_slack:g}, should be {envy:g}.")
    for name in ("capacity_ok", "protection_ok", "gangs_ok"):
        if not getattr(seal, name):
            yield Finding("A4", f"the plan itself says that {name} is false.")
