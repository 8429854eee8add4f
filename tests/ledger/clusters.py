"""A cluster behind a service, spoken to as a scheduler would: configure, rounds, events, reports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from cases.states import NOW, after, nodes
from starlette.testclient import TestClient

from evenhand_models import Group, Job, Node

JSON = {"Content-Type": "application/json"}


class Cluster:
    """What a test does with one cluster; every answer it does not expect fails the test."""

    def __init__(self, client: TestClient, name: str) -> None:
        self.client = client
        self.path = f"/v1/clusters/{name}"

    def configure(
        self,
        on: str | list[Node],
        groups: Mapping[str, float] | list[Group],
        *,
        rates: Mapping[str, float] | None = None,
        **policy: Any,
    ) -> dict[str, Any]:
        hardware = nodes(on) if isinstance(on, str) else on
        tree = groups if isinstance(groups, list) else [Group(id=g, share=w) for g, w in groups.items()]
        document = {
            "gpu_types": [
                {"name": t, "charge_rate": (rates or {}).get(t, 1.0)} for t in sorted({n.gpu_type for n in hardware})
            ],
            "nodes": [n.model_dump(mode="json", exclude_defaults=True) for n in hardware],
            "groups": [g.model_dump(mode="json", exclude_defaults=True) for g in tree],
            "policy": policy or None,
        }
        return self.put(document)

    def put(self, document: object, status: int | None = None) -> dict[str, Any]:
        return self._send("PUT", "", document, status or (200, 201))

    def round(
        self,
        now: datetime,
        jobs: Iterable[Job] = (),
        *,
        status: int = 200,
        key: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        document = {"now": now.isoformat(), "jobs": [wire(j) for j in jobs]} | more
        return self._send("POST", "/rounds", document, status, key)

    def events(self, *events: Mapping[str, Any], status: int = 200) -> dict[str, Any]:
        return self._send("POST", "/events", {"events": list(events)}, status)

    def get(self, path: str = "", status: int = 200, **query: str) -> dict[str, Any]:
        answer = self.client.get(self.path + path, params=query)
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def charged(self, begin: datetime = NOW, end: datetime | None = None) -> dict[str, float]:
        """Charged GPU-hours by group over a period."""
        period = {"from": begin.isoformat(), "to": (end or after(24 * 60)).isoformat()}
        return {g["group"]: g["charged_gpu_hours"] for g in self.get("/usage", **period)["groups"]}

    def _send(self, method: str, path: str, document: object, status: Any, key: str | None = None) -> dict[str, Any]:
        headers = JSON | ({} if key is None else {"Idempotency-Key": key})
        answer = self.client.request(method, self.path + path, content=json.dumps(document).encode(), headers=headers)
        expected = status if isinstance(status, tuple) else (status,)
        assert answer.status_code in expected, answer.text
        found: dict[str, Any] = answer.json()
        return found


def wire(job: Job) -> dict[str, Any]:
    return job.model_dump(mode="json", exclude_defaults=True)


def started(job: str, at: datetime, on: Mapping[str, int], **more: Any) -> dict[str, Any]:
    placement = [{"node": n, "gpus": g} for n, g in on.items()]
    return {"kind": "started", "job": job, "at": at.isoformat(), "placement": placement} | more


def ended(job: str, at: datetime, **more: Any) -> dict[str, Any]:
    return {"kind": "ended", "job": job, "at": at.isoformat()} | more


def actions(answer: Mapping[str, Any]) -> dict[str, str]:
    return {a["job"]: a["action"] for a in answer["plan"]["assignments"]}


def entitled(answer: Mapping[str, Any]) -> dict[str, float]:
    return {g["group"]: g["entitled_gpus"] for g in answer["plan"]["groups"]}


def usage(answer: Mapping[str, Any]) -> dict[str, float]:
    return {g["group"]: g["usage_gpu_hours"] for g in answer["plan"]["groups"]}
