"""From snapshot, entitlement and target to a program: columns first, then one family of rows after the other."""

from __future__ import annotations

from evenhand.entitlement import Entitlement
from evenhand.fairness.target import Target
from evenhand.program.constraints import capacity, entitlement, gangs, limits, preemption, protection
from evenhand.program.constraints.capacity import NodeCounts
from evenhand.program.index import Index, build_index
from evenhand.program.prices import Prices
from evenhand.program.variables import Columns, Moves, Program
from evenhand.program.ways import add_columns
from evenhand.snapshot import Snapshot
from evenhand.solvers.linear_model import LinearModel

__all__ = ["NodeCounts", "formulate"]


def formulate(
    snapshot: Snapshot, entitled: Entitlement, target: Target, owed: tuple[int, ...], index: Index | None = None
) -> tuple[Program, NodeCounts]:
    """Build the round's program; envy rows come later, for pairs that turn out to envy."""
    index = index or build_index(snapshot, owed)
    program = Program(
        snapshot=snapshot,
        entitlement=entitled,
        target=target,
        index=index,
        owed=owed,
        prices=Prices(snapshot),
        model=LinearModel(),
        columns=Columns(Moves(snapshot, index)),
        fixed=protection.fixed_jobs(snapshot),
    )
    add_columns(program)
    counted = capacity.add_rows(program)
    for family in (gangs, protection, entitlement, limits, preemption):
        if family.applies(program):
            family.add_rows(program)
    return program, counted
