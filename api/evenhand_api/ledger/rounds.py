"""A stateful round: read the ledger, decide, write the ledger. Runs where the solver is, never in the serving process.

Nothing is locked while the solver works but the cluster's turn. What goes in is read in a transaction that is taken back,
what comes out is written in one that also checks that no configuration came meanwhile; if one did, the round is decided anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from sqlalchemy import Connection, Engine

from evenhand_api.ledger.amounts import PER_GPU_HOUR, as_gpu_hours
from evenhand_api.ledger.clusters import Cluster, find_cluster
from evenhand_api.ledger.compose import compose_state
from evenhand_api.ledger.database import reading, rehearsing, writing
from evenhand_api.ledger.errors import ClockWentBack, StaleState
from evenhand_api.ledger.fading import faded_usage
from evenhand_api.ledger.instants import SECOND, to_us, written
from evenhand_api.ledger.round_records import store_round, stored_answer
from evenhand_api.ledger.sightings import observe
from evenhand_api.ledger.turns import turn
from evenhand_api.ledger.usage import window_usage
from evenhand_api.ledger.words import RoundRequest
from evenhand_models import ClusterState, FieldError, InvalidInput, Plan, Policy, Usage
from evenhand_models.parse import parse_fields

Decide: TypeAlias = Callable[[ClusterState, Policy], Plan]
"""From state and policy to a plan: `evenhand.allocate`."""
ATTEMPTS = 5
"""How often a round is decided anew because a configuration was written meanwhile."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A round as it was posted."""

    cluster: str
    body: bytes
    key: str | None = None

    @property
    def body_hash(self) -> str:
        """SHA-256 of the body, 64 hexadecimal digits."""
        return sha256(self.body).hexdigest()


def decide_round(engine: Engine, posted: Posted, max_time_limit_s: float, decide: Decide) -> tuple[bytes, bool]:
    """Decide a round and keep it.

    Parameters
    ----------
    engine : of a migrated database.
    max_time_limit_s : the largest `time_limit_s` the cluster's policy may have.
    decide : the library's `allocate`.

    Returns
    -------
    (bytes, bool)
        The answer as JSON, and whether it is the stored one of an idempotency key.

    Raises
    ------
    InvalidInput
        If the request is malformed or contradicts itself or the cluster.
    UnknownName, StaleState, ClockWentBack, KeyReused, LedgerUnavailable
        Each for what it says; nothing is kept.
    """
    with reading(engine) as connection:
        number = find_cluster(connection, posted.cluster).id
    request = parse_fields(posted.body, RoundRequest)
    with turn(engine, number):
        for _ in range(ATTEMPTS):
            with rehearsing(engine) as connection:
                cluster = find_cluster(connection, posted.cluster, lock=True)
                if (known := _known(connection, cluster, posted)) is not None:
                    return known, True
                _check(cluster, request, max_time_limit_s)
                state = compose_state(cluster, request)
                observe(connection, cluster, state)
                state = state.model_copy(update={"usage": usage_of(connection, cluster, to_us(state.now))})
            plan = decide(state, cluster.policy)
            with writing(engine) as connection:
                latest = find_cluster(connection, posted.cluster, lock=True)
                if latest.state_version == cluster.state_version:
                    down = observe(connection, latest, state)
                    answer = store_round(connection, latest, state, plan, down, posted.key, posted.body_hash)
                    return answer, False
    raise StaleState(f"the configuration of cluster {posted.cluster!r} was written again and again meanwhile")


def usage_of(connection: Connection, cluster: Cluster, now_us: int) -> tuple[Usage, ...]:
    """Return what each group used, as the cluster's policy remembers it: the window, or the half-life."""
    policy = cluster.policy
    if policy.half_life_s is not None:
        faded = faded_usage(connection, cluster.id, now_us, policy.half_life_s)
        hours = {group: amount / PER_GPU_HOUR for group, amount in faded.items()}
    else:
        exact = window_usage(
            connection, cluster.id, max(cluster.kept_from_us, now_us - policy.window_s * SECOND), now_us
        )
        hours = {group: as_gpu_hours(amount) for group, amount in exact.items()}
    return tuple(Usage(group=group, charged_gpu_hours=max(0.0, used)) for group, used in sorted(hours.items()))


def _known(connection: Connection, cluster: Cluster, posted: Posted) -> bytes | None:
    return None if posted.key is None else stored_answer(connection, cluster, posted.key, posted.body_hash)


def _check(cluster: Cluster, request: RoundRequest, max_time_limit_s: float) -> None:
    """Refuse what rests on something that is no longer so."""
    if request.state_version is not None and request.state_version != cluster.state_version:
        raise StaleState(
            f"the request rests on state_version {request.state_version}, the cluster's is {cluster.state_version}"
        )
    now_us = to_us(request.now)
    if cluster.last_now_us is not None and now_us < cluster.last_now_us:
        raise ClockWentBack(
            f"the request's now is {written(now_us)}, the last round's was {written(cluster.last_now_us)}"
        )
    limit_s = cluster.policy.time_limit_s
    if limit_s > max_time_limit_s:
        message = f"the cluster's time_limit_s is {limit_s:g}, above the {max_time_limit_s:g} this service allows."
        raise InvalidInput([FieldError("", message)])
