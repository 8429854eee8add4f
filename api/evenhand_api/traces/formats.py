"""Which layout a file has, told by how it begins, and its reader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import StrEnum

from evenhand_api.traces.neutral import parse_neutral
from evenhand_api.traces.philly import parse_philly
from evenhand_api.traces.public_csv import parse_alibaba, parse_helios
from evenhand_api.traces.rows import RawTrace, ReadOptions
from evenhand_api.traces.slurm import parse_sacct
from evenhand_api.traces.slurm_json import parse_sacct_json
from evenhand_api.traces.swf import parse_swf
from evenhand_models import FieldError, InvalidInput


class Format(StrEnum):
    """The layouts that are read."""

    CSV = "csv"
    """The neutral CSV."""
    SACCT = "sacct"
    """``sacct --parsable2``."""
    SACCT_JSON = "sacct-json"
    """``sacct --json``."""
    SWF = "swf"
    """The Standard Workload Format."""
    PHILLY = "philly"
    """Philly's ``cluster_job_log``."""
    HELIOS = "helios"
    """Helios's ``cluster_log.csv``."""
    ALIBABA = "alibaba"
    """Alibaba's ``openb_pod_list`` of 2023."""


def format_of(text: str) -> Format:
    """Tell the layout of a text by its beginning.

    Raises
    ------
    InvalidInput
        If it looks like none.
    """
    head = text.lstrip("\ufeff \t\r\n")
    top = head.partition("\n")[0]
    names = {name.strip().lower() for name in re.split(r"[,|]", top)}
    signs = {
        Format.SACCT_JSON: head.startswith("{"),
        Format.PHILLY: head.startswith("["),
        Format.SWF: head.startswith(";") or re.fullmatch(r"(\s*-?[\d.]+){18}\s*", top) is not None,
        Format.CSV: {"job_id", "submit_s"} <= names,
        Format.HELIOS: {"job_id", "gpu_num"} <= names,
        Format.ALIBABA: {"num_gpu", "gpu_milli"} <= names,
        Format.SACCT: "|" in top,
    }
    found = next((layout for layout, fits in signs.items() if fits), None)
    if found is None:
        raise InvalidInput([FieldError("", f"It begins like none of the layouts that are read: {', '.join(Format)}.")])
    return found


def parse(text: str, layout: Format, options: ReadOptions) -> RawTrace:
    """Read a text of a known layout.

    Raises
    ------
    InvalidInput
        If it is not of that layout.
    """
    readers: dict[Format, Callable[[], RawTrace]] = {
        Format.CSV: lambda: parse_neutral(text, options),
        Format.SACCT: lambda: parse_sacct(text, options),
        Format.SACCT_JSON: lambda: parse_sacct_json(_json(text)),
        Format.SWF: lambda: parse_swf(text),
        Format.PHILLY: lambda: parse_philly(_json(text)),
        Format.HELIOS: lambda: parse_helios(text),
        Format.ALIBABA: lambda: parse_alibaba(text),
    }
    return readers[layout]()


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as reason:
        raise InvalidInput([FieldError("", f"It is no JSON: {reason}.")]) from None
