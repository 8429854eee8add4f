"""A small cluster's life, minute by minute, as a scheduler would report it: the same seed, the same requests.

What it sends depends on the plans it gets, on nothing else. Some events it forgets to send, some it sends twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from fractions import Fraction
from random import Random
from typing import Any

from cases.states import NOW, job

from evenhand_models import Job
from ledger.clusters import wire
from ledger.plain import Seen, Told, World

GROUPS = ("a", "b", "c")
NODES = ("n0", "n1")
CONFIG: dict[str, Any] = {
    "gpu_types": [{"name": "H100", "charge_rate": 2.0}],
    "nodes": [{"name": name, "gpu_type": "H100", "gpus": 8} for name in NODES],
    "groups": [{"id": name, "share": share} for name, share in zip(GROUPS, (1, 2, 0), strict=True)],
    "policy": {"time_limit_s": 60.0},
}
CROWDED = (0, 1, 2, 3)
"""New jobs a minute: more than the cluster can do, the queue grows by a job a minute."""
Send = Callable[[str, str, bytes], dict[str, Any]]
"""From kind (round or events), idempotency key and body to the answer."""


class Life:
    """A cluster that lives `rounds` minutes; each minute brings one of `arrivals` new jobs."""

    def __init__(self, seed: int, rounds: int, arrivals: Sequence[int] = CROWDED) -> None:
        self._rng = Random(seed)
        self._rounds = rounds
        self._arrivals = arrivals
        self._jobs: dict[str, Job] = {}
        self._ends: dict[str, int] = {}
        self._born = 0
        self.world = World(rate=Fraction(2))
        self._groups: dict[str, str] = {}
        self._contracts: dict[str, int] = {}
        self.hashes: list[str] = []

    def live(self, send: Send) -> None:
        """Send everything, in order."""
        for minute in range(self._rounds):
            self._arrive(minute)
            events = list(self._leave(minute))
            if events:
                send("events", f"e{minute}", json.dumps({"events": events}).encode())
            now = NOW + timedelta(minutes=minute)
            body = {"now": now.isoformat(), "state_version": minute, "jobs": [wire(j) for j in self._jobs.values()]}
            self._saw(minute)
            answer = send("round", f"r{minute}", json.dumps(body).encode())
            assert answer["round"] == minute + 1
            self.hashes.append(answer["plan"]["solver"]["plan_hash"])
            events = list(self._apply(minute, answer["plan"]))
            if events:
                send("events", f"s{minute}", json.dumps({"events": events}).encode())
        self.world.group = self._groups
        self.world.charged = {name: c > 0 and self._groups[name] != "c" for name, c in self._contracts.items()}

    def _arrive(self, minute: int) -> None:
        for _ in range(self._rng.choice(self._arrivals)):
            name = f"j{self._born:04}"
            self._born += 1
            group, contract = self._rng.choice(GROUPS), self._rng.choice((0, 5, 60))
            now = NOW + timedelta(minutes=minute)
            gpus = self._rng.choice((1, 2, 4, 8))
            self._jobs[name] = job(name, group, gpus, c=contract, submitted_at=now)
            self._groups[name], self._contracts[name] = group, contract

    def _leave(self, minute: int) -> Iterator[dict[str, Any]]:
        """End the jobs whose time has come; one in four ends is never reported."""
        for name in [n for n, end in self._ends.items() if end == minute]:
            start = self._start(name)
            del self._jobs[name], self._ends[name]
            if self._rng.random() < 0.75:
                yield from self._report(Told("ended", minute, name, start=start))

    def _apply(self, minute: int, plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Do what the plan says; one in four starts is never reported, nor one in four preemptions."""
        for answer in sorted(plan["assignments"], key=lambda a: a["action"] != "preempt"):
            name, action = answer["job"], answer["action"]
            if action in ("preempt", "migrate") and self._rng.random() < 0.75:
                yield from self._report(Told("ended", minute, name, start=self._start(name)))
            if action == "preempt":
                self._jobs[name] = self._changed(name, state="pending", started_at=None, placement=())
                self._ends.pop(name, None)
            if action in ("start", "migrate"):
                now = NOW + timedelta(minutes=minute)
                fields = {"state": "running", "started_at": now, "placement": answer["placement"]}
                self._jobs[name] = self._changed(name, **fields)
                self._ends[name] = minute + self._rng.randint(1, 20)
                on = tuple((part["node"], part["gpus"]) for part in answer["placement"])
                if self._rng.random() < 0.75:
                    yield from self._report(Told("started", minute, name, on=on))

    def _report(self, told: Told) -> Iterator[dict[str, Any]]:
        self.world.events.append(told)
        event = {"kind": told.kind, "job": told.job, "at": (NOW + timedelta(minutes=told.at)).isoformat()}
        if told.kind == "started":
            event["placement"] = [{"node": n, "gpus": g} for n, g in told.on]
        elif told.start is not None:
            event["started_at"] = (NOW + timedelta(minutes=told.start)).isoformat()
        for _ in range(self._rng.choice((1, 1, 2))):
            yield event

    def _saw(self, minute: int) -> None:
        holds = {
            (j.id, self._start(j.id)): tuple((part.node, part.gpus) for part in j.placement)
            for j in self._jobs.values()
            if j.holds_gpus
        }
        self.world.rounds.append(Seen(minute, holds, {}))

    def _start(self, name: str) -> int:
        started = self._jobs[name].started_at
        assert started is not None
        return int((started - NOW).total_seconds() // 60)

    def _changed(self, name: str, **fields: Any) -> Job:
        return Job.model_validate(self._jobs[name].model_dump() | fields)
