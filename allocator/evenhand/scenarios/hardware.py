"""Nodes that come and nodes that are lost, at once or on their day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from evenhand_models import ClusterState, FieldError, GpuType, InvalidInput, Node, NodeStatus
from evenhand_models.scenarios import ClusterOverlay, NodeBatch, NodeLoss
from evenhand_models.traces import WorldChange

DAY_S = 86_400


def changed_hardware(
    cluster: ClusterState, overlay: ClusterOverlay
) -> tuple[tuple[GpuType, ...], tuple[Node, ...], list[WorldChange]]:
    """Work out the types, the nodes at second 0, and how nodes change afterwards.

    Raises
    ------
    InvalidInput
        If a name is taken, a period ends before it begins, or no node is chosen; pointers ``/cluster/...``.
    """
    types = _types(cluster, overlay)
    errors = _period_errors(overlay)
    states: dict[str, dict[int, Node | None]] = {node.name: {0: node} for node in cluster.nodes}
    for i, batch in enumerate(overlay.add):
        for node in _batch(batch):
            if node.name in states:
                errors.append(FieldError(f"/cluster/add/{i}/name", f"node {node.name!r} is there already."))
            states[node.name] = {_second(batch.from_day): node}
            if batch.until_day is not None:
                states[node.name][_second(batch.until_day)] = None
    for i, loss in enumerate(overlay.lose):
        chosen = _chosen(loss, states)
        if not chosen:
            errors.append(FieldError(f"/cluster/lose/{i}", "no node of the cluster fits."))
        for name in chosen:
            _lose(states[name], loss)
    if errors:
        raise InvalidInput(errors)
    first = tuple(line[0] for _, line in sorted(states.items()) if (line.get(0)) is not None and line[0] is not None)
    return types, first, _changes(states)


def _second(day: float) -> int:
    return round(day * DAY_S)


def _types(cluster: ClusterState, overlay: ClusterOverlay) -> tuple[GpuType, ...]:
    known = {kind.name: kind for kind in cluster.gpu_types}
    for batch in overlay.add:
        known.setdefault(batch.gpu_type, GpuType(name=batch.gpu_type))
    known |= {kind.name: kind for kind in overlay.gpu_types}
    return tuple(known[name] for name in sorted(known))


def _period_errors(overlay: ClusterOverlay) -> list[FieldError]:
    parts: list[tuple[str, NodeBatch | NodeLoss]] = [
        (f"/cluster/add/{i}", batch) for i, batch in enumerate(overlay.add)
    ]
    parts += [(f"/cluster/lose/{i}", loss) for i, loss in enumerate(overlay.lose)]
    return [
        FieldError(
            f"{at}/until_day", f"it ends on day {part.until_day:g}, not after its beginning on {part.from_day:g}."
        )
        for at, part in parts
        if part.until_day is not None and _second(part.until_day) <= _second(part.from_day)
    ]


def _batch(batch: NodeBatch) -> list[Node]:
    width = len(str(batch.nodes))
    name = batch.name or f"new-{batch.gpu_type[:200]}"
    return [
        Node(name=f"{name}-{i:0{width}}", gpu_type=batch.gpu_type, gpus=batch.gpus, labels=batch.labels)
        for i in range(1, batch.nodes + 1)
    ]


def _chosen(loss: NodeLoss, states: dict[str, dict[int, Node | None]]) -> list[str]:
    """Names of the nodes a loss is about, by name."""
    found = []
    for name in sorted(states):
        node = next(node for node in states[name].values() if node is not None)
        fits = loss.names is None or name in loss.names
        fits = fits and loss.gpu_type in (None, node.gpu_type)
        if fits and all(node.labels.get(key) == value for key, value in loss.labels.items()):
            found.append(name)
    return found if loss.nodes is None else found[: loss.nodes]


def _lose(line: dict[int, Node | None], loss: NodeLoss) -> None:
    """Lay a loss over the states of one node."""
    begin, end = _second(loss.from_day), None if loss.until_day is None else _second(loss.until_day)
    before = _at(line, begin)
    after = None if end is None else _at(line, end)
    for at, node in list(line.items()):
        if begin <= at and (end is None or at < end):
            line[at] = _struck(node, loss.status)
    if before is not None:
        line[begin] = _struck(before, loss.status)
    if end is not None:
        line[end] = after


def _struck(node: Node | None, status: NodeStatus) -> Node | None:
    if node is None or node.status is NodeStatus.DOWN:
        return node
    return node.model_copy(update={"status": status})


def _at(line: dict[int, Node | None], second: int) -> Node | None:
    """The node as it is at a second; None: not there."""
    past = [at for at in line if at <= second]
    return line[max(past)] if past else None


def _changes(states: dict[str, dict[int, Node | None]]) -> list[WorldChange]:
    by_time: dict[int, list[tuple[str, Node | None]]] = defaultdict(list)
    for name, line in sorted(states.items()):
        known = line.get(0)
        for at in sorted(at for at in line if at > 0):
            if line[at] != known:
                by_time[at].append((name, line[at]))
                known = line[at]
    return [WorldChange(at, _nodes(found), _gone(found)) for at, found in sorted(by_time.items())]


def _nodes(found: Iterable[tuple[str, Node | None]]) -> tuple[Node, ...]:
    return tuple(node for _, node in found if node is not None)


def _gone(found: Iterable[tuple[str, Node | None]]) -> tuple[str, ...]:
    return tuple(name for name, node in found if node is None)
