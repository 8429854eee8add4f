"""P1: what is pinned stays exactly where it is.

Pinned jobs have no columns at all: their GPUs are taken off the nodes before any row is made. Only an elastic one that may grow
has, and G1 then binds it to staying or growing. O8's reservations are bound to what ends while it is kept.
"""

from __future__ import annotations

import numpy as np

from evenhand.outcome import Move
from evenhand.program.index import elastic
from evenhand.program.variables import Program, ends_soon
from evenhand.snapshot import Snapshot
from evenhand.solvers.linear_model import FREE


def fixed_jobs(snapshot: Snapshot) -> tuple[int, ...]:
    """Jobs that stay whatever the program decides: pinned ones that cannot grow, orphans on healthy nodes."""
    return tuple(
        int(j)
        for j in np.flatnonzero(snapshot.pinned)
        if snapshot.orphan[j] or not elastic(snapshot, int(j)) or snapshot.held[j] >= snapshot.size[j]
    )


STAYS = frozenset({Move.KEEP, Move.RESIZE})


def applies(program: Program) -> bool:
    """Whether anything is reserved on GPUs that end by themselves."""
    return bool(program.columns.reserved)


def add_rows(program: Program) -> None:
    """O8: per type, sum of sizes reserved <= GPUs of kept jobs that end soon."""
    s, model = program.snapshot, program.model
    for t in sorted({t for _, t, _ in program.columns.reserved}):
        columns = [c for _, on, c in program.columns.reserved if on == t]
        values = [int(s.size[u.job]) for u, on, _ in program.columns.reserved if on == t]
        ends = [m for m in program.columns.moves if m.gpu_type == t and ends_soon(s, m.unit.job) and m.move in STAYS]
        sure = sum(int(s.held[j]) for j in program.fixed if s.held_type[j] == t and ends_soon(s, j))
        model.row(
            columns + [m.column for m in ends], values + [-m.gpus for m in ends], -FREE, sure,
            lambda t=t: f"O8[{s.types[t]}]",  # type: ignore[misc]
        )  # fmt: skip
