"""The one door to PuLP and its CBC."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from evenhand.crosscheck.names import plain_names
from evenhand.crosscheck.sheet import Sheet
from evenhand.errors import SolverError

OPTIONS = ("ratioGap 0", "allowableGap 0", "increment 1e-7", "integerTolerance 1e-7", "primalTolerance 1e-8")
"""CBC's tolerances: the least weight in an objective is epsilon times a 224th of a GPU (O7)."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What CBC says.

    Attributes
    ----------
    values : tuple of float or None
        Value of every column; None if it found no solution.
    bound : float or None
        No solution's objective is above this; None if it did not get that far.
    proven : bool
        Whether it claims that nothing is better.
    """

    values: tuple[float, ...] | None
    bound: float | None
    proven: bool


@contextmanager
def _pulp() -> Iterator[ModuleType]:
    """Import PuLP, deaf to what it says about its next version."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=r".*(PuLP 4\.0|PULP_CBC_CMD)")
        import pulp

        yield pulp


def solve(sheet: Sheet, time_limit_s: float, start: Sequence[float] | None = None) -> Solved:
    """Let CBC make the objective as large as possible.

    Parameters
    ----------
    start : sequence of float, optional
        A point that keeps all rows, as a first solution.
    """
    with _pulp() as pulp, TemporaryDirectory(prefix="evenhand-") as folder:
        problem, columns, _ = _problem(pulp, sheet, maximise=False)
        if start is not None:
            for column, value in zip(columns, start, strict=True):
                column.varValue = value
        log = Path(folder) / "cbc.log"
        solver = pulp.PULP_CBC_CMD(
            msg=False,
            timeLimit=max(0.1, time_limit_s),
            options=list(OPTIONS),
            warmStart=start is not None,
            logPath=str(log),
        )
        solver.tmpDir = folder
        try:
            problem.solve(solver)
        except pulp.PulpSolverError as reason:
            raise SolverError(f"CBC did not run: {reason}") from reason
        found = problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
        proven = problem.sol_status == pulp.LpSolutionOptimal
        if problem.status in (pulp.LpStatusInfeasible, pulp.LpStatusUnbounded):
            raise SolverError(f"CBC calls a round {pulp.LpStatus[problem.status]}, which cannot be")
        values = tuple(float(column.varValue or 0.0) for column in columns) if found else None
        return Solved(values, _bound(sheet, log.read_text(errors="replace"), values, proven), proven)


def _bound(sheet: Sheet, log: str, values: tuple[float, ...] | None, proven: bool) -> float | None:
    """Read the bound from what CBC printed; of a proven solution it is its own objective."""
    if proven and values is not None:
        return sheet.offset() + sum(worth * values[column] for column, worth in sheet.objective().items())
    said = re.findall(r"^Lower bound:\s+(\S+)", log, re.MULTILINE)
    said = said or re.findall(r"best possible (\S+?)[,)\s]", log)
    bounds = [-float(text) for text in said if re.fullmatch(r"[-+.\deE]+", text)]
    return bounds[-1] + sheet.offset() if bounds and abs(bounds[-1]) < 1e40 else None


def save(sheet: Sheet, path: Path, about: Sequence[str]) -> None:
    """Write the program to a file: ``.lp`` to be maximised, ``.mps`` to be minimised, so its objective is negated.

    Parameters
    ----------
    about : sequence of str
        Lines to be put on top as comments; what had to be renamed follows them.
    """
    lp = path.suffix.lower() == ".lp"
    with _pulp() as pulp, TemporaryDirectory(prefix="evenhand-") as folder:
        problem, _, renamed = _problem(pulp, sheet, maximise=lp)
        draft = Path(folder) / f"program{path.suffix.lower()}"
        (problem.writeLP if lp else problem.writeMPS)(str(draft))
        said = [*about, *(f"{plain} stands for {spoken}" for plain, spoken in renamed)]
        comments = [_comment(line, lp=lp) for line in said]
        path.write_text("".join(comments) + draft.read_text(encoding="utf-8"), encoding="utf-8")


def _comment(line: str, *, lp: bool) -> str:
    """Write a line as a comment of its format, without what would end it."""
    clean = " ".join(line.replace("*", "_").split()).encode("ascii", "backslashreplace").decode()
    return f"\\* {clean} *\\\n" if lp else f"* {clean}\n"


def _problem(pulp: ModuleType, sheet: Sheet, *, maximise: bool) -> tuple[Any, list[Any], list[tuple[str, str]]]:
    """Build PuLP's problem; return it, its columns, and the names that had to be changed."""
    sign = 1.0 if maximise else -1.0
    problem = pulp.LpProblem("evenhand", pulp.LpMaximize if maximise else pulp.LpMinimize)
    names = plain_names((column.name for column in sheet.columns), "column_")
    rows = plain_names((row.name for row in sheet.rows), "row_")
    columns = [
        pulp.LpVariable(
            name,
            column.lower,
            column.upper if isfinite(column.upper) else None,
            pulp.LpInteger if column.whole else pulp.LpContinuous,
        )
        for name, column in zip(names, sheet.columns, strict=True)
    ]
    always = pulp.LpVariable("whatever_is_decided", 1, 1, pulp.LpContinuous)
    terms = [(columns[column], sign * worth) for column, worth in sheet.objective().items()]
    goal = pulp.LpAffineExpression([*terms, (always, sign * sheet.offset())])
    problem.setObjective(goal)
    problem.objective.name = "objective" if maximise else "minus_objective"
    for name, row in zip(rows, sheet.rows, strict=True):
        total = pulp.LpAffineExpression([(columns[column], value) for column, value in row.terms.items()])
        if row.low == row.high:
            problem.addConstraint(total == row.low, name)
        elif isfinite(row.high):
            problem.addConstraint(total <= row.high, name)
        else:
            problem.addConstraint(total >= row.low, name)
    spoken = [*(c.name for c in sheet.columns), *(r.name for r in sheet.rows)]
    renamed = [(plain, said) for plain, said in zip([*names, *rows], spoken, strict=True) if plain != said]
    return problem, columns, renamed
