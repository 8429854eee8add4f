"""export_program(): the round as a file that other solvers, and people, can read."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.crosscheck.cbc import save
from evenhand.crosscheck.facts import facts_of
from evenhand.crosscheck.formulation import write
from evenhand_models import ClusterState, EvenhandError, Plan, Policy

FORMATS = (".lp", ".mps")


class UnknownFormat(EvenhandError, ValueError):
    """A program is to be written to a file whose suffix is neither ``.lp`` nor ``.mps``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"a program is written as {' or '.join(FORMATS)}, not as {path.suffix or 'no suffix'!r}")


def export_program(state: ClusterState, policy: Policy, path: str | os.PathLike[str], plan: Plan | None = None) -> None:
    """Write the round as a mixed-integer program whose rows and columns are named after the rules.

    Parameters
    ----------
    state, policy : ClusterState, Policy
        The round.
    path : path
        ``.lp``: the objective is to be maximised; ``.mps``: its negative is to be minimised.
    plan : Plan, optional
        Whose fair target to aim at; unset: that of ``evenhand.allocate`` for the same round.

    Raises
    ------
    UnknownFormat
        If the suffix is another one.
    OSError
        If the file cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise UnknownFormat(target)
    if plan is None:
        from evenhand.rounds import allocate

        plan = allocate(state, policy)
    draft = write(facts_of(state, policy, plan))
    about = [
        f"One round at {state.now.isoformat()}: {len(state.jobs)} jobs on {len(state.nodes)} nodes.",
        "Objective in GPUs at their best type for lookahead_s; rows are named after the rules of docs/model.md.",
        *([] if target.suffix.lower() == ".lp" else ["To be minimised: the objective row holds the negative."]),
    ]
    save(draft.sheet, target, about)
