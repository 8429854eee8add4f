"""What all commands share: exit codes, reading files, writing output, saying what went wrong."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from evenhand_api.report import as_text
from evenhand_models import FieldError, InvalidInput

GZIP_MAGIC = b"\x1f\x8b"


class ExitCode(IntEnum):
    """What a command's exit code means."""

    OK = 0
    """Done."""
    DISAGREES = 1
    """The audit found something, or the cross-check disagrees."""
    USAGE = 2
    """The command line makes no sense."""
    INVALID_INPUT = 3
    """A file cannot be read or is no proper input; every error was printed."""
    FAILED = 4
    """The work could not be done: the output cannot be written, the address is taken, or a defect."""


EXIT_CODES = (
    "Exit codes: 0 done (by the fallback too: standard error then says so); 1 the audit found something or "
    "the cross-check disagrees; 2 wrong usage; 3 invalid input, every error printed with its JSON pointer; "
    "4 the work could not be done. Reports go to standard output, errors to standard error."
)

StateArgument = Annotated[
    str,
    typer.Argument(
        metavar="STATE",
        help="A state, or a whole request, as JSON; may be gzip; - reads standard input.",
        show_default=False,
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option("--policy", metavar="FILE", help="A policy as JSON, in place of STATE's own.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON and nothing else to standard output.")]


class Failure(Exception):
    """The work could not be done, for a reason worth one line."""


@contextmanager
def reported() -> Iterator[None]:
    """Turn everything that can go wrong into lines on standard error and an exit code, never a traceback."""
    try:
        yield
    except InvalidInput as invalid:
        for error in invalid.errors:
            say(f"{error.pointer or '(whole input)'}: {error.message}")
        count = len(invalid.errors)
        say(f"evenhand: {count} {'error' if count == 1 else 'errors'}; nothing was decided.")
        raise typer.Exit(ExitCode.INVALID_INPUT) from None
    except BrokenPipeError:
        _forget_output()
        raise typer.Exit(128 + 13) from None  # as if SIGPIPE had ended it
    except Failure as failure:
        say(f"evenhand: {failure}")
        raise typer.Exit(ExitCode.FAILED) from None
    except (typer.Exit, typer.Abort, typer.TyperException):
        raise
    except Exception as defect:  # a user gets a line; EVENHAND_TRACEBACK=1 gets it all
        if os.environ.get("EVENHAND_TRACEBACK"):
            raise
        say(f"evenhand: a defect: {type(defect).__name__}: {defect} (EVENHAND_TRACEBACK=1 shows where)")
        raise typer.Exit(ExitCode.FAILED) from None


def read_input(path: str) -> bytes:
    """Read a file or, for ``-``, standard input, unpacked if it is gzip.

    Raises
    ------
    InvalidInput
        If it cannot be read or unpacked.
    """
    try:
        packed = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as reason:
        said = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
        raise InvalidInput([FieldError("", f"{path} cannot be read: {said}.")]) from None
    if not packed.startswith(GZIP_MAGIC):
        return packed
    try:
        return gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as reason:
        raise InvalidInput([FieldError("", f"{path} is no proper gzip: {str(reason).rstrip('.')}.")]) from None


def write_report(parts: Iterable[RenderableType]) -> None:
    """Write a report for people to standard output, as wide as the terminal."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    text = as_text(parts, terminal_width(), colour)
    write_bytes(text.encode(sys.stdout.encoding or "utf-8", "replace"))


def write_bytes(data: bytes) -> None:
    """Write to standard output at once, so that a broken pipe shows here and nowhere else."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as reason:
        if reason.errno == errno.EPIPE:
            raise BrokenPipeError from None
        _forget_output()
        raise Failure(f"standard output cannot be written: {reason.strerror}.") from None


def say(line: str) -> None:
    """Write a line to standard error."""
    typer.echo(line.encode(sys.stderr.encoding or "utf-8", "backslashreplace"), err=True)


def terminal_width() -> int:
    """Columns to write in: the terminal's, COLUMNS, or 100."""
    return shutil.get_terminal_size((100, 24)).columns


def _forget_output() -> None:
    """Let what is still buffered go nowhere, so that the interpreter leaves quietly."""
    with suppress(OSError, ValueError):  # no real file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
