"""Gavel's max-min fairness, by rounds: everybody gets GPUs for a part of the time, in turn."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.world import World
from evenhand.solvers.lp import LpStatus, Rows, solve_lp

Class = tuple[int, int]
"""Jobs that Gavel's program cannot tell apart: shape and group."""


class Gavel:
    """Max-min fairness over jobs with weights (OSDI'20), heterogeneity-aware, in rounds of six minutes.

    A linear program gives every job a part of the time on every type, so that the least throughput over that of an equal
    share is as large as can be; a job's weight is its group's share over its live jobs (product of shares down the
    tree). Each round runs the jobs that are furthest behind their part. Who runs on keeps his GPUs; jobs that cannot
    resume are not stopped. Nothing happens between rounds.
    """

    keeps_hit = False
    minds_protection = False
    minds_checkpoints = False
    saves_at_stop = True
    minds_debug_runs = False

    def __init__(self) -> None:
        self._next_s = 0
        self._rounds: Counter[tuple[int, int]] = Counter()
        """Rounds had, by job and type."""
        self._seen: Counter[int] = Counter()
        self._parts: dict[Class, list[float]] = {}
        self._live: object = None

    def decide(self, world: World, happened: Happened) -> None:
        """Once a round: divide time anew if jobs have come or gone, and let those furthest behind run."""
        if world.now_s < self._next_s and not happened.ground_changed:
            return
        self._next_s = world.now_s + world.rules.round_s
        jobs = sorted([*world.lines.waiting, *world.runs])
        classes = Counter((world.facts.shape[j], world.facts.group[j]) for j in jobs)
        if classes != self._live:
            self._parts, self._live = time_parts(world, classes), classes
        self._rotate(world, jobs)
        for j in jobs:
            self._seen[j] += 1
        for j, run in world.runs.items():
            self._rounds[j, run.gpu_type] += 1

    def wakes_at(self, world: World) -> int | None:
        """The next round."""
        return max(world.now_s + 1, self._next_s) if world.lines.count or world.runs else None

    def _rotate(self, world: World, jobs: list[int]) -> None:
        """Choose by part over rounds had, then make it so."""
        facts, trial = world.facts, world.ground.trial()
        for run in world.runs.values():
            if facts.resumable[run.job]:
                trial.give_back(run.places)
        wishes = []
        for j in jobs:
            if j in world.runs and not facts.resumable[j]:
                continue
            parts = self._parts.get((facts.shape[j], facts.group[j]), [])
            for t, part in enumerate(parts):
                if part > 1e-9:
                    had = self._rounds[j, t] / max(1, self._seen[j])
                    wishes.append((-part / had if had else float("-inf"), -part, facts.submit_s[j], j, t))
        chosen: dict[int, int] = {}
        room = list(trial.idle)
        for *_, j, t in sorted(wishes):
            if j not in chosen and room[t] >= facts.size[j]:
                chosen[j] = t
                room[t] -= facts.size[j]
        for j in [j for j, run in world.runs.items() if facts.resumable[j] and chosen.get(j) != run.gpu_type]:
            world.stop(j)
        for j, t in sorted(chosen.items(), key=lambda item: (-facts.size[item[0]], item[0])):
            if j not in world.runs and (places := world.place(j, t)) is not None:
                world.start(j, t, places)


def time_parts(world: World, classes: Counter[Class]) -> dict[Class, list[float]]:
    """Part of the time each class of jobs gets on each type: max-min, then most throughput (one program for both)."""
    facts, kinds, keys = world.facts, len(world.types), sorted(classes)
    capacity = world.ground.capacity
    live: dict[int, int] = defaultdict(int)
    for (_, g), n in classes.items():
        live[g] += n
    total = max(1, sum(capacity))
    rows: list[dict[int, float]] = []
    upper: list[float] = []
    cost = np.zeros(len(keys) * kinds + 1)
    for i, (shape, g) in enumerate(keys):
        speed = facts.shapes[shape].speed_milli
        size = facts.shapes[shape].gpus
        equal = sum(s * c for s, c in zip(speed, capacity, strict=True)) / 1000.0 / total
        weight = max(1e-6, _share(world, g) / live[g])
        rows.append({i * kinds + t: -size * speed[t] / 1000.0 for t in range(kinds)} | {len(cost) - 1: equal * weight})
        upper.append(0.0)
        rows.append({i * kinds + t: 1.0 for t in range(kinds)})
        upper.append(1.0)
        for t in range(kinds):
            cost[i * kinds + t] = 1e-6 * classes[keys[i]] * size * speed[t] / 1000.0
    for t in range(kinds):
        rows.append(
            {i * kinds + t: float(n * facts.shapes[s].gpus) for i, ((s, _), n) in enumerate(sorted(classes.items()))}
        )
        upper.append(float(capacity[t]))
    cost[-1] = 1.0
    starts = np.cumsum([0, *(len(r) for r in rows)])
    columns = np.array([c for r in rows for c in r], dtype=np.int64)
    values = np.array([v for r in rows for v in r.values()])
    found = solve_lp(
        cost, Rows(starts, columns, values, np.full(len(rows), -np.inf), np.array(upper)), np.zeros(len(cost)),
        np.array([1.0] * (len(cost) - 1) + [np.inf]), maximize=True,
    )  # fmt: skip
    if found.status is not LpStatus.OPTIMAL:
        return {}
    table = found.x[:-1].reshape(len(keys), kinds)
    for i, (shape, _) in enumerate(keys):
        table[i, [t for t in range(kinds) if not facts.shapes[shape].speed_milli[t]]] = 0.0
    return {key: table[i].tolist() for i, key in enumerate(keys)}


def _share(world: World, group: int) -> float:
    """Product of shares down to a group."""
    tree, product = world.tree, 1.0
    for c in tree.path[group]:
        siblings = tree.top if tree.parent[c] < 0 else tree.children[tree.parent[c]]
        product *= tree.weight[c] / max(1e-12, sum(tree.weight[k] for k in siblings))
    return product
