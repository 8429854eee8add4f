"""allocate(): the one way to decide. State and policy in, an audited plan out."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from evenhand.assignments import assignments
from evenhand.audit import Auditor
from evenhand.beside import Beside
from evenhand.certify import certificate
from evenhand.deadline import Deadline
from evenhand.entitlement import Entitlement, entitle
from evenhand.errors import AuditFailed, PlacementError, SolverError
from evenhand.explain import explain, unlocks
from evenhand.fairness.pareto import Pareto, pareto_gap
from evenhand.fairness.pins import pinned_split
from evenhand.fairness.target import Target, fair_target, forced_slack
from evenhand.goals import FloatArray, goals, standing
from evenhand.greedy import greedy, top_up
from evenhand.oddities import warnings_of
from evenhand.outcome import Outcome
from evenhand.owed_gangs import owed_gangs
from evenhand.program.formulate import formulate
from evenhand.program.index import Index, build_index
from evenhand.program.memory import Memory
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
from evenhand_models.collection import without_collection

PREPARED = ("prepare", "warn", "hash")
"""Stages of `prepare`."""
MOST_THREADS = 2
"""Threads that a round has work for beside its search."""
RESERVE_SHARE = 0.04
RESERVE_OF_PREPARED = 4.0
RESERVE_PER_PAIR_S = 1e-7
RESERVE_PER_JOB_S = 1e-5
CACHED_JOBS = 20_000
"""Kept for words, audit and sealing: a share of the limit; some times what the part of them took that needs no plan and
is done before the search, for the rest looks at the same jobs in the same way (it took 3.7 to 5.4 times as long in rounds of
1,000 to 100,000 jobs); so much for each job beyond those that a core's caches hold; and what comparing every pair of groups
takes."""


@dataclass(frozen=True, eq=False)
class _Round:
    snapshot: Snapshot
    entitled: Entitlement
    target: Target
    owed: tuple[int, ...]
    index: Index
    measured: Future[Measured]
    prepared: Prepared


@dataclass(frozen=True, eq=False)
class Measured:
    """What the certificate says of the target: slack that pins force, and its Pareto gap."""

    forced: FloatArray
    pareto: Pareto | None


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a plan needs and has no say in: done before the search, so that it tells how long the rest will take."""

    auditor: Auditor
    warnings: tuple[PlanWarning, ...]
    state_hash: str


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
    return decide(state, policy or Policy(), None)


def decide(state: ClusterState, policy: Policy, memory: Memory | None) -> Plan:
    """`allocate`, with the memory of the round before if there is one; it is changed to that of this round."""
    with without_collection():
        return _decide(state, policy, memory, Deadline(policy.time_limit_s))


def _decide(state: ClusterState, policy: Policy, memory: Memory | None, deadline: Deadline) -> Plan:
    with deadline.stage("read"):
        snapshot = take_snapshot(state, policy)
    with deadline.stage("entitle"):
        entitled = entitle(snapshot)
        owed = owed_gangs(snapshot, entitled)
    with deadline.stage("target"):
        target = fair_target(snapshot, entitled)
    with deadline.stage("index"):
        index = build_index(snapshot, owed)
    with deadline.stage("greedy"):
        first = greedy(snapshot, entitled, index)
    # Nothing runs beside it: it is what the reserve is measured by.
    prepared = prepare(state, policy, snapshot, entitled, deadline)
    with Beside(min(policy.workers, MOST_THREADS)) as beside:
        measured = beside.start(partial(measure, snapshot, target, deadline))
        the_round = _Round(snapshot, entitled, target, owed, index, measured, prepared)
        return _decided(the_round, first, deadline, memory)


def measure(snapshot: Snapshot, target: Target, deadline: Deadline) -> Measured:
    """What the certificate says of the target; runs beside the search."""
    with deadline.stage("measure"):
        forced = forced_slack(target, pinned_split(snapshot, target.values, target.job_class))
        return Measured(forced, pareto_gap(target.values, target.x, target.work // 4))


def _decided(the_round: _Round, first: Outcome, deadline: Deadline, memory: Memory | None) -> Plan:
    """The plan of a round: the best that is found, or the greedy one where that does not stand up."""
    trouble: str | None = None
    try:
        solved = _searched(the_round, first, deadline, memory)
        with deadline.stage("mend"):
            better = _better(the_round, solved)
        plan = _write(the_round, better, deadline)
        with deadline.stage("audit"):
            report = the_round.prepared.auditor.judge(plan)
        trouble = None if report.ok else f"its audit found {report.findings[0].rule}: {report.findings[0].message}"
    except (PlacementError, SolverError, OverflowError) as defect:
        trouble = str(defect)
    if trouble is None:
        return _sealed(plan, deadline)
    plan = _write(the_round, Solved(first, None, False, False, {}), deadline, fallback=trouble)
    with deadline.stage("audit"):
        report = the_round.prepared.auditor.judge(plan)
    if not report.ok:
        raise AuditFailed(report.findings[0].rule, report.findings[0].message)
    return _sealed(plan, deadline)


def prepare(
    state: ClusterState, policy: Policy, snapshot: Snapshot, entitled: Entitlement, deadline: Deadline
) -> Prepared:
    """Do what words, audit and sealing need to do whatever the plan will be."""
    with deadline.stage("prepare"):
        auditor = Auditor(state, policy)
    with deadline.stage("warn"):
        warnings = warnings_of(snapshot, entitled)
    with deadline.stage("hash"):
        return Prepared(auditor, warnings, state_hash(state))


def _searched(the_round: _Round, first: Outcome, deadline: Deadline, memory: Memory | None) -> Solved:
    """The best outcome that the time left allows, and a bound."""
    r = the_round
    reserve = _reserve_s(deadline, r.target, r.snapshot)
    with deadline.stage("formulate"):
        program, counted = formulate(r.snapshot, r.entitled, r.target, r.owed, r.index)
    return solve(program, counted, first, deadline, reserve, memory)


def _reserve_s(deadline: Deadline, target: Target, snapshot: Snapshot) -> float:
    """Seconds to keep for what comes after the search."""
    pairs = len(target.leaves) * (len(target.leaves) + len(snapshot.tree.ids))
    prepared_s = sum(deadline.stages_ms[name] for name in PREPARED) / 1000
    kept = RESERVE_SHARE * deadline.limit_s + RESERVE_OF_PREPARED * prepared_s + RESERVE_PER_PAIR_S * pairs
    return kept + RESERVE_PER_JOB_S * max(0, len(snapshot.jobs) - CACHED_JOBS)


def _better(the_round: _Round, solved: Solved) -> Solved:
    """The solver's outcome; if it is not proven, with nobody stopped for nothing and nothing left idle for nothing."""
    outcome = Outcome(solved.outcome.decisions, optimal=True)
    if not solved.optimal:
        outcome = top_up(
            the_round.snapshot, the_round.entitled, the_round.index, restore(the_round.snapshot, solved.outcome)
        )
    return Solved(outcome, solved.bound, solved.optimal, solved.cut_by_time, solved.sizes)


def _write(the_round: _Round, solved: Solved, deadline: Deadline, fallback: str | None = None) -> Plan:
    """Put an outcome into words and numbers."""
    s, entitled, target, outcome = the_round.snapshot, the_round.entitled, the_round.target, solved.outcome
    with deadline.stage("explain"):
        words = explain(s, entitled, target, the_round.index, outcome)
    with deadline.stage("goals"):
        got = standing(s, outcome)
        reached = goals(s, entitled, target, the_round.owed, outcome)
    measured = the_round.measured.result()
    with deadline.stage("certify"):
        status = CertificateStatus.OPTIMAL if solved.optimal else CertificateStatus.FEASIBLE
        if fallback is not None:
            status = CertificateStatus.FALLBACK
        proof = certificate(
            s,
            target,
            got,
            reached,
            status,
            solved.bound,
            measured.forced,
            measured.pareto,
            cut_by_time=solved.cut_by_time,
        )
    warnings = the_round.prepared.warnings
    if fallback is not None:
        message = f"The greedy plan was served, because the better one could not be: {fallback}."
        warnings = (*warnings, PlanWarning(code=WarningCode.FALLBACK_SERVED, message=message))
    with deadline.stage("report"):
        groups = group_reports(s, entitled, target, got, outcome)
        unlocked = unlocks(s, outcome)
    with deadline.stage("assign"):
        assigned = assignments(s, outcome, words)
    return Plan(
        now=s.now,
        policy=s.policy,
        assignments=assigned,
        groups=groups,
        certificate=proof,
        unlocks=unlocked,
        solver=SolverReport(
            stages_ms=deadline.stages_ms,
            sizes=solved.sizes,
            engine_version=VERSION,
            state_hash=the_round.prepared.state_hash,
        ),
        warnings=warnings,
    )


def _sealed(plan: Plan, deadline: Deadline) -> Plan:
    """The plan with its hash, and with all stages that were measured until it was ready."""
    with deadline.stage("seal"):
        sealed = seal(plan)
    return sealed.with_solver(sealed.solver.model_copy(update={"stages_ms": dict(deadline.stages_ms)}))
