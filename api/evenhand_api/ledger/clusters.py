"""Clusters: their configurations by version, and the row that every change of a cluster goes through."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from sqlalchemy import Connection, insert, select, update

from evenhand_api.ledger.errors import UnknownName
from evenhand_api.ledger.fading import keep_faded
from evenhand_api.ledger.instants import wall_clock_us
from evenhand_api.ledger.tables import cluster_versions, clusters
from evenhand_api.ledger.terms import Terms
from evenhand_api.ledger.words import ClusterConfig
from evenhand_models import Node, Policy


@dataclass(frozen=True)
class Cluster:
    """A cluster as it stands: its row, and the configuration in force.

    Attributes
    ----------
    down : by node that the last round saw down or gone, since when (microseconds).
    kept_from_us : from when on the ledger is whole; what was before may have been forgotten.
    """

    id: int
    name: str
    state_version: int
    config_version: int
    last_round: int
    last_now_us: int | None
    config: ClusterConfig
    nodes_text: str
    down: Mapping[str, int]
    kept_from_us: int

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes as the last round or configuration left them."""
        return _read_nodes(self.nodes_text)

    @cached_property
    def nodes_by_name(self) -> Mapping[str, Node]:
        """The same nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def terms(self) -> Terms:
        """Whom the configuration charges, and how much."""
        return Terms(self.config.groups, self.config.gpu_types)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.config.policy or Policy()


def find_cluster(connection: Connection, name: str, *, lock: bool = False) -> Cluster:
    """Read a cluster.

    Parameters
    ----------
    lock : keep other writers of this cluster out until the transaction ends.

    Raises
    ------
    UnknownName
        If there is none of that name.
    """
    query = select(clusters).where(clusters.c.name == name)
    row = connection.execute(query.with_for_update(key_share=True) if lock else query).one_or_none()
    if row is None:
        raise UnknownName(f"there is no cluster {name!r}")
    document = connection.execute(
        select(cluster_versions.c.document).where(
            cluster_versions.c.cluster_id == row.id, cluster_versions.c.version == row.config_version
        )
    ).scalar_one()
    return Cluster(
        id=row.id,
        name=row.name,
        state_version=row.state_version,
        config_version=row.config_version,
        last_round=row.last_round,
        last_now_us=row.last_now_us,
        config=_read_config(document),
        nodes_text=row.nodes,
        down=json.loads(row.down),
        kept_from_us=row.kept_from_us,
    )


def list_clusters(connection: Connection) -> list[str]:
    """Return the names of all clusters, in order."""
    return list(connection.execute(select(clusters.c.name).order_by(clusters.c.name)).scalars())


def put_cluster(connection: Connection, name: str, config: ClusterConfig) -> bool:
    """Write a configuration that has been checked; the same one again changes nothing.

    The nodes become those of the configuration, whatever rounds had changed about them.

    Returns
    -------
    bool
        Whether the cluster is new.
    """
    document = config.model_dump_json()
    nodes = nodes_text(config.nodes)
    row = connection.execute(select(clusters).where(clusters.c.name == name).with_for_update()).one_or_none()
    if row is None:
        values: dict[str, Any] = {"name": name, "state_version": 0, "config_version": 1, "last_round": 0}
        created = connection.execute(insert(clusters).values(values | {"nodes": nodes, "down": "{}"}))
        assert created.inserted_primary_key is not None
        _add_version(connection, created.inserted_primary_key[0], 1, document)
        return True
    cluster = find_cluster(connection, name)
    if cluster.config == config and cluster.nodes_text == nodes:
        return False
    version = row.config_version + 1
    _add_version(connection, row.id, version, document)
    connection.execute(
        update(clusters)
        .where(clusters.c.id == row.id)
        .values(config_version=version, state_version=row.state_version + 1, nodes=nodes)
    )
    if row.last_now_us is not None:
        keep_faded(connection, row.id, row.last_now_us, (config.policy or Policy()).half_life_s)
    return False


def nodes_text(nodes: tuple[Node, ...]) -> str:
    """Write nodes as they stand in the cluster's row, defaults left out."""
    ordered = sorted(nodes, key=lambda node: node.name)
    return json.dumps([node.model_dump(mode="json", exclude_defaults=True) for node in ordered])


@lru_cache(maxsize=16)
def _read_config(document: str) -> ClusterConfig:
    """Read a configuration; the same text again costs nothing, and what is read is frozen."""
    return ClusterConfig.model_validate_json(document)


@lru_cache(maxsize=16)
def _read_nodes(text: str) -> tuple[Node, ...]:
    """Read nodes as `nodes_text` wrote them."""
    return tuple(Node.model_validate(node) for node in json.loads(text))


def _add_version(connection: Connection, cluster_id: int, version: int, document: str) -> None:
    values = {"cluster_id": cluster_id, "version": version, "document": document, "recorded_us": wall_clock_us()}
    connection.execute(insert(cluster_versions).values(values))
