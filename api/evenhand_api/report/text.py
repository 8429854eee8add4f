"""How things read: numbers, times, places, tables; and turning tables into text of a given width."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal, TypeAlias

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand_models import Placement

NONE = "-"
"""What stands where there is nothing to say."""

Side = Literal["left", "right", "fixed"]
"""Numbers stand on the right; right and fixed columns are never folded."""
Column: TypeAlias = str | tuple[str, Side]
"""A title, or a title and its side."""


def as_text(parts: Iterable[RenderableType], width: int, colour: bool = False) -> str:
    """Render one part after the other into text.

    Parameters
    ----------
    parts : iterable of renderables
        What to show.
    width : int
        Columns, 40 or more.
    colour : bool
        Whether to write terminal colours.
    """
    out = io.StringIO()
    console = Console(
        file=out,
        width=max(width, 40),
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(part)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def heading(title: str, note: str = "") -> Text:
    """Start a section."""
    return Text.assemble("\n", (title, "bold"), ("  " + note if note else "", "dim"))


def table(*columns: Column) -> Table:
    """Make an empty table without frames; a column is a title, or a title and its side."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for column in columns:
        title, side = column if isinstance(column, tuple) else (column, "left")
        justify: Literal["left", "right"] = "right" if side == "right" else "left"
        made.add_column(Text(title), justify=justify, no_wrap=side != "left", overflow="fold")
    return made


def number(value: float | None, digits: int = 1) -> str:
    """Write a number with thousands marked and no more digits than it needs."""
    if value is None:
        return NONE
    written = f"{value:,.{digits}f}"
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return "0" if written in {"-0", ""} else written


def percent(value: float | None) -> str:
    """Write a share of a whole."""
    return NONE if value is None else f"{number(100 * value, 2)} %"


def by_type(gpus: Mapping[str, float]) -> str:
    """Write GPUs by type, leaving out what is nothing."""
    return ", ".join(f"{number(n)} {name}" for name, n in sorted(gpus.items()) if abs(n) > 1e-9) or NONE


def places(placement: Iterable[Placement], most: int = 4) -> str:
    """Write where GPUs are: node and count, the rest as a number of nodes."""
    parts = list(placement)
    shown = [f"{part.node}:{part.gpus}" for part in parts[:most]]
    if len(parts) > most:
        return f"{', '.join(shown)} and {plural(len(parts) - most, 'more node')}"
    return ", ".join(shown) or NONE


def names(ids: Iterable[str], most: int = 3) -> str:
    """Write some names and how many more there are."""
    listed = list(ids)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more or NONE


def brief(sentence: str, most: int = 110) -> str:
    """Cut a sentence at a word so that a table stays a table; the whole of it is in the plan."""
    if len(sentence) <= most:
        return sentence
    return sentence[: most + 1].rsplit(" ", 1)[0][:most].rstrip(" ,;:") + " ..."


def instant(moment: datetime | None) -> str:
    """Write a moment in UTC, to the minute if it is a whole one."""
    if moment is None:
        return NONE
    return moment.strftime("%Y-%m-%d %H:%M" if moment.second == 0 else "%Y-%m-%d %H:%M:%S") + "Z"


def duration(seconds: float) -> str:
    """Write a length of time in its two largest units."""
    whole = max(0, round(seconds))
    for unit, size, small, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size:,} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def plural(count: int, word: str, words: str = "") -> str:
    """Write a count and its word."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"
