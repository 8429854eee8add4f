"""allocate(): the one way to decide. State and policy in, an audited plan out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.assignments import assignments
from evenhand.audit import audit
from evenhand.certify import certificate
from evenhand.collector import collector_at_rest
from evenhand.deadline import Deadline
from evenhand.entitlement import Entitlement, entitle
from evenhand.errors import AuditFailed, PlacementError, SolverError
from evenhand.explain import explain, unlocks
from evenhand.fairness.target import Target, fair_target, forced_slack
from evenhand.goals import FloatArray, goals, standing
from evenhand.greedy import greedy, top_up
from evenhand.oddities import warnings_of
from evenhand.outcome import Outcome
from evenhand.owed_gangs import owed_gangs
from evenhand.program.formulate import formulate
from evenhand.program.index import Index, build_index
from evenhand.program.solve import Solved, solve
from evenhand.reports import group_reports
from evenhand.restore import restore
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand.version import VERSION
from evenhand_models import (
    CertificateStatus,
    ClusterState,
    Plan,
    PlanWarning,
    Policy,
    SolverReport,
    WarningCode,
    seal,
    state_hash,
)

RESERVE_SHARE = 0.04
RESERVE_OF_SPENT = 0.9
RESERVE_PER_PAIR_S = 4e-7
"""Kept for words, audit and sealing: a share of the limit, as much again as reading and building took (which measures
both the state and the machine), and what comparing every pair of groups takes."""

FORMULATE_PER_INDEX = 3.0
"""Building the program takes about this many times what its index took."""


@dataclass(frozen=True, eq=False)
class _Round:
    snapshot: Snapshot
    entitled: Entitlement
    target: Target
    owed: tuple[int, ...]
    index: Index
    forced: FloatArray


def allocate(state: ClusterState, policy: Policy | None = None) -> Plan:
    """Decide one round: for every job start, keep, migrate, resize, preempt or wait, on which nodes, and why.

    Parameters
    ----------
    state : the cluster, validated at birth; `state.now` is the only clock the decision knows.
    policy : rules of the round; defaults if left out.

    Returns
    -------
    Plan
        Verified by the independent audit, within `policy.time_limit_s` (+10 %) of the call. Equal input, equal plan
        (`solver` timings aside) unless `certificate.cut_by_time` says that the clock had to end the search.

    Raises
    ------
    InvalidInput
        If the policy asks for what the state or this version cannot give.
    AuditFailed
        If not even the greedy plan passes the audit: a defect, nothing is served.
    """
    policy = policy or Policy()
    with collector_at_rest():
        return _allocate(state, policy, Deadline(policy.time_limit_s))


def _allocate(state: ClusterState, policy: Policy, deadline: Deadline) -> Plan:
    with deadline.stage("read"):
        snapshot = take_snapshot(state, policy)
    with deadline.stage("entitle"):
        entitled = entitle(snapshot)
        owed = owed_gangs(snapshot, entitled)
    with deadline.stage("target"):
        target = fair_target(snapshot, entitled)
        forced = forced_slack(target, _pinned_bundles(snapshot, target))
    with deadline.stage("index"):
        index = build_index(snapshot, owed)
    with deadline.stage("greedy"):
        first = greedy(snapshot, entitled, index)
    the_round = _Round(snapshot, entitled, target, owed, index, forced)
    trouble: str | None = None
    try:
        plan = _write(the_round, _better(the_round, _searched(the_round, first, deadline)), deadline)
        report = audit(state, plan, policy)
        trouble = None if report.ok else f"its audit found {report.findings[0].rule}: {report.findings[0].message}"
    except (PlacementError, SolverError, OverflowError) as defect:
        trouble = str(defect)
    if trouble is None:
        return seal(plan)
    plan = _write(the_round, Solved(first, None, False, False, {}), deadline, fallback=trouble)
    report = audit(state, plan, policy)
    if not report.ok:
        raise AuditFailed(report.findings[0].rule, report.findings[0].message)
    return seal(plan)


def _searched(the_round: _Round, first: Outcome, deadline: Deadline) -> Solved:
    """The best outcome that the time left allows: the first one, if not even a program can be built."""
    r = the_round
    reserve = _reserve_s(deadline, r.target, len(r.snapshot.tree.ids))
    if deadline.left_s - reserve < FORMULATE_PER_INDEX * deadline.stages_ms["index"] / 1000:
        return Solved(first, None, False, True, {})
    with deadline.stage("formulate"):
        program, counted = formulate(r.snapshot, r.entitled, r.target, r.owed, r.index)
    return solve(program, counted, first, deadline, reserve)


def _reserve_s(deadline: Deadline, target: Target, groups: int) -> float:
    """Seconds to keep for what comes after the search."""
    pairs = len(target.leaves) * (len(target.leaves) + groups)
    spent = RESERVE_OF_SPENT * deadline.spent_s
    return RESERVE_SHARE * deadline.limit_s + spent + RESERVE_PER_PAIR_S * pairs


def _better(the_round: _Round, solved: Solved) -> Solved:
    """The solver's outcome; if it is not proven, with nobody stopped for nothing and nothing left idle for nothing."""
    outcome = Outcome(solved.outcome.decisions, optimal=True)
    if not solved.optimal:
        outcome = top_up(
            the_round.snapshot, the_round.entitled, the_round.index, restore(the_round.snapshot, solved.outcome)
        )
    return Solved(outcome, solved.bound, solved.optimal, solved.cut_by_time, solved.sizes)


def _pinned_bundles(snapshot: Snapshot, target: Target) -> FloatArray:
    """P_i: GPUs by type that the pinned jobs of each leaf hold, float [L, T]."""
    held = np.zeros((len(target.leaves), len(snapshot.types)))
    place = {int(g): i for i, g in enumerate(target.leaves)}
    for j in np.flatnonzero(snapshot.pinned & snapshot.budgeted):
        i = place.get(int(snapshot.group[j]))
        if i is not None and snapshot.held_type[j] >= 0:
            held[i, int(snapshot.held_type[j])] += int(snapshot.held[j])
    return held


def _write(the_round: _Round, solved: Solved, deadline: Deadline, fallback: str | None = None) -> Plan:
    """Put an outcome into words and numbers."""
    s, target = the_round.snapshot, the_round.target
    with deadline.stage("explain"):
        words = explain(s, the_round.entitled, target, the_round.index, solved.outcome)
    with deadline.stage("certify"):
        got = standing(s, solved.outcome)
        reached = goals(s, the_round.entitled, target, the_round.owed, solved.outcome)
        status = CertificateStatus.OPTIMAL if solved.optimal else CertificateStatus.FEASIBLE
        if fallback is not None:
            status = CertificateStatus.FALLBACK
        proof = certificate(
            s, target, got, reached, status, solved.bound, the_round.forced, cut_by_time=solved.cut_by_time
        )
        warnings = warnings_of(s, the_round.entitled)
        if fallback is not None:
            message = f"The greedy plan was served, because the better one could not be: {fallback}."
            warnings = (*warnings, PlanWarning(code=WarningCode.FALLBACK_SERVED, message=message))
        return Plan(
            now=s.now,
            policy=s.policy,
            assignments=assignments(s, solved.outcome, words),
            groups=group_reports(s, the_round.entitled, target, got, solved.outcome),
            certificate=proof,
            unlocks=unlocks(s, solved.outcome),
            solver=SolverReport(
                stages_ms=deadline.stages_ms,
                sizes=solved.sizes,
                engine_version=VERSION,
                state_hash=state_hash(s.state),
            ),
            warnings=warnings,
        )
