"""Static quotas: every group owns its share of the GPUs, idle or not."""

from __future__ import annotations

from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.schedulers.in_order import start_in_order
from evenhand.replay.world import World
from evenhand.tree import ROOT


class StaticQuota:
    """Partitions: a job starts if its group stays within its own part of the cluster; nobody borrows, nobody is preempted.

    Quotas are whole GPUs, product of shares times what is up, at one level of the tree: the second from the top where
    there are three or more (projects; a researcher's own few GPUs would hold no gang), else the lowest.
    """

    keeps_hit = False
    minds_protection = False
    minds_checkpoints = False
    saves_at_stop = False
    minds_debug_runs = False

    def __init__(self) -> None:
        self._quota: dict[int, int] = {}
        self._world: World | None = None

    def decide(self, world: World, happened: Happened) -> None:
        """Start the eldest of every group that fits its quota."""
        if self._world is not world or happened.ground_changed:
            self._world, self._quota = world, quotas(world)
        facts = world.facts
        start_in_order(world, lambda job, _: (facts.submit_s[job], job), allowed=lambda job: self._within(world, job))

    def wakes_at(self, world: World) -> int | None:
        """Only events."""
        return None

    def _within(self, world: World, job: int) -> bool:
        group = world.facts.group[job]
        owner = next((c for c in world.tree.path[group] if c in self._quota), None)
        return owner is None or world.held_gpus[owner] + world.facts.size[job] <= self._quota[owner]


def quotas(world: World) -> dict[int, int]:
    """Whole GPUs each group of the chosen level owns; what rounding leaves goes to the largest remainders."""
    tree = world.tree
    depth = max((len(path) for path in tree.path), default=1)
    level = 2 if depth >= 3 else depth
    share: dict[int, float] = {}
    for node in (ROOT, *reversed(tree.bottom_up)):
        children = tree.top if node == ROOT else tree.children[node]
        total = sum(tree.weight[k] for k in children)
        for k in children:
            share[k] = (1.0 if node == ROOT else share[node]) * (tree.weight[k] / total if total else 0.0)
    chosen = [
        c for c, path in enumerate(tree.path) if len(path) == level or (len(path) < level and not tree.children[c])
    ]
    there = sum(world.ground.capacity)
    exact = {c: share[c] * there for c in chosen}
    found = {c: int(x) for c, x in exact.items()}
    left = round(sum(exact.values())) - sum(found.values())
    for c in sorted(chosen, key=lambda c: (found[c] - exact[c], c))[:left]:
        found[c] += 1
    return found
