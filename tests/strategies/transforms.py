"""What may be done to a state or a plan, for laws that compare two rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from evenhand_models import ClusterState, Plan, Policy
from strategies.clusters import state_of

Wire = dict[str, Any]


def wire_of(state: ClusterState) -> Wire:
    """Write a state as wire JSON, defaults left out."""
    return json.loads(state.model_dump_json(exclude_defaults=True, warnings=False))


def changed(state: ClusterState, change: Callable[[Wire], object]) -> ClusterState:
    """Return the state after `change` has edited its wire JSON."""
    wire = wire_of(state)
    change(wire)
    return state_of(wire)


def shuffled(state: ClusterState, rng: Random) -> ClusterState:
    """Return the same state with every list and every mapping in another order."""

    def mix(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            rng.shuffle(keys)
            return {key: mix(value[key]) for key in keys}
        if isinstance(value, list):
            return rng.sample([mix(one) for one in value], len(value))
        return value

    return state_of(mix(wire_of(state)))


class Renaming:
    """New names for everything in a state, in the same order as the old ones.

    Order is kept over all names of a state together: ids of groups, jobs, nodes, types, labels, label values.
    A path (`a/b`) is renamed part by part: every part gets a prefix that grows with its rank among all parts.
    """

    def __init__(self, state: ClusterState) -> None:
        names = set(_names(wire_of(state)))
        parts = sorted({part for name in names for part in name.split("/")})
        self._parts = {part: f"{i:04}x{part[::-1]}" if part else "" for i, part in enumerate(parts)}
        self.there = {name: "/".join(self._parts[part] for part in name.split("/")) for name in names}
        self.back = {new: old for old, new in self.there.items()}

    def keeps_order(self) -> bool:
        """Whether old and new names sort alike, which a separator below other characters could upset."""
        return [self.back[new] for new in sorted(self.back)] == sorted(self.there)

    def state(self, state: ClusterState) -> ClusterState:
        """Return the state under its new names."""
        return state_of(_rename_state(wire_of(state), self.there))

    def plan(self, plan: Plan) -> Wire:
        """Return a plan about the renamed state under the old names, as comparable JSON."""
        return _rename_all(comparable(plan), self.back)


def _names(wire: Wire) -> Iterable[str]:
    """Name everything a renaming has to know: ids, types, labels and their values."""
    for one in wire["gpu_types"]:
        yield one["name"]
    for node in wire["nodes"]:
        yield node["name"]
        yield from _both(node.get("labels", {}))
    for group in wire["groups"]:
        yield group["id"]
    for used in wire.get("usage") or ():
        yield used["group"]
    for job in wire["jobs"]:
        yield from (job["id"], job["group"], *job["speedup"])
        yield from _both(job.get("requires", {}))
        yield from (part["node"] for part in job.get("placement", ()))
        if "same" in job:
            yield job["same"]


def _both(labels: dict[str, str]) -> Iterable[str]:
    yield from labels
    yield from labels.values()


def _rename_state(wire: Wire, new: dict[str, str]) -> Wire:
    """Put new names where a state has names."""
    for one in wire["gpu_types"]:
        one["name"] = new[one["name"]]
    for node in wire["nodes"]:
        node["name"], node["gpu_type"] = new[node["name"]], new[node["gpu_type"]]
        if "labels" in node:
            node["labels"] = {new[key]: new[value] for key, value in node["labels"].items()}
    for group in wire["groups"]:
        group["id"] = new[group["id"]]
        if group.get("parent") is not None:
            group["parent"] = new[group["parent"]]
    for used in wire.get("usage") or ():
        used["group"] = new[used["group"]]
    for job in wire["jobs"]:
        _rename_job(job, new)
    return wire


def _rename_job(job: Wire, new: dict[str, str]) -> None:
    job["id"], job["group"] = new[job["id"]], new[job["group"]]
    job["speedup"] = {new[name]: speed for name, speed in job["speedup"].items()}
    if "requires" in job:
        job["requires"] = {new[key]: new[value] for key, value in job["requires"].items()}
    if "same" in job:
        job["same"] = new[job["same"]]
    for part in job.get("placement", ()):
        part["node"] = new[part["node"]]


def _rename_all(value: Any, new: dict[str, str]) -> Any:
    """Put new names wherever a whole string is a name; sentences are dropped, they name things inside."""
    if isinstance(value, dict):
        return {
            new.get(key, key): _rename_all(one, new)
            for key, one in value.items()
            if key not in ("message", "cheapest_change")
        }
    if isinstance(value, list):
        return [_rename_all(one, new) for one in value]
    return new.get(value, value) if isinstance(value, str) else value


def comparable(plan: Plan) -> Wire:
    """Write a plan as JSON without `solver`: what equal rounds must have equal."""
    return json.loads(plan.model_dump_json(exclude={"solver"}, warnings=False))


def without_sentences(wire: Wire) -> Wire:
    """Drop messages from comparable JSON, which name things inside sentences."""
    return _rename_all(wire, {})


def apply_plan(state: ClusterState, plan: Plan) -> ClusterState:
    """Return the state of a real cluster at the same instant, once everything in the plan is done.

    Starts and migrations run since `now`; a resized job has its new placement; a preempted one waits again or
    is gone; terminating ones are gone; the rest is as it was.
    """
    wire = wire_of(state)
    answers = {a.job: a for a in plan.assignments}
    jobs = []
    for job in wire["jobs"]:
        answer = answers[job["id"]]
        if job.get("state") == "terminating" or (answer.action == "preempt" and not answer.requeue):
            continue
        if answer.action in ("start", "migrate"):
            job |= {"state": "running", "started_at": wire["now"]}
            job.pop("checkpointed_at", None)
        if answer.action in ("start", "migrate", "resize"):
            job["placement"] = [{"node": part.node, "gpus": part.gpus} for part in answer.placement]
        if answer.action == "preempt":
            for name in ("state", "started_at", "placement", "checkpointed_at", "utilization"):
                job.pop(name, None)
        jobs.append(job)
    return state_of(wire | {"jobs": jobs})


def policy_with(policy: Policy, **changes: Any) -> Policy:
    """Return a policy with some fields changed."""
    return Policy.model_validate(policy.model_dump() | changes)
