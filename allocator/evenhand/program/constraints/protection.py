"""P1: what is pinned stays exactly where it is.

Pinned jobs have no columns at all: their GPUs are taken off the nodes before any row is made. Only an elastic one that may grow
has, and G1 then binds it to staying or growing. O8's reservations are bound to what ends while it is kept.
"""

from __future__ import annotations

import numpy as np

from evenhand.outcome import Move
from evenhand.program.variables import CODE, Program
from evenhand.program.ways import ends_soon
from evenhand.snapshot import Snapshot
from evenhand.solvers.linear_model import FREE


def fixed_jobs(snapshot: Snapshot) -> tuple[int, ...]:
    """Jobs that stay whatever the program decides: pinned ones that cannot grow, orphans on healthy nodes."""
    s = snapshot
    full = (s.least >= s.size) | (s.held >= s.size)
    return tuple(np.flatnonzero(s.pinned & (s.orphan | full)).tolist())


STAYS = (CODE[Move.KEEP], CODE[Move.RESIZE])


def applies(program: Program) -> bool:
    """Whether anything is reserved on GPUs that end by themselves."""
    return bool(program.columns.reserved)


def add_rows(program: Program) -> None:
    """O8: per type, sum of sizes reserved <= GPUs of kept jobs that end soon."""
    s, model, moves = program.snapshot, program.model, program.columns.moves
    soon = ends_soon(s)
    stays = soon[moves.job] & np.isin(moves.kind, STAYS)
    fixed = np.array(program.fixed, dtype=np.int64)
    fixed = fixed[soon[fixed]]
    for t in sorted({t for _, t, _ in program.columns.reserved}):
        columns = [c for _, on, c in program.columns.reserved if on == t]
        sizes = s.size[[u.job for u, on, _ in program.columns.reserved if on == t]]
        ends = np.flatnonzero(stays & (moves.gpu_type == t))
        sure = int(s.held[fixed[s.held_type[fixed] == t]].sum())
        model.rows(
            [len(columns) + len(ends)], np.concatenate([columns, moves.column[ends]]),
            np.concatenate([sizes, -moves.gpus[ends]]), -FREE, sure, lambda _, t=t: f"O8[{s.types[t]}]",  # type: ignore[misc]
        )  # fmt: skip
