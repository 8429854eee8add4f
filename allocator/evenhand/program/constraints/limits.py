"""L1: GPUs held below a group with `max_gpus` are at most that, or what is pinned there if more."""

from __future__ import annotations

from evenhand.program.variables import Program
from evenhand.solvers.linear_model import FREE


def applies(program: Program) -> bool:
    """Whether any group has a limit."""
    return any(g.max_gpus is not None for g in program.snapshot.tree.groups)


def add_rows(program: Program) -> None:
    """One row per group with a limit that could bind: sum of gpus x <= limit."""
    s, model = program.snapshot, program.model
    tree, everything = s.tree, int(s.room.sum())
    for c, group in enumerate(tree.groups):
        if group.max_gpus is None or group.max_gpus >= everything:
            continue
        moves = [m for m in program.columns.moves if c in tree.path[int(s.group[m.unit.job])]]
        fixed = [j for j in program.fixed if s.live[j] and c in tree.path[int(s.group[j])]]
        pinned = [u.job for u in program.index.running if s.pinned[u.job] and c in tree.path[int(s.group[u.job])]]
        limit = max(group.max_gpus, sum(int(s.held[j]) for j in pinned)) - sum(int(s.held[j]) for j in fixed)
        if moves:
            model.row(
                [m.column for m in moves],
                [m.gpus for m in moves],
                -FREE,
                limit,
                lambda g=group: f"L1[{g.id}]",  # type: ignore[misc]
            )
