"""The shape of the organisation tree, and whether its numbers can all hold.

A round only needs the shape: numbers that cannot all hold are cut with a warning there. Whoever writes or
checks a configuration calls `check_tree`, which refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenhand_models.errors import FieldError
from evenhand_models.groups import Group
from evenhand_models.hardware import Node


def duplicate_errors(where: str, field_name: str, names: Sequence[tuple[int, str]]) -> list[FieldError]:
    """Name every entry of a list whose name an earlier entry has."""
    if len({name for _, name in names}) == len(names):
        return []
    first: dict[str, int] = {}
    errors = []
    for index, name in sorted(names):
        if name in first:
            message = f"{field_name} {name!r} is already that of /{where}/{first[name]}; it must be unique."
            errors.append(FieldError(f"/{where}/{index}/{field_name}", message))
        else:
            first[name] = index
    return errors


def structure_errors(groups: Sequence[tuple[int, Group]], known: set[str] | None) -> list[FieldError]:
    """Name every unknown parent and every cycle.

    Parameters
    ----------
    groups : sequence of (int, Group)
        The groups, each with its place in the list.
    known : set of str or None
        The ids a parent may have; None: not all are known, parents are not judged.
    """
    errors = [
        FieldError(f"/groups/{i}/parent", f"group {group.id!r} has parent {group.parent!r}, which is no group.")
        for i, group in groups
        if known is not None and group.parent is not None and group.parent not in known
    ]
    parent = {group.id: group.parent for _, group in groups}
    place = {group.id: i for i, group in groups}
    for cycle in _cycles(parent):
        path = " > ".join([*cycle, cycle[0]])
        errors.append(FieldError(f"/groups/{place[cycle[0]]}/parent", f"groups form a cycle: {path}."))
    return errors


def _cycles(parent: dict[str, str | None]) -> list[list[str]]:
    """Find all cycles of a parent mapping, each from its least id downwards (parent before child)."""
    done: set[str] = set()
    cycles = []
    for start in parent:
        walk: dict[str, None] = {}
        at: str | None = start
        while at is not None and at in parent and at not in done and at not in walk:
            walk[at] = None
            at = parent[at]
        if at is not None and at in walk:
            trail = list(walk)
            upward = trail[trail.index(at) :]
            least = upward.index(min(upward))
            downward = [upward[least], *reversed(upward[least + 1 :] + upward[:least])]
            cycles.append(downward)
        done.update(walk)
    return sorted(cycles)


def check_tree(groups: Sequence[Group], nodes: Iterable[Node]) -> tuple[FieldError, ...]:
    """Say everything about a tree that cannot hold on these nodes, for whoever writes a configuration.

    Parameters
    ----------
    groups : sequence of Group
        The tree; pointers of the answer are ``/groups/<place>/<field>``.
    nodes : iterable of Node
        All nodes installed, up or not.

    Returns
    -------
    tuple of FieldError
        Empty if the configuration can hold. A broken shape (duplicate ids, unknown parents, cycles) is
        reported alone, numbers are looked at once the shape is sound.
    """
    ids = [(i, group.id) for i, group in enumerate(groups)]
    shape = duplicate_errors("groups", "id", ids) + structure_errors(list(enumerate(groups)), {g.id for g in groups})
    if shape:
        return tuple(shape)
    parent = {group.id: group.parent for group in groups}
    children: dict[str | None, list[Group]] = {}
    for group in groups:
        children.setdefault(group.parent, []).append(group)
    needed = _needed(groups, parent, children)
    installed = sum(node.gpus for node in nodes)
    errors = []
    for i, group in enumerate(groups):
        below = children.get(group.id, [])
        inner = sum(needed[child.id] for child in below)
        numbers = _guarantee_errors(group, inner, _listed(below, needed), _path(group.id, parent), installed)
        errors += [error.under(f"/groups/{i}") for error in numbers]
    at_top = children.get(None, [])
    total = sum(needed[group.id] for group in at_top)
    if total > installed and all(needed[group.id] <= installed for group in at_top):
        listed = _listed(at_top, needed)
        message = f"guarantees at the top sum to {total}, above the {installed} GPUs installed: {listed}."
        errors.append(FieldError("/groups", message))
    return tuple(errors)


def _needed(
    groups: Sequence[Group], parent: dict[str, str | None], children: dict[str | None, list[Group]]
) -> dict[str, int]:
    """What each subtree is guaranteed: the larger of its own guarantee and its children's together."""
    needed: dict[str, int] = {}
    order = [group for group in groups if group.parent is None]
    for group in order:  # grows while it is read: parents before children
        order.extend(children.get(group.id, []))
    for group in reversed(order):
        below = sum(needed[child.id] for child in children.get(group.id, []))
        needed[group.id] = max(group.guaranteed_gpus or 0, below)
    return needed


def _guarantee_errors(group: Group, inner: int, listed: str, path: str, installed: int) -> list[FieldError]:
    """Hold one group's guarantee against its children's, its limit and the GPUs installed."""
    errors = []
    own, limit = group.guaranteed_gpus, group.max_gpus
    if own is not None and inner > own:
        message = f"group {path} is guaranteed {own} GPUs, but its children {inner}: {listed}."
        errors.append(FieldError("/guaranteed_gpus", message))
    if own is not None and own > installed:
        message = f"group {path} is guaranteed {own} GPUs, above the {installed} installed."
        errors.append(FieldError("/guaranteed_gpus", message))
    if limit is not None and own is not None and limit < own:
        message = f"group {path} has max_gpus {limit}, below its guaranteed_gpus {own}."
        errors.append(FieldError("/max_gpus", message))
    elif limit is not None and limit < inner:
        message = f"group {path} has max_gpus {limit}, below its children's guarantees of {inner}: {listed}."
        errors.append(FieldError("/max_gpus", message))
    return errors


def _path(group: str, parent: dict[str, str | None]) -> str:
    """Write a group as its path from the top."""
    path = [group]
    while (above := parent[path[-1]]) is not None:
        path.append(above)
    return " > ".join(map(repr, reversed(path)))


def _listed(groups: list[Group], needed: dict[str, int]) -> str:
    """List groups with what each is guaranteed, leaving out those that are not."""
    return ", ".join(f"{group.id!r} {needed[group.id]}" for group in groups if needed[group.id])
