"""Random types and nodes, as wire JSON."""

from __future__ import annotations

from typing import Any

from strategies.clock import stamp
from strategies.draws import Draws, between, many
from strategies.profiles import Profile

TYPE_NAMES = ("a100", "h100", "k80", "t4", "v100")
RATES = (1.0, 1.0, 2.0, 0.5, 3.13, 8.0)
MAINTENANCE_S = (86_400, 1_800, 300, 18_000, 1, 0, -60)


def random_types(draws: Draws, profile: Profile) -> list[dict[str, Any]]:
    """Draw one to `profile.types` types with their charge rates."""
    count = between(draws, 1, profile.types)
    skip = draws.below(len(TYPE_NAMES))
    names = sorted((TYPE_NAMES * 2)[skip : skip + count])
    types: list[dict[str, Any]] = [{"name": name} for name in names]
    for one in types:
        if draws.chance(60):
            one["charge_rate"] = draws.pick(RATES)
    return types


def random_nodes(draws: Draws, profile: Profile, types: list[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    """Draw up to `profile.nodes` nodes: some broken or foreign GPUs, drained, down, before maintenance."""
    nodes = []
    uniform = draws.chance(40)
    size = draws.pick(profile.node_gpus)
    for i in range(many(draws, 1, profile.nodes)):
        gpus = size if uniform else draws.pick(profile.node_gpus)
        if draws.chance(1):
            gpus = 0
        node: dict[str, Any] = {"name": f"n{i:02}", "gpu_type": draws.pick(types)["name"], "gpus": gpus}
        _wear(draws, node, now)
        labels = {}
        if draws.chance(75):
            labels["rack"] = draws.pick(("r0", "r1", "r0", ""))
        if draws.chance(60):
            labels["pool"] = draws.pick(("p0", "p1"))
        if labels:
            node["labels"] = labels
        nodes.append(node)
    return nodes


def _wear(draws: Draws, node: dict[str, Any], now: int) -> None:
    """Take something away from a node, now and then."""
    if node["gpus"] and draws.chance(14):
        node["unavailable_gpus"] = between(draws, 1, node["gpus"])
    left = node["gpus"] - node.get("unavailable_gpus", 0)
    if left and draws.chance(12):
        node["foreign_gpus"] = between(draws, 1, left)
    if draws.chance(18):
        node["status"] = draws.pick(("cordoned", "down"))
        if node["status"] == "down" and draws.chance(50):
            node["down_since_at"] = stamp(now - draws.pick((600, 0, 90_000)))
    if draws.chance(14):
        node["available_until_at"] = stamp(now + draws.pick(MAINTENANCE_S))
