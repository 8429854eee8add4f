"""Time-based fair share, as KAI does it: usage in the window moves the share, over-quota work is reclaimed."""

from __future__ import annotations

from math import inf

from evenhand.replay.lines import Owner
from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.schedulers.engine.owed import level
from evenhand.replay.schedulers.in_order import make_way, start_in_order
from evenhand.replay.world import World
from evenhand.tree import ROOT

PERIOD_S = 60
K = 1.0
"""Weight of past usage (kValue)."""


class TimeFairShare:
    """KAI-like: siblings' weights become max(0, w + k (w - u)), w and u normalised, u the usage in the window.

    Fair shares follow level by level, never above what a queue asks for. The queue with the least of its fair share
    goes first; a queue that stays within its fair share reclaims from queues above theirs, the last started first,
    outside their contracts (KAI's minimal runtime); within a queue higher priorities preempt lower ones.
    """

    keeps_hit = False
    minds_protection = True
    minds_checkpoints = False
    saves_at_stop = False
    minds_debug_runs = False

    def __init__(self) -> None:
        self._fair: list[float] = []
        self._at_s = -PERIOD_S

    def decide(self, world: World, happened: Happened) -> None:
        """Give free GPUs out by fair share, then let arrivals reclaim."""
        if world.now_s >= self._at_s + PERIOD_S or happened.ground_changed or world.wanted_changed:
            self._fair, self._at_s = fair_shares(world), world.now_s
            world.wanted_changed = False
        lines = world.lines

        def key(job: int, owner: Owner) -> tuple[float, tuple[int, int, int]]:
            return self._served(world, owner[0]), lines.rank(job)

        start_in_order(world, key)
        hopeless: set[tuple[int, int]] = set()
        heads = [(shape, line[0][2]) for shape, by in lines.by_shape.items() for line in by.values()]
        for shape, job in sorted(heads, key=lambda h: (key(h[1], (world.facts.group[h[1]], True, False)), h)):
            group = world.facts.group[job]
            within = self._held(world, group) + world.facts.demand_milli[job] <= 1000 * self._fair[group] + 1
            if (shape, group) in hopeless or not within:
                continue
            if not make_way(world, job, self._victims(world, job)):
                hopeless.add((shape, group))
        start_in_order(world, key)

    def wakes_at(self, world: World) -> int | None:
        """Only events."""
        return None

    def _held(self, world: World, group: int) -> int:
        return world.below_milli[group] if not world.tree.children[group] else world.held_milli[group]

    def _served(self, world: World, group: int) -> float:
        fair = self._fair[group]
        return self._held(world, group) / fair if fair > 1e-9 else inf

    def _victims(self, world: World, job: int) -> list[int]:
        """Who may be reclaimed, the last started first, queues never below their fair share."""
        facts, found = world.facts, []
        left: dict[int, int] = {}
        for v in sorted(world.runs, key=lambda v: (-world.runs[v].start_s, -v)):
            run, group = world.runs[v], facts.group[v]
            if world.now_s < run.protected_until_s:
                continue
            if not run.milli or (group == facts.group[job] and facts.priority[v] < facts.priority[job]):
                found.append(v)
                continue
            held = left.get(group, self._held(world, group)) - run.milli
            if group != facts.group[job] and held >= 1000 * self._fair[group]:
                left[group] = held
                found.append(v)
        return found


def fair_shares(world: World) -> list[float]:
    """Fair share of every queue in charged GPUs, [G]."""
    tree = world.tree
    usage = world.window.gpu_hours(world.now_s).tolist()
    want = [sum(row[g] for row in world.wanted_milli.values()) / 1000.0 for g in range(len(tree.ids))]
    for c in tree.bottom_up:
        if tree.parent[c] != ROOT:
            usage[tree.parent[c]] += usage[c]
            want[tree.parent[c]] += want[c]
    fair = [0.0] * len(tree.ids)
    there = sum(c * r for c, r in zip(world.ground.capacity, world.rates, strict=True)) / 1000.0
    for node in (ROOT, *reversed(tree.bottom_up)):
        kids = [k for k in (tree.top if node == ROOT else tree.children[node]) if want[k] > 0]
        if not kids:
            continue
        weights, used = sum(tree.weight[k] for k in kids), sum(usage[k] for k in kids)
        moved = []
        for k in kids:
            w = tree.weight[k] / weights if weights else 0.0
            moved.append(max(0.0, w + K * (w - (usage[k] / used if used else w))))
        some = [i for i, w in enumerate(moved) if w > 0]
        parts = level(
            there if node == ROOT else fair[node], [moved[i] for i in some], [0.0] * len(some), [0.0] * len(some),
            [want[kids[i]] for i in some],
        )  # fmt: skip
        for i, part in zip(some, parts, strict=True):
            fair[kids[i]] = part
    return fair
