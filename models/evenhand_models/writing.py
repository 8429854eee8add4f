"""A plan as JSON bytes, the same that pydantic writes, in less time: what many jobs are told is written once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import chain
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter

from evenhand_models.reasons import Reason

if TYPE_CHECKING:
    from evenhand_models.hardware import Placement
    from evenhand_models.plan import Action, Assignment, Plan

_AT_ONCE = 4_000
"""So many pieces are joined at a time where all of them together are not wanted: what fits a cache."""


class Written(NamedTuple):
    """A plan as compact UTF-8 JSON but for ``solver``, in pieces; all of them joined are the canonical plan.

    Attributes
    ----------
    head : what stands before ``solver``; tail : what stands behind it.
    """

    head: list[bytes]
    tail: list[bytes]

    def blocks(self) -> Iterator[bytes]:
        """Return the canonical plan, some at a time."""
        for pieces in self:
            for start in range(0, len(pieces), _AT_ONCE):
                yield b"".join(pieces[start : start + _AT_ONCE])

    def with_solver(self, plan: Plan) -> bytes:
        """Return the whole document, ``solver`` as the plan has it now."""
        return b"".join([*self.head, b",", _field(plan, "solver"), *self.tail])


def written(plan: Plan) -> Written:
    """Write all of a plan but ``solver``."""
    names = list(type(plan).model_fields)
    place = names.index("solver")
    head = [b"{"]
    for name in names[:place]:
        head += _assignments(plan.assignments) if name == "assignments" else (_field(plan, name),)
        head.append(b",")
    head.pop()
    tail = [piece for name in names[place + 1 :] for piece in (b",", _field(plan, name))]
    return Written(head, [*tail, b"}"])


def _field(plan: Plan, name: str) -> bytes:
    """Write one field with its name, by pydantic."""
    return plan.model_dump_json(include={name}).encode()[1:-1]


class _Writer:
    """Writes what jobs are told; whatever is said to many of them is put into JSON once."""

    def __init__(self, reasons: Iterable[Reason]) -> None:
        """Look whether any sentence needs an escape: nearly never one does, and then none is looked at again."""
        said = "".join([reason.message for reason in reasons]).encode()
        self._plain = len(said.translate(None, _ESCAPED)) == len(said)
        self.texts, self.names, self.instants = _Texts(), _Names(), _Instants()
        self._heads: dict[tuple[object, ...], bytes] = {}

    def head(self, said: tuple[Any, ...]) -> bytes:
        """Write what an assignment says between its job and its reasons: most jobs that wait are told the same there."""
        found = self._heads.get(said)
        if found is None:
            found = self._heads[said] = self._head(*said).encode()
        return found

    def _head(
        self,
        action: Action,
        gpus: int,
        gpu_type: str | None,
        placement: tuple[Placement, ...],
        after: tuple[str, ...],
        until: datetime | None,
        requeue: bool | None,
        unallocated: bool,
        at: datetime | None,
        change: str | None,
    ) -> str:
        places = ",".join([f'{{"node":{self.texts[part.node]},"gpus":{part.gpus}}}' for part in placement])
        return (
            f',"action":"{_ENUM[action]}","gpus":{gpus},"gpu_type":{self.texts[gpu_type]},"placement":[{places}],'
            f'"after":{self.names[after]},"protected_until_at":{self.instants[until]},"requeue":{_FLAG[requeue]},'
            f'"unallocated":{_FLAG[unallocated]},"earliest_start_at":{self.instants[at]},'
            f'"cheapest_change":{self.texts[change]},"reasons":['
        )

    def reason(self, reason: Reason) -> bytes:
        """Write a reason, with a comma before it."""
        code, message, refs, at, change = reason.__dict__.values()
        said = f'"{message}"' if self._plain else quoted(message)
        return (
            f',{{"code":"{_ENUM[code]}","message":{said},"refs":{self.names[refs]},'
            f'"earliest_start_at":{self.instants[at]},"cheapest_change":{self.texts[change]}}}'
        ).encode()


def _assignments(assignments: Sequence[Assignment]) -> list[bytes]:
    """Write assignments, with their name."""
    if not assignments:
        return [b'"assignments":[]']
    # Reasons are told apart by identity: one is given to many jobs, and all live as long as the plan.
    given = list(chain.from_iterable([one.reasons for one in assignments]))
    keys = list(map(id, given))
    known = dict(zip(keys, given, strict=True))
    writer = _Writer(known.values())
    later = {key: writer.reason(reason) for key, reason in known.items()}
    first: dict[int, bytes] = {}
    pieces, listed, place, ahead = [], list(map(later.__getitem__, keys)), 0, '"assignments":[{"job":'
    for one in assignments:
        job, *said, reasons = one.__dict__.values()
        pieces.append((ahead + quoted(job)).encode())
        pieces.append(writer.head(tuple(said)))
        if reasons:
            key, end = keys[place], place + len(reasons)
            pieces.append(first.get(key) or first.setdefault(key, later[key][1:]))
            pieces += listed[place + 1 : end]
            place = end
        ahead = ']},{"job":'
    pieces.append(b"]}]")
    return pieces


class _Instants(dict[datetime | None, str]):
    """Instants as pydantic writes them."""

    def __missing__(self, at: datetime | None) -> str:
        found = self[at] = _INSTANT.dump_json(at).decode()
        return found


class _Values(dict[StrEnum, str]):
    """Members of enumerations as they are written; to format one takes longer than to look it up."""

    def __missing__(self, member: StrEnum) -> str:
        found = self[member] = str(member)
        return found


class _Texts(dict[str | None, str]):
    """Names and sentences."""

    def __missing__(self, text: str | None) -> str:
        found = self[text] = "null" if text is None else quoted(text)
        return found


class _Names(dict[tuple[str, ...], str]):
    """Lists of names."""

    def __missing__(self, names: tuple[str, ...]) -> str:
        found = self[names] = f"[{','.join(map(quoted, names))}]"
        return found


_ENUM = _Values()
_INSTANT = TypeAdapter(datetime | None)
_FLAG = {None: "null", False: "false", True: "true"}
_ESCAPED = bytes([*range(32), *b'"\\'])
"""Bytes that JSON writes otherwise inside a string."""
