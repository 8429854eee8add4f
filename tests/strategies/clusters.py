"""Whole cluster states: seeded and fast, or drawn by Hypothesis. Both walk the same code."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import strategies as st

from evenhand_models import ClusterState
from strategies.clock import NOW, stamp
from strategies.draws import Draws, HypothesisDraws, SeededDraws
from strategies.hardware import random_nodes, random_types
from strategies.jobs import ground, random_jobs
from strategies.profiles import PROFILES, Profile
from strategies.tree import random_groups, random_usage


def state_of(wire: dict[str, Any]) -> ClusterState:
    """Read a state from wire JSON, validated as any other."""
    return ClusterState.model_validate_json(json.dumps(wire))


def wire_state(draws: Draws, profile: Profile) -> dict[str, Any]:
    """Draw a valid state, as wire JSON."""
    types = random_types(draws, profile)
    nodes = random_nodes(draws, profile, types, NOW)
    groups = random_groups(draws, profile, sum(n["gpus"] for n in nodes))
    wire: dict[str, Any] = {"now": stamp(NOW), "gpu_types": types, "nodes": nodes, "groups": groups}
    usage = random_usage(draws, groups)
    if usage is not None:
        wire["usage"] = usage
    names = [one["name"] for one in types]
    wire["jobs"] = random_jobs(draws, ground(draws, profile, names, nodes, [g["id"] for g in groups], NOW))
    return wire


def random_state(rng: Random, profile: str = "tiny") -> ClusterState:
    """Draw a state with a seeded generator: about a millisecond, the same for the same seed."""
    return state_of(wire_state(SeededDraws(rng), PROFILES[profile]))


@st.composite
def states(draw: st.DrawFn, size: str = "small") -> ClusterState:
    """Strategy: states of a profile (`tiny`, `small` or `medium`)."""
    return state_of(wire_state(HypothesisDraws(draw), PROFILES[size]))
