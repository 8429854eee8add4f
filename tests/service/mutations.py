"""Bodies that were right, spoiled at random: by structure, by value, by byte."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        "",
        " ",
        "\u0000",
        "\ud800",
        "a" * 300,
        "../..",
        "2026-11-01T12:00:00",
        "9999-12-31T23:59:59Z",
    ),
    *(-1, 0, 1, 7, 2**31, 2**63, 10**30, -0.0, 0.5, 1e-300, 1e308, float("nan"), float("inf")),
    *([], {}, [[]], [{}], {"a": {"b": []}}, ["x"] * 50),
)


def mutated(right: Any, random: Random) -> bytes:
    """Return one to four mutations of a document, as bytes."""
    document = copy.deepcopy(right)
    for _ in range(random.randint(1, 4)):
        document = _spoil(document, random)
    body = json.dumps(document).encode()
    return _scratch(body, random) if random.random() < 0.2 else body


def _places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(node, dict):
        for key in node:
            found += _places(node[key], (*path, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            found += _places(child, (*path, index))
    return found


def _spoil(document: Any, random: Random) -> Any:
    places = _places(document)
    path = random.choice(places)
    if not path:
        return random.choice(ODD) if random.random() < 0.1 else document
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    last = path[-1]
    match random.randrange(7):
        case 0:
            del holder[last]
        case 1:
            holder[last] = copy.deepcopy(random.choice(ODD))
        case 2 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        case 3 if isinstance(holder, dict):
            holder[random.choice(("x", "id", "gpus", "", last * 2))] = holder.pop(last)
        case 4 if isinstance(holder[last], int | float):
            holder[last] = holder[last] * random.choice((-1, 0, 1.5, 10, 10**6)) + random.choice((0, 1, 0.1))
        case 5 if isinstance(holder, list):
            random.shuffle(holder)
        case _:
            other: Any = document
            for step in random.choice(places):
                other = other[step] if _has(other, step) else other
            holder[last] = copy.deepcopy(other)
    return document


def _has(node: Any, step: Any) -> bool:
    return (isinstance(node, dict) and step in node) or (
        isinstance(node, list) and isinstance(step, int) and step < len(node)
    )


def _scratch(body: bytes, random: Random) -> bytes:
    spoiled = bytearray(body)
    for _ in range(random.randint(1, 5)):
        at = random.randrange(len(spoiled) + 1)
        match random.randrange(4):
            case 0:
                spoiled[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del spoiled[at : at + random.randint(1, 20)]
            case 2:
                spoiled[at:at] = random.choice((b"[", b"{", b'"', b"\\", b"\xff", b"1e999", b"NaN", b",,"))
            case _:
                spoiled[at:at] = spoiled[at : at + random.randint(1, 40)]
    return bytes(spoiled)
