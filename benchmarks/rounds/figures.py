"""`make bench`: how long a round takes and how good it is proven to be, by size and contention, beside its peers.

A figure is JSON text in, an audited plan as JSON text out, in a process of its own. CPU seconds, because machines are shared;
`gap` is the proven one, as a share of the fair target's throughput, in which a GPU that a leaf is short of counts 1 to 300
(docs/model.md, O).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from churn import next_round
from expectations import EXPECTED, expected_of, worse
from gavel import beside_gavel
from generate import LOOSE, SIZES, SLACK, TIGHT, document
from page import draw, page
from peers import SameProgram
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import evenhand.deadline
from evenhand import Session, allocate
from evenhand_models import parse_document

LIMITS_S = {"S": 0.5, "M": 10.0, "L": 10.0, "XL": 15.0, "XXL": 30.0}
"""Time limits of the rounds, by size."""
SHORTER_S = {
    "loose": {"S": 0.3, "M": 0.5, "L": 1.2, "XL": 3.0, "XXL": 15.0},
    "warm": {"S": 0.05, "M": 0.2, "L": 0.6, "XL": 2.0, "XXL": 6.0},
}
"""Where targets are loose, and where a session knows the round before; by the first word of the corner."""
CHURN = 0.01
"""Part of the jobs that a warm round has not seen."""
SMALL, SHORT_S = ("S", "M"), 0.5
"""Sizes at which CBC and Gavel's programs are run too, and the limit of the round that is held against the latter."""
CORNERS = {
    "loose": SLACK,
    "loose, longer": SLACK,
    "loose, three levels": LOOSE,
    "loose, three levels, longer": LOOSE,
    "tight": TIGHT,
    "warm": SLACK,
    "warm, three levels": LOOSE,
    "demand 0.8": replace(LOOSE, demand=0.8),
    "demand 1.5": replace(TIGHT, demand=1.5),
    "demand 4": replace(TIGHT, demand=4.0),
    "nothing pinned": replace(TIGHT, pinned=0.0),
    "60 % pinned": replace(TIGHT, pinned=0.6),
    "90 % pinned": replace(TIGHT, pinned=0.9, busy=0.95),
    "odd gangs": replace(TIGHT, odd=0.3),
    "racks": replace(TIGHT, same_rack=0.5),
    "all alike": replace(TIGHT, alike=True, kinds=1),
    "all different": replace(TIGHT, kinds=60),
    "one big gang": replace(TIGHT, big_gang=512),
}


def limit_of(size: str, corner: str) -> float:
    """The time limit of a corner."""
    return (LIMITS_S if corner.endswith("longer") else SHORTER_S.get(corner.split(",", maxsplit=1)[0], LIMITS_S))[size]


def one(size: str, corner: str, seed: int, limit_s: float, peers_s: float, workers: int) -> dict[str, Any]:
    """Solve one round, in this process; with several workers by the wall clock, and as far as the clock allows."""
    body = document(SIZES[size], CORNERS[corner], seed)
    parse_document(document(SIZES["S"], LOOSE, seed))  # imports and caches of a resident process
    allocate(parse_document(document(SIZES["S"], LOOSE, seed)).state)
    clock = process_time if workers == 1 else perf_counter
    evenhand.deadline.perf_counter = clock  # type: ignore[attr-defined]  limits in CPU seconds: machines are shared
    threads = {"workers": workers, "deterministic": workers == 1}
    decide = allocate
    if corner.startswith("warm"):
        before = parse_document(body)
        session = Session(before.effective_policy.model_copy(update={"time_limit_s": LIMITS_S[size], **threads}))
        first = session.allocate(before.state)
        session.policy = session.policy.model_copy(update={"time_limit_s": limit_s})
        body = json.dumps(next_round(json.loads(body), first, CHURN, seed), separators=(",", ":")).encode()
        decide = lambda state, _: session.allocate(state)  # noqa: E731
    start = clock()
    request = parse_document(body)
    policy = request.effective_policy.model_copy(update={"time_limit_s": limit_s, **threads})
    plan = decide(request.state, policy)
    plan.to_json_bytes()
    proof = plan.certificate
    found: dict[str, Any] = {
        "size": size, "corner": corner if workers == 1 else f"{corner}, {workers} workers", "seed": seed,
        "limit_s": limit_s, "cpu_s": clock() - start,
        "status": proof.status.value, "gap": proof.gap, "objective": proof.objective, "bound": proof.bound,
        "target_throughput": proof.target_throughput, "stages_ms": plan.solver.stages_ms,
        "goals": {g.name: g.value * g.weight for g in proof.goals},
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }  # fmt: skip
    if peers_s > 0:
        same = SameProgram(request)
        peers = [same.greedy, same.cp_sat(peers_s), same.highs(peers_s)]
        if size in SMALL:
            peers.append(same.cbc(peers_s))
            found["gavel"] = beside_gavel(request, SHORT_S, 4 * peers_s)
        found["peers"] = [{"name": p.name, "value": p.value, "bound": p.bound, "cpu_s": p.cpu_s} for p in peers]
    return found


def apart(size: str, corner: str, seed: int, limit_s: float, peers_s: float, workers: int) -> dict[str, Any]:
    """The same, in a process of its own."""
    asked = ["--one", size, corner, str(seed), str(limit_s), str(peers_s), str(workers)]
    done = subprocess.run([sys.executable, __file__, *asked], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"size": size, "corner": corner, "seed": seed, "error": done.stderr.strip().splitlines()[-1][:300]}
    return dict(json.loads(done.stdout))


def table(rows: list[dict[str, Any]]) -> Table:
    """Median and worst by size and corner."""
    shown = Table("size", "corner", "runs", "CPU s", "worst", "gap %", "worst", "optimal", "MB")
    for size, corner in dict.fromkeys((r["size"], r["corner"]) for r in rows):
        cell = [r for r in rows if (r["size"], r["corner"]) == (size, corner) and "error" not in r]
        if not cell:
            shown.add_row(size, corner, "0", *["-"] * 6)
            continue
        gaps = [float("inf") if r["gap"] is None else 100 * r["gap"] for r in cell]
        cpu = [r["cpu_s"] for r in cell]
        shown.add_row(
            size, corner, str(len(cell)), f"{median(cpu):.2f}", f"{max(cpu):.2f}", f"{median(gaps):.3g}", f"{max(gaps):.3g}",
            str(sum(r["status"] == "optimal" for r in cell)), str(max(r["memory_mb"] for r in cell)),
        )  # fmt: skip
    return shown


def main() -> None:
    """Run the cells asked for, show a table, write all figures as JSON."""
    parser = argparse.ArgumentParser(description="Rounds by size and contention, beside their peers.")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["S", "M", "L"])
    parser.add_argument("--corners", nargs="+", choices=CORNERS, default=["loose", "tight"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit-s", type=float, help="time limit of every round; else by size")
    parser.add_argument("--workers", type=int, default=1, help="threads of a round; several: wall seconds")
    parser.add_argument("--peers-s", type=float, default=0.0, help="CPU seconds for each peer, 0: none")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--doc", type=Path, help="write the page there, its picture to img/ beside it")
    parser.add_argument("--again", type=Path, help="take the figures of an earlier run (--json) instead of measuring")
    parser.add_argument("--expect", action="store_true", help="keep what was measured as expectations")
    parser.add_argument("--check", action="store_true", help="fail where something is clearly worse than expected")
    parser.add_argument("--one", nargs=6, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        size, corner, seed, limit, peers, workers = asked.one
        print(json.dumps(one(size, corner, int(seed), float(limit), float(peers), int(workers))))
        return
    rows = json.loads(asked.again.read_text()) if asked.again else measured(asked)
    Console().print(table(rows))
    for row in rows:
        if "error" in row:
            Console().print(f"{row['size']} {row['corner']} {row['seed']}: {row['error']}")
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")
    if asked.expect:
        EXPECTED.write_text(json.dumps(expected_of(rows), indent=1) + "\n")
    if asked.doc:
        sizes = {name: (size.nodes, size.jobs) for name, size in SIZES.items()}
        (asked.doc.parent / "img").mkdir(exist_ok=True)
        draw(rows, sizes, asked.doc.parent / "img" / "performance.svg")
        asked.doc.write_text(page(rows, sizes, "img/performance.svg"))
    if asked.check and (complaints := worse(rows, json.loads(EXPECTED.read_text()))):
        sys.exit("\n".join(complaints))


def measured(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """All cells, one after the other, with a bar."""
    cells = [(z, c, k) for z in asked.sizes for c in asked.corners for k in range(asked.seeds)]
    rows = []
    with Progress() as progress:
        task = progress.add_task("rounds", total=len(cells))
        for size, corner, seed in cells:
            progress.update(task, description=f"{size} {corner} {seed}")
            limit_s = asked.limit_s or limit_of(size, corner)
            rows.append(apart(size, corner, seed, limit_s, asked.peers_s, asked.workers))
            progress.advance(task)
    return rows


if __name__ == "__main__":
    main()
