"""A replay asked by REST: from its body to runs, and to what came of it. Only in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evenhand.replay import Scheduler, WorldRules
from evenhand.scenarios import ReplayCase
from evenhand_api.commands.terminal import Failure
from evenhand_api.report.comparison import MOST_RUNS, compare
from evenhand_api.report.page import comparison_page
from evenhand_api.traces import Reading, ReadOptions
from evenhand_api.traces.assemble import assemble
from evenhand_api.traces.formats import format_of, parse
from evenhand_api.whatif.pools import Here
from evenhand_api.whatif.runs import Base, Run, check_runs
from evenhand_api.whatif.store import Memory
from evenhand_api.whatif.sweep import sweep
from evenhand_models import ClusterState, FieldError, InvalidInput, Policy
from evenhand_models.replays import ReplayRequest, parse_replay

MOST_ASKED = 200
"""Most runs one request may ask for."""
FIRST_ODD_ROWS = 20


@dataclass(frozen=True)
class Asked:
    """A replay, ready to run."""

    base: Base
    runs: tuple[Run, ...]
    reading: Reading


def asked(body: bytes) -> Asked:
    """Read a replay request and check all of it, its trace and its scenarios too.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are relative to the body.
    """
    request = parse_replay(body)
    errors: list[FieldError] = []
    deciders = _schedulers(request, errors)
    names = [scenario.name for scenario in request.scenarios]
    errors += [
        FieldError(f"/scenarios/{i}/name", f"two scenarios are called {name!r}.")
        for i, name in enumerate(names)
        if name in names[:i]
    ]
    runs = tuple(Run(one, who, seed) for one in request.scenarios for who in deciders for seed in request.seeds)
    if len(runs) > MOST_ASKED:
        errors.append(FieldError("", f"it asks for {len(runs):,} runs, more than the {MOST_ASKED} of one request."))
    cluster = _cluster(request, errors)
    reading = None if errors else _reading(request, cluster, errors)
    if errors or reading is None:
        raise InvalidInput(errors)
    case = ReplayCase(reading.trace, cluster, request.policy or Policy(), WorldRules())
    base = Base(case, None if request.until_day is None else max(1, round(request.until_day * 86_400)))
    _check(base, request, runs)
    return Asked(base, runs, reading)


def _schedulers(request: ReplayRequest, errors: list[FieldError]) -> list[Scheduler]:
    found = []
    for i, name in enumerate(request.schedulers):
        if name in set(Scheduler):
            found.append(Scheduler(name))
        else:
            errors.append(FieldError(f"/schedulers/{i}", f"{name!r} is none of {', '.join(Scheduler)}."))
    return found


def _cluster(request: ReplayRequest, errors: list[FieldError]) -> ClusterState:
    parts = request.cluster
    nothing = ClusterState(now=datetime(2001, 1, 1, tzinfo=UTC), gpu_types=(), nodes=(), groups=(), jobs=())
    try:
        return ClusterState(now=nothing.now, gpu_types=parts.gpu_types, nodes=parts.nodes, groups=parts.groups, jobs=())
    except InvalidInput as invalid:
        errors += (error.under("/cluster") for error in invalid.errors)
        return nothing


def _reading(request: ReplayRequest, cluster: ClusterState, errors: list[FieldError]) -> Reading | None:
    options = ReadOptions(
        group_by=request.trace.group_by,
        groups=frozenset(group.id for group in cluster.groups),
        gpu_types=frozenset(kind.name for kind in cluster.gpu_types),
    )
    text = request.trace.text
    try:
        return assemble(request.trace.name, parse(text, format_of(text), options), options)
    except InvalidInput as invalid:
        at = {"/group_by": "/trace/group_by"}
        errors += (FieldError(at.get(error.pointer, "/trace/text"), error.message) for error in invalid.errors)
        return None


def _check(base: Base, request: ReplayRequest, runs: tuple[Run, ...]) -> None:
    """Lay scenarios over the base; pointers name their places."""
    places = {scenario.name: i for i, scenario in enumerate(request.scenarios)}
    try:
        check_runs(base, list(runs))
    except InvalidInput as invalid:
        errors = []
        for error in invalid.errors:
            name, _, pointer = error.pointer.rpartition("#")
            errors.append(FieldError(f"/scenarios/{places[name]}{pointer}", error.message))
        raise InvalidInput(errors) from None


def outcome(request: Asked, number: str, tell: Callable[[float, int], None]) -> tuple[bytes, str | None]:
    """Replay all of it; `tell` takes the share that is done and the runs that are finished.

    Returns
    -------
    bytes, str or None
        The outcome as JSON, and a page with plots where matplotlib is there.
    """
    progress = lambda share, finished, _: tell(share, finished)  # noqa: E731
    results = sweep(request.base, request.runs, Here(), Memory(), progress)
    comparison = compare(results)
    try:
        page: str | None = comparison_page(comparison.first(MOST_RUNS))
    except Failure:  # no matplotlib: the figures are there all the same
        page = None
    odd = request.reading.odd
    document: Mapping[str, Any] = {
        "id": number,
        "trace": request.reading.trace.name,
        "credit": request.reading.trace.credit,
        "t0": request.reading.trace.t0.isoformat().replace("+00:00", "Z"),
        "odd_rows": len(odd),
        "first_odd_rows": [f"line {row.line}: {row.message}" for row in odd[:FIRST_ODD_ROWS]],
        **comparison.to_json(),
        "results": results,
        "html": page is not None,
    }
    return json.dumps(document, ensure_ascii=False).encode(), page
