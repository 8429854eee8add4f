"""Groups in order of what they used for their share, level by level: Slurm's Fair Tree."""

from __future__ import annotations

from evenhand.entitlement import rank_key
from evenhand.replay.world import World
from evenhand.tree import ROOT


def fair_tree_order(world: World) -> list[int]:
    """Rank of each group, the least served first: siblings by usage over share, all of one before the next, [G].

    Source: Slurm's Fair Tree algorithm (level fairshare, depth first).
    """
    tree = world.tree
    usage = world.window.gpu_hours(world.now_s).tolist()
    for c in tree.bottom_up:
        if tree.parent[c] != ROOT:
            usage[tree.parent[c]] += usage[c]
    rank = [0] * len(tree.ids)
    open_groups = sorted(tree.top, key=lambda g: (*rank_key(usage[g], tree.weight[g]), g), reverse=True)
    place = 0
    while open_groups:
        g = open_groups.pop()
        rank[g], place = place, place + 1
        kids = sorted(tree.children[g], key=lambda k: (*rank_key(usage[k], tree.weight[k]), k), reverse=True)
        open_groups.extend(kids)
    return rank
