"""The nodes over time: a changed node keeps its place, new ones come after, gone ones stay as empty places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np

from evenhand.replay.facts import declared
from evenhand.replay.ground import Ground
from evenhand.replay.lines import Lines
from evenhand.replay.usage import UsageWindow
from evenhand.replay.world import World
from evenhand.shapes import Sites
from evenhand.tree import Tree
from evenhand_models import Node, NodeStatus
from evenhand_models.traces import Trace


class Grounds:
    """All nodes there ever were, in a fixed order: those of the beginning by name, then as they came."""

    def __init__(self, nodes: Sequence[Node], types: tuple[str, ...], t0: datetime) -> None:
        self._types, self._t0 = types, t0
        self._nodes = sorted(nodes, key=lambda n: n.name)
        self._place = {n.name: i for i, n in enumerate(self._nodes)}

    @property
    def sites(self) -> Sites:
        """What could ever fit."""
        kinds = [self._types.index(n.gpu_type) for n in self._nodes]
        return Sites(self._nodes, np.array(kinds, dtype=np.int64))

    def at(self, now_s: int) -> Ground:
        """The nodes at a moment, all free."""
        return Ground(self._nodes, self._types, [self._until_s(n) for n in self._nodes], now_s)

    def maintenance(self) -> list[int]:
        """When maintenance begins somewhere, seconds."""
        return sorted({s for n in self._nodes if (s := self._until_s(n)) is not None and s > 0})

    def alter(self, nodes: Iterable[Node], gone: Iterable[str]) -> list[int]:
        """Change nodes; returns when maintenance begins on them."""
        for node in nodes:
            at = self._place.setdefault(node.name, len(self._nodes))
            self._nodes[at : at + 1] = [node]
        for name in gone:
            at = self._place[name]
            empty = {"gpus": 0, "unavailable_gpus": 0, "foreign_gpus": 0, "status": NodeStatus.DOWN}
            self._nodes[at] = self._nodes[at].model_copy(update=empty)
        return self.maintenance()

    def _until_s(self, node: Node) -> int | None:
        until = node.available_until_at
        return None if until is None else int((until - self._t0).total_seconds())


def regroup(world: World, trace: Trace, tree: Tree, grounds: Grounds) -> None:
    """Read the jobs again for another tree or other nodes: budgets, what fits, who waits, what is charged to whom."""
    names = tuple(t.name for t in world.types)
    waiting, old = world.lines.jobs(), world.facts
    facts = declared(trace, tree, names, grounds.sites, world.rates, world.policy)
    facts.submit_s = old.submit_s
    for job in [*waiting, *world.runs]:
        if facts.shape[job] < 0:  # fitted once: keeps waiting for such nodes to come back
            facts.shapes.append(old.shapes[old.shape[job]])
            facts.shape[job] = len(facts.shapes) - 1
            facts.demand_milli[job] = old.demand_milli[job]
        if facts.group[job] < 0:
            near = tree.nearest_named(trace.jobs[job].group)
            facts.group[job] = -1 if near is None else near
    usage = UsageWindow(len(tree.ids), world.policy.window_s, world.policy.half_life_s)
    usage.inherit(world.window, [tree.nearest_named(name) for name in world.tree.ids], world.now_s)
    world.facts, world.tree, world.window = facts, tree, usage
    world.held_milli, world.held_gpus, world.below_milli = ([0] * len(tree.ids) for _ in range(3))
    world.wanted_milli = {}
    world.lines = Lines(facts)
    for job in waiting:
        world.lines.join(job)
    for job in [*waiting, *world.runs]:
        world.wants(job, 1)
    for run in world.runs.values():
        world.charge_anew(run)
