"""Many entries of one model read at once: field by field, what many of them say alike once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from marshal import dumps
from typing import Annotated, Any, TypeVar

from pydantic import TypeAdapter

from evenhand_models.made import made
from evenhand_models.quantities import WireModel

M = TypeVar("M", bound=WireModel)
Entry = dict[str, Any]
Alike = Mapping[tuple[str, ...], Sequence[int]]
"""Places of the entries that give the same fields in the same order."""
FEW, MANY = 8, 16
"""Beyond a few, there must be so many entries for each set of fields given: else to read them one by one is quicker."""
_PLAIN = ({str}, {int}, {bool})
"""Kinds of which equal values are the same value; across kinds they need not be: 1 equals true."""


def read_many(model: type[M], listed: object) -> tuple[M, ...] | None:
    """Read a list of entries, each field as the model reads it; what must hold between fields is left to the caller.

    Returns None where the model has to look itself: if it is no list of objects, if hardly two give the same fields in
    the same order, or if something is wrong with one of them. Entries that say a field alike, or leave it out, share its
    value: it is not to be changed.
    """
    if type(listed) is not list or set(map(type, listed)) != {dict}:
        return None
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, names in enumerate(map(tuple, listed)):
        alike.setdefault(names, []).append(place)
    if len(alike) > FEW + len(listed) // MANY:
        return None
    needed = {name for name, field in model.model_fields.items() if field.is_required()}
    if not all(needed <= set(names) <= model.model_fields.keys() for names in alike):
        return None
    try:
        columns = _columns(model, listed, alike)
    except ValueError:  # pydantic raises one, and so does `dumps` if a value is not of JSON
        return None
    blank, found = _blank(model), dict[int, M]()
    for names, places in alike.items():
        given = frozenset(names)
        entries = [blank | listed[place] for place in places]
        for name in names:
            if (column := columns[name]) is not None:
                for entry, value in zip(entries, column, strict=False):  # the column goes on with the next that give it
                    entry[name] = value
        found.update(zip(places, [made(model, entry, set(given)) for entry in entries], strict=True))
    return tuple(map(found.__getitem__, range(len(listed))))


def _blank(model: type[WireModel]) -> Entry:
    """Every field of the model at its default, None where it has none."""
    fields = model.model_fields.items()
    return {name: None if f.is_required() else f.get_default(call_default_factory=True) for name, f in fields}


def _columns(model: type[WireModel], listed: Sequence[Entry], alike: Alike) -> dict[str, Iterator[Any] | None]:
    """What each field reads as, entry by entry in the order of `alike`; None if it stays as it is."""
    raw: dict[str, list[Any]] = {}
    for names, places in alike.items():
        for name, values in zip(names, zip(*[listed[place].values() for place in places], strict=True), strict=True):
            raw.setdefault(name, []).extend(values)
    readers = _readers(model)
    return {name: _read_column(readers[name], values) for name, values in raw.items()}


def _read_column(reader: TypeAdapter[list[Any]], raw: list[Any]) -> Iterator[Any] | None:
    """Read the values of one field, those that are alike once; None if all stay as they are."""
    plain = set(map(type, raw)) in _PLAIN
    keys: list[Hashable] = raw if plain else list(map(dumps, raw, repeat(2)))
    known = dict(zip(keys, raw, strict=True))
    if 2 * len(known) > len(raw):
        read = reader.validate_python(raw)
    else:
        once = dict(zip(known, reader.validate_python(list(known.values())), strict=True))
        read = list(map(once.__getitem__, keys))
    if plain and read == raw and set(map(type, read)) == set(map(type, raw)):
        return None
    return iter(read)


@cache
def _readers(model: type[WireModel]) -> dict[str, TypeAdapter[list[Any]]]:
    """What reads a list of values of each field."""
    fields = model.model_fields.items()
    return {name: TypeAdapter(list[Annotated[f.annotation, f]]) for name, f in fields}  # type: ignore[name-defined]
