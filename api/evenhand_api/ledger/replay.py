"""Stored rounds decided again: the same state and policy must give the same plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from evenhand_api.ledger.clusters import Cluster
from evenhand_api.ledger.packing import unpack
from evenhand_api.ledger.tables import rounds
from evenhand_models import ClusterState, Plan, Policy
from evenhand_models.hashing import state_hash


@dataclass(frozen=True, slots=True)
class Replayed:
    """One round decided again.

    Attributes
    ----------
    same_state : the stored state still has the hash it was decided under.
    same_plan : the new plan's hash is the stored one.
    cut_by_time : one of both searches was ended by the clock, so that they may rightly differ.
    other_engine : the round was decided by another version of evenhand.
    """

    n: int
    same_state: bool
    same_plan: bool
    cut_by_time: bool
    other_engine: bool

    @property
    def ok(self) -> bool:
        """Whether the round is what it was, as far as that can be asked."""
        return self.same_state and (self.same_plan or self.cut_by_time or self.other_engine)


def replay(
    connection: Connection,
    cluster: Cluster,
    decide: Callable[[ClusterState, Policy], Plan],
    first: int = 1,
    last: int | None = None,
) -> Iterator[Replayed]:
    """Decide stored rounds again, in their order.

    Parameters
    ----------
    decide : the library's `allocate`.
    first, last : numbers of the rounds, both included; last left out: up to the latest.
    """
    r = rounds.c
    query = select(r.n).where(r.cluster_id == cluster.id, r.n >= first).order_by(r.n)
    for n in connection.execute(query if last is None else query.where(r.n <= last)).scalars().all():
        row = connection.execute(select(rounds).where(r.cluster_id == cluster.id, r.n == n)).one()
        state = ClusterState.model_validate_json(unpack(row.state))
        plan = decide(state, Policy.model_validate_json(row.policy))
        before = Plan.model_validate_json(unpack(row.plan))
        yield Replayed(
            n=n,
            same_state=state_hash(state) == row.state_hash,
            same_plan=plan.solver.plan_hash == row.plan_hash,
            cut_by_time=plan.certificate.cut_by_time or before.certificate.cut_by_time,
            other_engine=plan.solver.engine_version != row.engine_version,
        )
