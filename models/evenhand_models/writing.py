"""A plan as JSON bytes, the same that pydantic writes, in less time: a reason given to many jobs is written once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from evenhand_models.quantities import WireModel
from evenhand_models.reasons import Reason

if TYPE_CHECKING:
    from evenhand_models.plan import Assignment, Plan

_AT_ONCE = 1_000
"""So many assignments are written together."""


def plan_pieces(plan: Plan, *, solver: bool) -> Iterator[list[bytes]]:
    """Write a plan as compact UTF-8 JSON, piece by piece, some at a time; joined they are the document.

    Parameters
    ----------
    solver : whether ``solver`` is written as well.
    """
    names = [name for name in type(plan).model_fields if solver or name != "solver"]
    for place, name in enumerate(names):
        yield [b"," if place else b"{"]
        if name == "assignments":
            yield [b'"assignments":[']
            yield from _listed(plan.assignments)
            yield [b"]"]
        else:
            yield [plan.model_dump_json(include={name}).encode()[1:-1]]
    yield [b"}"]


def _listed(assignments: Sequence[Assignment]) -> Iterator[list[bytes]]:
    """Write assignments without the brackets around them."""
    known: dict[int, bytes] = {}
    for start in range(0, len(assignments), _AT_ONCE):
        some = assignments[start : start + _AT_ONCE]
        fresh = {id(r): r for r in chain.from_iterable(a.reasons for a in some) if id(r) not in known}
        known.update(zip(fresh, _apart(list(fresh.values()), Reason), strict=True))
        pieces: list[bytes] = []
        for head, one in zip(_apart(some, type(some[0]), without="reasons"), some, strict=True):
            pieces += (head[:-1], b',"reasons":[')
            for reason in one.reasons:
                pieces += (known[id(reason)], b",")
            if one.reasons:
                pieces.pop()
            pieces += (b"]}", b",")
        if start + _AT_ONCE >= len(assignments):
            pieces.pop()
        yield pieces


def _apart(words: Sequence[WireModel], model: type[WireModel], without: str | None = None) -> list[bytes]:
    """Write words one by one, in one go: where one ends and the next begins cannot stand inside a string.

    Parameters
    ----------
    without : a field to leave out, not the first one.
    """
    if not words:
        return []
    first = f'{{"{next(iter(model.model_fields))}":'.encode()
    if model not in _WRITERS:
        _WRITERS[model] = TypeAdapter(list[model])  # type: ignore[valid-type]
    exclude = None if without is None else {"__all__": {without}}
    written = _WRITERS[model].dump_json(list(words), exclude=exclude)
    return [first + rest + b"}" for rest in written[1 + len(first) : -2].split(b"}," + first)]


_WRITERS: dict[type[WireModel], TypeAdapter[Any]] = {}
