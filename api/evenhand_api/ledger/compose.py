"""From a round's request and the cluster's configuration to the whole state, checked as every state is."""

from __future__ import annotations

from evenhand_api.ledger.clusters import Cluster
from evenhand_api.ledger.words import RoundRequest
from evenhand_models import ClusterState, FieldError, InvalidInput, Node
from evenhand_models.checks import Draft, draft_errors, entry_errors
from evenhand_models.tree import duplicate_errors


def compose_state(cluster: Cluster, request: RoundRequest) -> ClusterState:
    """Put a state together: types and tree of the configuration, nodes with what changed, the request's jobs.

    Raises
    ------
    InvalidInput
        If it contradicts itself; pointers are relative to the request, nodes that it does not list are
        pointed at by the jobs on them.
    """
    own = [(i, node.name) for i, node in enumerate(request.nodes)]
    errors = duplicate_errors("nodes", "name", own)
    nodes = _nodes(cluster, request)
    errors += [
        FieldError(f"/gone_nodes/{i}", f"node {name!r} is listed in nodes too.")
        for i, name in enumerate(request.gone_nodes)
        if any(name == listed for _, listed in own)
    ]
    draft = Draft(
        now=request.now,
        gpu_types=list(enumerate(cluster.config.gpu_types)),
        nodes=list(enumerate(nodes)),
        groups=list(enumerate(cluster.config.groups)),
        usage=[],
        jobs=list(enumerate(request.jobs)),
        max_protection_s=cluster.policy.max_protection_s,
    )
    places = {name: i for i, name in own}
    errors += [_moved(error, nodes, places) for error in (*entry_errors(draft), *draft_errors(draft))]
    if errors:
        raise InvalidInput(dict.fromkeys(errors))
    return ClusterState(
        now=request.now,
        gpu_types=cluster.config.gpu_types,
        nodes=tuple(nodes),
        groups=cluster.config.groups,
        jobs=request.jobs,
    )


def _nodes(cluster: Cluster, request: RoundRequest) -> list[Node]:
    """The nodes as the cluster knows them, those of the request in their place, in the order of names."""
    nodes = dict(cluster.nodes_by_name) | {node.name: node for node in request.nodes}
    for name in request.gone_nodes:
        nodes.pop(name, None)
    return sorted(nodes.values(), key=lambda node: node.name)


def _moved(error: FieldError, nodes: list[Node], places: dict[str, int]) -> FieldError:
    """Point at the request instead of at the state that was put together."""
    parts = error.pointer.split("/", 3)
    if len(parts) < 3 or parts[1] != "nodes":
        return error
    name = nodes[int(parts[2])].name
    if name not in places:
        return FieldError("/jobs", error.message)
    return FieldError("/".join(["", "nodes", str(places[name]), *parts[3:]]), error.message)
