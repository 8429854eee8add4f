"""Measured speedups to draw from: Gavel's, which come along, or a file of the same form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

GAVEL = Path(__file__).parent / "data" / "gavel_speedups.json"


@dataclass(frozen=True)
class Vector:
    """Speedup of one model by type, on the scale of its slowest type; `gpus` of the gang it was measured with."""

    model: str
    gpus: int
    speedup: dict[str, float]


def read_vectors(path: Path = GAVEL, leave_out: frozenset[tuple[str, str]] = frozenset()) -> list[Vector]:
    """Read a file with `rows`, each with `speedup` and `model` or `app`.

    Parameters
    ----------
    path : the file.
    leave_out : pairs of model and type whose figure is no property of the GPU.
    """
    rows = json.loads(path.read_text())["rows"]
    found = []
    for row in rows:
        model = str(row.get("model") or row["app"])
        pairs = {t: float(x) for t, x in row["speedup"].items() if x and (model, t) not in leave_out}
        found.append(Vector(model, int(row.get("scale_factor") or 1), pairs))
    return found


def types_of(vectors: list[Vector]) -> list[str]:
    """All types that occur, in the order of their names."""
    return sorted({name for vector in vectors for name in vector.speedup})
