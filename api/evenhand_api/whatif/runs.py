"""One replay of many: what it is made of, its name by content, and its result as bytes that never differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from evenhand.replay import EnvyWatch, Scheduler, measure, replay
from evenhand.scenarios import ReplayCase, laid_over
from evenhand.version import VERSION
from evenhand_api.traces.neutral import write_neutral
from evenhand_api.whatif.series import series_of
from evenhand_models import InvalidInput, canonical_state_bytes
from evenhand_models.scenarios import Scenario
from evenhand_models.traces import Trace

Fraction = Callable[[float], None]
"""Called with the share of a run that is done, 0 to 1."""
FORM = 2
"""Form of the results; part of their names, so that old ones are not taken for new ones."""


@dataclass(frozen=True, slots=True)
class Run:
    """One replay: a scenario laid over the base, a scheduler, a seed."""

    scenario: Scenario
    scheduler: Scheduler
    seed: int

    @property
    def label(self) -> str:
        """How it is headed beside others, seeds aside."""
        return (
            self.scenario.name if self.scheduler is Scheduler.EVENHAND else f"{self.scenario.name} / {self.scheduler}"
        )


@dataclass(frozen=True, slots=True)
class Base:
    """What all runs have in common, put to every process once.

    Attributes
    ----------
    until_s : seconds after the beginning of the trace at which replays end; None: with the trace.
    """

    case: ReplayCase
    until_s: int | None = None

    def digest(self) -> str:
        """SHA-256 of all that is in it."""
        case = self.case
        parts = [
            _trace_text(case.trace),
            canonical_state_bytes(case.cluster).decode(),
            case.policy.model_dump_json(),
            json.dumps(asdict(case.rules), sort_keys=True),
            str(self.until_s),
        ]
        return sha256("\x1e".join(parts).encode()).hexdigest()


def _trace_text(trace: Trace) -> str:
    """All of a trace as text."""
    changes = [
        [c.at_s, [n.model_dump(mode="json") for n in c.nodes], c.gone, c.groups and [g.model_dump() for g in c.groups]]
        for c in trace.changes
    ]
    rest = [
        trace.name,
        trace.t0.isoformat(),
        trace.end_s,
        [asdict(span) for span in trace.history],
        changes,
        trace.credit,
    ]
    return json.dumps(rest) + write_neutral(trace)


def run_key(base_digest: str, run: Run) -> str:
    """Name of a run by its content: equal names, equal results."""
    parts = [str(FORM), VERSION, base_digest, run.scenario.model_dump_json(), str(run.scheduler), str(run.seed)]
    return sha256("\x1e".join(parts).encode()).hexdigest()[:32]


def check_runs(base: Base, runs: list[Run]) -> None:
    """Lay every scenario over the base once, so that what does not fit is said before hours are spent.

    Raises
    ------
    InvalidInput
        With pointers that begin with the scenario's name.
    """
    for scenario in {run.scenario.name: run.scenario for run in runs}.values():
        try:
            laid_over(base.case, scenario)
        except InvalidInput as invalid:
            raise invalid.under(f"{scenario.name}#") from None


def execute(base: Base, run: Run, key: str, fraction: Fraction | None = None) -> bytes:
    """Replay one run and write its result as JSON; equal input, equal bytes."""
    case = laid_over(base.case, run.scenario, run.seed)
    said = fraction or (lambda _: None)
    end_s = case.trace.end_s if base.until_s is None else min(base.until_s, case.trace.end_s)
    watch = EnvyWatch.over(end_s)
    result = replay(
        case.trace,
        case.cluster,
        case.policy,
        run.scheduler,
        rules=case.rules,
        seed=run.seed,
        until_s=base.until_s,
        progress=lambda now_s, end_s: said(now_s / end_s if end_s else 1.0),
        watch=watch,
    )
    gpus: dict[str, int] = {}
    for node in case.cluster.nodes:
        gpus[node.gpu_type] = gpus.get(node.gpu_type, 0) + node.usable_gpus
    document: dict[str, Any] = {
        "form": FORM,
        "key": key,
        "engine_version": VERSION,
        "label": run.label,
        "scenario": run.scenario.model_dump(mode="json", exclude_defaults=True),
        "scheduler": str(run.scheduler),
        "seed": run.seed,
        "trace": case.trace.name,
        "credit": case.trace.credit,
        "t0": case.trace.t0.isoformat().replace("+00:00", "Z"),
        "jobs": len(case.trace.jobs),
        "gpus": dict(sorted(gpus.items())),
        "policy": result.policy.model_dump(mode="json"),
        "rules": asdict(result.rules),
        "metrics": asdict(measure(result, window_envy=watch.result())),
        "series": series_of(result),
    }
    return json.dumps(document, sort_keys=True, ensure_ascii=False).encode() + b"\n"
