"""The certificate: what a plan reaches, what is proven of it, and whom it leaves envious (rule A4)."""

from __future__ import annotations

import numpy as np

from evenhand.fairness.pair_envy import envy_missed, pair_envy
from evenhand.fairness.pareto import Pareto
from evenhand.fairness.target import Target
from evenhand.goals import FloatArray, GoalValue, Standing, largest_gangs, objective
from evenhand.snapshot import Snapshot
from evenhand_models import Certificate, CertificateStatus, EnvyPair, Goal, Objective

MOST_ENVY_PAIRS = 100


def envy_left(snapshot: Snapshot, target: Target, got: Standing) -> FloatArray:
    """v_i((e_i/e_l) X_l) - throughput of i, 0 or more, over floor_i; float [L, L], the envious first.

    Exact where `max_envy` or a reported pair comes from; elsewhere bounded by less.
    """
    leaves = target.leaves
    gangs = _gangs_over_floor(snapshot, target)
    held = got.allocated[leaves].astype(np.float64)
    return pair_envy(target.values, held, got.throughput[leaves], gangs, MOST_ENVY_PAIRS)


def _gangs_over_floor(snapshot: Snapshot, target: Target) -> FloatArray:
    """Largest gang of each leaf, and a trifle, as a share of its floor, float [L]."""
    gangs = largest_gangs(snapshot)[target.leaves]
    return np.asarray(np.divide(gangs, target.floor, out=np.full(len(gangs), np.inf), where=target.floor > 0) + 1e-9)


def envy_pairs(snapshot: Snapshot, target: Target, envy: FloatArray, forced: FloatArray) -> tuple[EnvyPair, ...]:
    """Pairs that envy by more than one gang, the worst first, split into what pins force and the rest."""
    names = [snapshot.tree.ids[g] for g in target.leaves.tolist()]
    rows, columns = np.nonzero(envy > _gangs_over_floor(snapshot, target)[:, None])
    most = envy[rows, columns]
    if len(most) > MOST_ENVY_PAIRS:
        told = most >= np.partition(most, -MOST_ENVY_PAIRS)[-MOST_ENVY_PAIRS]
        rows, columns, most = rows[told], columns[told], most[told]
    found = [
        (-much, names[i], names[k], i, k)
        for much, i, k in zip(*(x.tolist() for x in (most, rows, columns)), strict=True)
    ]
    pairs = []
    for less, group, envied, i, k in sorted(found)[:MOST_ENVY_PAIRS]:
        share = min(-less, float(forced[i, k] / target.floor[i]))
        pairs.append(EnvyPair(group=group, envied=envied, envy=-less, forced_by_pins=share, ours=-less - share))
    return tuple(pairs)


def certificate(
    snapshot: Snapshot,
    target: Target,
    got: Standing,
    goals: tuple[GoalValue, ...],
    status: CertificateStatus,
    bound: float | None,
    forced: FloatArray,
    pareto: Pareto | None,
    *,
    cut_by_time: bool,
) -> Certificate:
    """What is proven about a plan (rule A4); `verified` is what the audit must confirm before it is served."""
    value = objective(goals)
    bound = None if bound is None else (value if status is CertificateStatus.OPTIMAL else max(bound, value))
    whole = target.throughput
    envy = envy_left(snapshot, target, got)
    promised = snapshot.policy.objective is Objective.ENVY_FREE
    return Certificate(
        status=status,
        cut_by_time=cut_by_time,
        goals=tuple(
            Goal(name=g.name, value=g.value, bound=0.0 if g.weight < 0 else None, unit=g.unit, weight=g.weight)
            for g in goals
        ),
        objective=value,
        bound=bound,
        gap=(bound - value) / whole if bound is not None and whole > 0 else None,
        target_throughput=whole,
        capacity_ok=True,
        protection_ok=True,
        gangs_ok=True,
        max_envy=float(envy.max(initial=0.0)),
        envy=envy_pairs(snapshot, target, envy, forced),
        target_proven=target.best,
        floor_slack=float(np.maximum(target.floor - target.value, 0.0).sum()),
        target_envy_slack=envy_missed(target.values, target.x) if promised else 0.0,
        pareto_gap=None if pareto is None else pareto.gap,
        pareto_prices=_prices(snapshot, pareto),
        throughput=float(got.throughput.sum()),
        upper_bound=target.upper_bound,
        equal_split=target.equal_split,
        max_min=target.max_min,
        verified=True,
    )


def _prices(snapshot: Snapshot, pareto: Pareto | None) -> dict[str, float]:
    """The prices that prove the Pareto gap, by type (rule T6)."""
    if pareto is None:
        return {}
    return {name: float(p) for name, p in zip(snapshot.types, pareto.prices, strict=True) if p > 0}
