"""Progress of long work on standard error: a bar with the time left, and nothing where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

Report: TypeAlias = Callable[[float], None]
"""Called with how much is done."""


@contextmanager
def counted(what: str, total: float) -> Iterator[Report]:
    """Show a bar of pieces done while the block runs; the report takes the number done."""
    with _bar(MofNCompleteColumn()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def shares(what: str) -> Iterator[Report]:
    """Show a bar of the share done while the block runs; the report takes a number from 0 to 1."""
    with _bar(TaskProgressColumn()) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)


def _bar(amount: MofNCompleteColumn | TaskProgressColumn) -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        amount,
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        transient=True,
        disable=not sys.stderr.isatty(),
    )
