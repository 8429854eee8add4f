"""L1: GPUs held below a group with `max_gpus` are at most that, or what is pinned there if more."""

from __future__ import annotations

import numpy as np

from evenhand.program.variables import Program
from evenhand.solvers.linear_model import FREE


def applies(program: Program) -> bool:
    """Whether any group has a limit."""
    return any(g.max_gpus is not None for g in program.snapshot.tree.groups)


def add_rows(program: Program) -> None:
    """One row per group with a limit that could bind: sum of gpus x <= limit."""
    s, model, moves = program.snapshot, program.model, program.columns.moves
    tree, everything = s.tree, int(s.room.sum())
    fixed = np.array(program.fixed, dtype=np.int64)
    fixed = fixed[s.live[fixed]]
    runs = program.index.eldest[len(program.index.pending) :]
    pinned = runs[s.pinned[runs]]
    group = s.group[moves.job]
    for c, limited in enumerate(tree.groups):
        if limited.max_gpus is None or limited.max_gpus >= everything:
            continue
        below = np.array([c in path for path in tree.path])
        at = np.flatnonzero(below[group])
        most = max(limited.max_gpus, int(s.held[pinned[below[s.group[pinned]]]].sum()))
        most -= int(s.held[fixed[below[s.group[fixed]]]].sum())
        if at.size:
            name = f"L1[{limited.id}]"
            row = model.rows([len(at)], moves.column[at], moves.gpus[at], -FREE, most, lambda _, name=name: name)  # type: ignore[misc]
            program.columns.limit_rows.append(row)
