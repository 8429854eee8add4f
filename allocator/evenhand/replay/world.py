"""The cluster between two decisions: who waits, who runs where, what is free, what was used. No truth in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np

from evenhand.outcome import Places
from evenhand.replay.errors import BrokenRule
from evenhand.replay.facts import JobFacts
from evenhand.replay.ground import Ground
from evenhand.replay.lines import Lines
from evenhand.replay.rules import StayEnd, WorldRules
from evenhand.replay.usage import UsageWindow
from evenhand.shapes import Sites
from evenhand.tree import Tree
from evenhand_models import GpuType, Job, Policy


@dataclass(slots=True, eq=False)
class Run:
    """A job that holds GPUs.

    Attributes
    ----------
    cost_s : seconds from the start in which it does not get on, because it starts again.
    milli : thousandths of a charged GPU it is charged for; 0 for unallocated use.
    """

    job: int
    start_s: int
    gpu_type: int
    places: Places
    gpus: int
    cost_s: int
    milli: int
    protected_until_s: int


class Happenings(Protocol):
    """Who is told of starts and stops: the clockwork, which knows how long jobs really take."""

    def started(self, run: Run) -> None:
        """A job holds GPUs from now on."""

    def stopped(self, run: Run, why: StayEnd) -> None:
        """A job holds them no longer."""


class World:
    """What schedulers see and act on.

    Attributes
    ----------
    now_s : seconds since the trace's beginning; runs : running jobs; lines : waiting ones; gone : neither, for good.
    wires : jobs as the engine reads them while they wait, kept from round to round.
    hit : running jobs whose node is lost; they must be gone or moved when the round is over (rule S9).
    wanted_milli : charged demand of live budgeted jobs by the types they fit, then by group, in thousandths (rule D1).
    below_milli : the same of each group and all below it; on_node : running jobs by node.
    held_gpus : GPUs that all jobs of each group and those below it hold, [G] (rule L1).
    held_milli : charged use of each group's own jobs at this moment, in thousandths of a charged GPU, [G].
    """

    def __init__(
        self, facts: JobFacts, tree: Tree, types: tuple[GpuType, ...], ground: Ground, policy: Policy, rules: WorldRules,
        t0: datetime,
    ) -> None:  # fmt: skip
        self.facts, self.tree, self.policy, self.rules = facts, tree, policy, rules
        self.types, self.t0 = types, t0
        self.rates = [max(1, round(1000 * t.charge_rate)) for t in types]
        self.now_s = 0
        self.runs: dict[int, Run] = {}
        self.lines = Lines(facts)
        self.hit: set[int] = set()
        self.window = UsageWindow(len(tree.ids), policy.window_s, policy.half_life_s)
        self.held_milli = [0] * len(tree.ids)
        self.held_gpus = [0] * len(tree.ids)
        self.below_milli = [0] * len(tree.ids)
        self.on_node: list[set[int]] = []
        self.wanted_milli: dict[tuple[int, ...], list[int]] = {}
        self.wanted_changed = True
        self.listener: Happenings | None = None
        self.restart_cost_s = policy.restart_cost_s if rules.restart_cost_s is None else rules.restart_cost_s
        self.ran_before: set[int] = set()
        self.wires: dict[int, Job] = {}
        self.decisions = 0
        self.displacements = 0
        self.full_rounds = 0
        self.set_ground(ground)

    def set_ground(self, ground: Ground) -> None:
        """Stand on other nodes; what runs keeps its place, or is hit."""
        self.ground = ground
        self.sites = Sites(ground.nodes, np.array(ground.node_type, dtype=np.int64))
        self.on_node = [set() for _ in ground.nodes]
        for run in self.runs.values():
            ground.hold(run.places)
            for n, _ in run.places:
                self.on_node[n].add(run.job)
        self.hit = {
            j for j, run in self.runs.items() if any(not ground.keeping[n] or ground.free[n] < 0 for n, _ in run.places)
        }

    def pinned(self, job: int) -> bool:
        """Whether a running job must stay where it is (rule S10)."""
        run = self.runs[job]
        return self.now_s < run.protected_until_s and job not in self.hit

    def checkpointed_s(self, job: int) -> int | None:
        """When a running job has last saved its progress, None if never or not told."""
        run = self.runs[job]
        every = self.rules.checkpoint_interval_s
        ran = self.now_s - run.start_s - run.cost_s
        if not self.rules.checkpoints_reported or not self.facts.resumable[job] or ran < every:
            return None
        return run.start_s + run.cost_s + ran // every * every

    def next_save_s(self, run: Run, from_s: int) -> int:
        """When a running job saves its progress first, at that second or later."""
        every, begins = self.rules.checkpoint_interval_s, run.start_s + run.cost_s
        return begins + max(1, -(-(from_s - begins) // every)) * every

    def place(self, job: int, gpu_type: int) -> Places | None:
        """Where a waiting gang could stand now on a type."""
        f = self.facts
        mask = self.ground.available(f.contract_s[job], self.now_s)
        return self.ground.place(f.shapes[f.shape[job]], gpu_type, self.sites, mask)

    def place_best(self, job: int) -> tuple[int, Places] | None:
        """The job's best type that has room, and where."""
        for t in self.facts.shapes[self.facts.shape[job]].types:
            places = self.place(job, t)
            if places is not None:
                return t, places
        return None

    def start(self, job: int, gpu_type: int, places: Places) -> None:
        """A waiting job takes GPUs.

        Raises
        ------
        BrokenRule
            If the gang is not whole (G1), does not fit the type (S6) or a node has no such GPUs free (C1).
        """
        f, ground = self.facts, self.ground
        gpus = sum(g for _, g in places)
        if gpus != f.size[job]:
            raise BrokenRule("G1", f"job {f.ids[job]!r} wants {f.size[job]} GPUs and got {gpus}")
        if not f.shapes[f.shape[job]].speed_milli[gpu_type]:
            raise BrokenRule("S6", f"job {f.ids[job]!r} cannot run on {self.types[gpu_type].name}")
        for n, g in places:
            if not ground.opened[n] or ground.free[n] < g or ground.node_type[n] != gpu_type:
                raise BrokenRule("C1", f"node {ground.names[n]!r} cannot give job {f.ids[job]!r} {g} GPUs")
        self.lines.leave(job)
        ground.hold(places)
        for n, _ in places:
            self.on_node[n].add(job)
        milli = gpus * self.rates[gpu_type] if f.budgeted[job] else 0
        until = self.now_s + (f.contract_s[job] if milli else 0)
        cost = self.restart_cost_s if f.resumable[job] and job in self.ran_before else 0
        run = Run(job, self.now_s, gpu_type, places, gpus, cost, milli, until)
        self.ran_before.add(job)
        self.runs[job] = run
        self._charge(job, milli, gpus)
        self.decisions += 1
        if self.listener is not None:
            self.listener.started(run)

    def stop(self, job: int, why: StayEnd = StayEnd.PREEMPTED) -> None:
        """A running job gives its GPUs back; whether it waits again is the listener's to say."""
        run = self.runs.pop(job)
        self.hit.discard(job)
        self.ground.give_back(run.places)
        for n, _ in run.places:
            self.on_node[n].discard(job)
        self._charge(job, -run.milli, -run.gpus)
        if why is not StayEnd.COMPLETED:
            self.decisions += 1
        if self.listener is not None:
            self.listener.stopped(run, why)

    def move(self, job: int, gpu_type: int, places: Places) -> None:
        """A running job stops and starts elsewhere."""
        self.stop(job, StayEnd.MIGRATED)
        self.start(job, gpu_type, places)

    def charge_anew(self, run: Run) -> None:
        """Charge a running job to its group in a new tree; what it was charged before has been taken off."""
        run.milli = run.gpus * self.rates[run.gpu_type] if self.facts.budgeted[run.job] else 0
        self._charge(run.job, run.milli, run.gpus)

    def wants(self, job: int, sign: int) -> None:
        """Count a job among those that want GPUs, or no longer."""
        f = self.facts
        if f.budgeted[job]:
            types = tuple(sorted(f.shapes[f.shape[job]].types))
            row = self.wanted_milli.setdefault(types, [0] * len(self.tree.ids))
            row[f.group[job]] += sign * f.demand_milli[job]
            self.wanted_changed = True

    def _charge(self, job: int, milli: int, gpus: int) -> None:
        group = self.facts.group[job]
        if group < 0:
            return
        for c in self.tree.path[group]:
            self.held_gpus[c] += gpus
            self.below_milli[c] += milli
        if milli:
            self.held_milli[group] += milli
            self.window.change(group, self.now_s, milli)
