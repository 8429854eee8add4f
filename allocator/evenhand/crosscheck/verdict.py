"""cross_check(): is a plan what the second formulation calls best?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from evenhand.crosscheck.answer import NoWay, point_of
from evenhand.crosscheck.cbc import solve
from evenhand.crosscheck.draft import Draft
from evenhand.crosscheck.facts import facts_of
from evenhand.crosscheck.formulation import write
from evenhand_models import CertificateStatus, ClusterState, Plan, Policy

TOLERANCE = 1e-3
"""GPUs by which two objectives may differ."""
RELATIVE = 1e-6
"""Part of an objective by which another may differ from it as well."""


class Proof(StrEnum):
    """How far CBC came."""

    OPTIMAL = "optimal"
    """It proved that nothing is better."""
    FEASIBLE = "feasible"
    """It ran out of time with a solution."""
    UNKNOWN = "unknown"
    """It ran out of time without one."""


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """What the second formulation says of a plan.

    Attributes
    ----------
    objective : float or None
        Best objective found, in GPUs, worked out exactly from the decisions behind it; None if none was found.
    bound : float or None
        No plan's objective is above this; None if CBC gave no bound.
    plan_objective : float
        What the plan's certificate says.
    agrees : bool
        Whether the plan keeps every row, is worth here what its certificate says, and neither side's best passes
        the other side's bound; where both claim optimality: whether both objectives are the same.
    status : Proof
        How far CBC came.
    message : str
        What was found, in a sentence or two.
    goals, plan_goals : mapping of str to float
        Parts of the objective by goal, weights included (A4): of CBC's solution, and of the plan by its certificate.
    sizes : mapping of str to int
        Columns and rows of the program.
    """

    objective: float | None
    bound: float | None
    plan_objective: float
    agrees: bool
    status: Proof
    message: str
    goals: Mapping[str, float] = field(default_factory=dict)
    plan_goals: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def cross_check(state: ClusterState, policy: Policy, plan: Plan, time_limit_s: float = 60) -> CrossCheck:
    """Solve the round of a plan once more, job by node, with CBC, and compare.

    Parameters
    ----------
    state, policy : ClusterState, Policy
        What the plan was made for.
    plan : Plan
        Its fair target is taken as given; its decisions, where they keep all rows, are CBC's first solution.
    time_limit_s : float
        Seconds CBC may take.

    Returns
    -------
    CrossCheck
        The verdict.

    Raises
    ------
    SolverError
        If CBC does not run, or claims what cannot be.
    """
    draft = write(facts_of(state, policy, plan))
    objections, start = _look_at(draft, plan)
    sheet = draft.sheet
    solved = solve(sheet, time_limit_s, start)
    objective, goals, bound = None, dict[str, float](), solved.bound
    if solved.values is not None:
        point = sheet.complete(solved.values)
        if broken := sheet.broken(point):
            objections.append(f"CBC's solution, rounded, breaks {', '.join(broken[:3])}")
        goals = sheet.worth(point)
        objective = sum(goals.values())
        bound = None if bound is None else max(bound, objective)
    proof = Proof.OPTIMAL if solved.proven else Proof.UNKNOWN if objective is None else Proof.FEASIBLE
    objections += _compare(plan, objective, bound, proof)
    return CrossCheck(
        objective=objective,
        bound=bound,
        plan_objective=plan.certificate.objective,
        agrees=not objections,
        status=proof,
        message="; ".join(objections) or _agreement(plan, objective, proof),
        goals=goals,
        plan_goals={goal.name: goal.value * goal.weight for goal in plan.certificate.goals},
        sizes={"columns": len(sheet.columns), "rows": len(sheet.rows)},
    )


def tolerated(*numbers: float) -> float:
    """Return the difference that is tolerated between objectives of this size."""
    return TOLERANCE + RELATIVE * max(map(abs, numbers))


def _look_at(draft: Draft, plan: Plan) -> tuple[list[str], list[float] | None]:
    """Say what is wrong with a plan's own decisions, and return them as a first solution if nothing is."""
    try:
        point = point_of(draft, plan)
    except NoWay as why:
        return [f"the plan breaks the program: {why}"], None
    if broken := draft.sheet.broken(point):
        return [f"the plan breaks {', '.join(broken[:5])}"], None
    worth, said = sum(draft.sheet.worth(point).values()), plan.certificate.objective
    if abs(worth - said) > tolerated(worth, said):
        return [f"the plan is worth {worth:.6f} here, its certificate says {said:.6f}"], point
    return [], point


def _compare(plan: Plan, objective: float | None, bound: float | None, proof: Proof) -> list[str]:
    """Say where the two sides contradict each other."""
    seal, found = plan.certificate, []
    said = seal.objective
    if bound is not None and said > bound + tolerated(said, bound):
        found.append(f"the plan claims {said:.6f}, but no plan can pass {bound:.6f}")
    if objective is None:
        return found
    claimed = said if seal.status is CertificateStatus.OPTIMAL else seal.bound
    if proof is not Proof.OPTIMAL and seal.bound is not None:
        claimed = seal.bound
    if claimed is not None and objective > claimed + tolerated(objective, claimed):
        found.append(f"a plan worth {objective:.6f} exists, but none is said to pass {claimed:.6f}")
    return found


def _agreement(plan: Plan, objective: float | None, proof: Proof) -> str:
    """Put an agreement into words."""
    said = plan.certificate.objective
    if objective is None:
        return f"CBC found nothing in its time to hold against the plan's {said:.6f}"
    if proof is Proof.OPTIMAL and plan.certificate.status is CertificateStatus.OPTIMAL:
        return f"both sides call {said:.6f} the best possible"
    return f"neither the plan's {said:.6f} nor CBC's {objective:.6f} passes what the other side calls possible"
