"""What changes the ledger besides rounds: configurations, events, adjustments. Each in one transaction."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlalchemy import Engine

from evenhand_api.ledger.adjustments import add_adjustment
from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.database import writing
from evenhand_api.ledger.events import record_events
from evenhand_api.ledger.instants import to_us
from evenhand_api.ledger.observed import add_observations
from evenhand_api.ledger.words import AdjustmentRequest, ClusterConfig, EventBatch, ObservationBatch, config_errors
from evenhand_api.rest.limits import size_errors
from evenhand_models import FieldError, InvalidInput
from evenhand_models.parse import parse_fields


def write_config(
    engine: Engine, name: str, body: bytes, max_time_limit_s: float, max_nodes: int | None = None
) -> tuple[dict[str, Any], bool]:
    """Check a configuration and put it in force; returns the versions, and whether the cluster is new.

    Parameters
    ----------
    max_time_limit_s, max_nodes : what a round may have at most here: a configuration beyond it could never be decided.

    Raises
    ------
    InvalidInput
        If it is malformed, contradicts itself or cannot hold; the last good one stays in force.
    """
    config = parse_fields(body, ClusterConfig)
    errors = size_errors("", "nodes", len(config.nodes), max_nodes) or config_errors(config)
    if config.policy is not None and config.policy.time_limit_s > max_time_limit_s:
        message = f"time_limit_s is {config.policy.time_limit_s:g}, above the {max_time_limit_s:g} allowed here."
        errors.append(FieldError("/policy/time_limit_s", message))
    if errors:
        raise InvalidInput(errors)
    with writing(engine) as connection:
        created = put_cluster(connection, name, config)
        cluster = find_cluster(connection, name)
    versions = {"cluster": name, "config_version": cluster.config_version, "state_version": cluster.state_version}
    return versions, created


def write_events(engine: Engine, name: str, body: bytes) -> dict[str, Any]:
    """Record a batch of events."""
    batch = parse_fields(body, EventBatch)
    with writing(engine) as connection:
        record_events(connection, find_cluster(connection, name, lock=True), batch.events)
    return {"cluster": name, "recorded": len(batch.events)}


def write_observations(engine: Engine, name: str, body: bytes) -> dict[str, Any]:
    """Keep what was measured."""
    batch = parse_fields(body, ObservationBatch)
    with writing(engine) as connection:
        add_observations(connection, find_cluster(connection, name, lock=True), batch.observations)
    return {"cluster": name, "recorded": len(batch.observations)}


def write_adjustment(engine: Engine, name: str, body: bytes) -> dict[str, Any]:
    """Record an adjustment."""
    asked = parse_fields(body, AdjustmentRequest)
    with writing(engine) as connection:
        cluster = find_cluster(connection, name, lock=True)
        return add_adjustment(
            connection,
            cluster,
            group=asked.group,
            hours=Decimal(repr(asked.charged_gpu_hours)),
            reason=asked.reason,
            author=asked.author,
            at_us=None if asked.at is None else to_us(asked.at),
        )
