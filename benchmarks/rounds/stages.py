"""What a round costs outside its search, stage by stage: JSON bytes in, an audited and sealed plan as JSON bytes out.

The greedy plan stands for the answer of the search. CPU seconds of this process, the best of a few repeats.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import process_time

from generate import LOOSE, SIZES, TIGHT, document

from evenhand import rounds
from evenhand.beside import Beside
from evenhand.deadline import Deadline
from evenhand.program.index import build_index
from evenhand_models import parse_document
from evenhand_models.collection import without_collection

SEARCH = ("target", "measure", "index", "formulate")
"""Stages that belong to the search."""


class Stages:
    """CPU seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add what the block takes."""
        start = process_time()
        try:
            with without_collection():  # as `Deadline.stage` does
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + process_time() - start


def once(body: bytes) -> dict[str, float]:
    """Seconds of each stage of one round."""
    stage = Stages()
    with stage("parse"):
        request = parse_document(body)
    state, policy = request.state, request.effective_policy
    with stage("read"):
        s = rounds.take_snapshot(state, policy)
    with stage("entitle"):
        entitled = rounds.entitle(s)
        owed = rounds.owed_gangs(s, entitled)
    with stage("target"):
        target = rounds.fair_target(s, entitled)
    with stage("index"):
        index = build_index(s, owed)
    with stage("formulate"):
        rounds.formulate(s, entitled, target, owed, index)
    with stage("greedy"):
        first = rounds.greedy(s, entitled, index)
    with stage("top_up"):
        first = rounds.top_up(s, entitled, index, rounds.restore(s, first))
    deadline = _CpuStages(stage)
    prepared = rounds.prepare(state, policy, s, entitled, deadline)
    measured = Beside(1).start(partial(rounds.measure, s, target, deadline))
    the_round = rounds._Round(s, entitled, target, owed, index, measured, prepared)
    plan = rounds._write(the_round, rounds.Solved(first, None, False, False, {}), deadline)  # type: ignore[arg-type]
    with stage("audit"):
        report = prepared.auditor.judge(plan)
    assert report.ok, report.findings[0]
    with stage("seal"):
        sealed = rounds.seal(plan)
    with stage("dump"):
        sealed.to_json_bytes()
    return stage.seconds


class _CpuStages(Deadline):
    """A deadline that measures CPU seconds."""

    def __init__(self, stages: Stages) -> None:
        super().__init__(3_600.0)
        self._stages = stages

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add what the block takes to a stage."""
        with self._stages(name):
            yield


def best_of(body: bytes, repeats: int) -> dict[str, float]:
    """The least each stage took."""
    runs = [once(body) for _ in range(repeats)]
    return {name: min(run[name] for run in runs) for name in runs[0]}


def main() -> None:
    """Print a table: stages against sizes, milliseconds, and the cost of a job."""
    parser = argparse.ArgumentParser(description="Cost of a round outside its search, CPU milliseconds by stage.")
    parser.add_argument(
        "what", nargs="*", default=["S", "M", "L", "XL", "XXL"], help="sizes, or files that hold states"
    )
    parser.add_argument("--tight", action="store_true", help="envy-free targets and demand 2.5 x supply")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="seconds as JSON")
    asked = parser.parse_args()
    found = {}
    for what in asked.what:
        body = document(SIZES[what], TIGHT if asked.tight else LOOSE) if what in SIZES else _file(what)
        jobs = len(parse_document(body).state.jobs)
        found[what] = {"jobs": jobs, "seconds": best_of(body, asked.repeats)}
    if asked.json:
        json.dump(found, sys.stdout, indent=1)
        return
    _table(found)


def _file(name: str) -> bytes:
    raw = Path(name).read_bytes()
    return gzip.decompress(raw) if name.endswith(".gz") else raw


def _table(found: dict[str, dict[str, object]]) -> None:
    names = list(dict.fromkeys(n for run in found.values() for n in run["seconds"]))  # type: ignore[attr-defined]
    heads = [Path(what).name[:14] for what in found]
    print(f"{'ms CPU':14}" + "".join(f"{head:>15}" for head in heads))
    for name in names:
        print(f"{name:14}" + "".join(f"{1000 * run['seconds'].get(name, 0.0):15.1f}" for run in found.values()))  # type: ignore[attr-defined]
    sums = [sum(v for n, v in run["seconds"].items() if n not in SEARCH) for run in found.values()]  # type: ignore[attr-defined]
    print(f"{'outside search':14}" + "".join(f"{1000 * total:15.1f}" for total in sums))
    per_job = [1e6 * total / run["jobs"] for total, run in zip(sums, found.values(), strict=True)]  # type: ignore[operator]
    print(f"{'us a job':14}" + "".join(f"{x:15.1f}" for x in per_job))


if __name__ == "__main__":
    main()
