"""Random organisation trees with their usage, as wire JSON."""

from __future__ import annotations

from typing import Any

from strategies.draws import Draws, between, many
from strategies.profiles import Profile

SHARES = (1.0, 1.0, 2.0, 3.0, 0.5, 0.25, 10.0)
USED_HOURS = (0.0, 10.0, 0.001, 100.0, 333.25, 5_000.0)


def random_groups(draws: Draws, profile: Profile, gpus: int) -> list[dict[str, Any]]:
    """Draw a tree of depth 1 to 3: zero shares, guarantees and limits included.

    Parameters
    ----------
    gpus : GPUs installed, the scale of guarantees and limits.
    """
    groups: list[dict[str, Any]] = []
    depth: dict[str, int] = {}
    deepest = between(draws, 1, 3)
    zero = draws.chance(6)
    for i in range(many(draws, 1, profile.groups)):
        above = [group["id"] for group in groups if depth[group["id"]] < deepest]
        parent = draws.pick([None, *above]) if above and draws.chance(75) else None
        name = f"{parent}/g{i}" if parent is not None and not draws.chance(15) else f"g{i}"
        depth[name] = depth[parent] + 1 if parent is not None else 1
        share = 0.0 if zero or draws.chance(12) else draws.pick(SHARES)
        group: dict[str, Any] = {"id": name, "share": share}
        if parent is not None:
            group["parent"] = parent
        if draws.chance(25):
            group["guaranteed_gpus"] = draws.below(gpus // 2 + 3)
        if draws.chance(20):
            group["max_gpus"] = draws.below(gpus + 2)
        groups.append(group)
    return groups


def random_usage(draws: Draws, groups: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Draw what the groups used, sometimes of a group that is gone, sometimes left out."""
    if draws.chance(25):
        return None
    usage = [
        {"group": group["id"], "charged_gpu_hours": draws.pick(USED_HOURS)} for group in groups if draws.chance(65)
    ]
    if draws.chance(6):
        usage.append({"group": draws.pick(groups)["id"] + "/gone", "charged_gpu_hours": 40.0})
    return usage
