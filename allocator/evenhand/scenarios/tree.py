"""Another tree: groups that are new, other or gone, from a day on."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.scenarios.hardware import DAY_S
from evenhand_models import ClusterState, FieldError, Group, InvalidInput
from evenhand_models.scenarios import TreeOverlay
from evenhand_models.traces import WorldChange


def changed_tree(
    groups: Sequence[Group], overlays: Sequence[TreeOverlay]
) -> tuple[tuple[Group, ...], list[WorldChange]]:
    """Work out the tree at second 0 and those that follow; overlays hold from their day on, one upon the other.

    Raises
    ------
    InvalidInput
        If a tree cannot be; pointers ``/tree/...``.
    """
    first = tuple(groups)
    changes: list[WorldChange] = []
    known = first
    order = sorted(range(len(overlays)), key=lambda i: (overlays[i].from_day, i))
    for i in order:
        known = _changed(known, overlays[i], f"/tree/{i}")
        at_s = round(overlays[i].from_day * DAY_S)
        if at_s == 0:
            first = known
        else:
            changes.append(WorldChange(at_s, groups=known))
    return first, changes


def _changed(groups: Sequence[Group], overlay: TreeOverlay, pointer: str) -> tuple[Group, ...]:
    """Lay one overlay over a tree."""
    known = {group.id: group for group in groups}
    errors = [
        FieldError(f"{pointer}/remove/{i}", f"group {name!r} is not in the tree.")
        for i, name in enumerate(overlay.remove)
        if name not in known
    ]
    going = set(overlay.remove)
    while below := {g.id for g in known.values() if g.parent in going} - going:
        going |= below
    known = {name: group for name, group in known.items() if name not in going}
    for i, part in enumerate(overlay.groups):
        fields = part.model_dump(exclude_unset=True)
        if part.id not in known and part.share is None:
            message = f"group {part.id!r} is not in the tree; a new one needs a share."
            errors.append(FieldError(f"{pointer}/groups/{i}/share", message))
            continue
        before = known[part.id].model_dump() if part.id in known else {}
        known[part.id] = Group.model_validate(
            before | {key: v for key, v in fields.items() if key != "share" or v is not None}
        )
    if errors:
        raise InvalidInput(errors)
    tree = tuple(known.values())
    _check(tree, pointer)
    return tree


def _check(tree: tuple[Group, ...], pointer: str) -> None:
    """Refuse what no state could hold: cycles, parents that are not there."""
    try:
        ClusterState.model_validate(
            {"now": "2001-01-01T00:00:00Z", "gpu_types": (), "nodes": (), "groups": tree, "jobs": ()}
        )
    except InvalidInput as refused:
        message = "; ".join(error.message for error in refused.errors)
        raise InvalidInput([FieldError(pointer, f"the tree cannot be so: {message}")]) from None
