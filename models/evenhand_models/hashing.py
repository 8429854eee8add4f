"""One form for equal things: canonical bytes and SHA-256 of states and plans.

The canonical form of a state does not depend on the order of its lists, on the order of keys, on the time
zone instants were written in, on ``1`` against ``1.0``, or on whether a default was spelled out.
"""

from __future__ import annotations

from hashlib import sha256
from operator import attrgetter

from pydantic import TypeAdapter

from evenhand_models.cluster import ClusterState
from evenhand_models.plan import Plan
from evenhand_models.writing import Written, written

_STATE = TypeAdapter(ClusterState)


def canonical_state_bytes(state: ClusterState) -> bytes:
    """Return a state as compact UTF-8 JSON with its lists in the order of their names."""
    name, identity, group = attrgetter("name"), attrgetter("id"), attrgetter("group")
    ordered = state.model_copy(
        update={
            "gpu_types": tuple(sorted(state.gpu_types, key=name)),
            "nodes": tuple(sorted(state.nodes, key=name)),
            "groups": tuple(sorted(state.groups, key=identity)),
            "usage": None if state.usage is None else tuple(sorted(state.usage, key=group)),
            "jobs": tuple(sorted(state.jobs, key=identity)),
        }
    )
    return _STATE.dump_json(ordered)


def state_hash(state: ClusterState) -> str:
    """Return the SHA-256 of a state's canonical form, 64 hexadecimal digits."""
    return sha256(canonical_state_bytes(state)).hexdigest()


def canonical_bytes(plan: Plan) -> bytes:
    """Return a plan as compact UTF-8 JSON without ``solver``: what two rounds are compared by."""
    return b"".join(written(plan).blocks())


def plan_hash(plan: Plan) -> str:
    """Return the SHA-256 of a plan's canonical bytes, 64 hexadecimal digits."""
    return _hash_of(written(plan))


def _hash_of(text: Written) -> str:
    found = sha256()
    for block in text.blocks():
        found.update(block)
    return found.hexdigest()


def seal(plan: Plan) -> Plan:
    """Return the plan with its own hash written into ``solver.plan_hash``, and with what was written to find it."""
    text = written(plan)
    return plan.with_solver(plan.solver.model_copy(update={"plan_hash": _hash_of(text)}), text)
