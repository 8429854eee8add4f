"""replay(): weeks of jobs against a cluster, event by event."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

import numpy as np

from evenhand.replay.clockwork import COUNTED, Clockwork, Moment
from evenhand.replay.envy_watch import EnvyWatch
from evenhand.replay.facts import declared, truth
from evenhand.replay.grounds import Grounds, regroup
from evenhand.replay.result import Capacity, IntArray, JobTable, ReplayResult, RoundCounts, StayTable
from evenhand.replay.rules import Scheduler, StayEnd, WorldRules
from evenhand.replay.schedulers import Decider, Happened, decider_of
from evenhand.replay.world import World
from evenhand.tree import build_tree
from evenhand_models import ClusterState, Policy
from evenhand_models.traces import Trace

Progress = Callable[[int, int], None]
"""Called now and then with the second reached and the second at which the replay ends."""
PROGRESS_S = 3_600


def replay(
    trace: Trace,
    cluster: ClusterState,
    policy: Policy | None = None,
    scheduler: Scheduler | Decider = Scheduler.EVENHAND,
    *,
    rules: WorldRules | None = None,
    seed: int | None = None,
    until_s: int | None = None,
    progress: Progress | None = None,
    watch: EnvyWatch | None = None,
) -> ReplayResult:
    """Replay a trace against a cluster: what would every job and group have got?

    Parameters
    ----------
    trace : jobs, changes of the cluster and use before the beginning.
    cluster : GPU types, nodes and groups; its `now`, jobs and usage are not looked at.
    policy : rules of the engine; comparators use its window and restart cost.
    scheduler : who decides, by name; or a decider of your own.
    rules : how the world behaves; defaults if left out.
    seed : of the engine's choices; takes the place of the policy's.
    until_s : seconds after the trace's beginning at which to stop; its end if left out.
    progress : called once a simulated hour or so.
    watch : looks at the world at its times, before what happens at that second; it changes nothing.

    Returns
    -------
    ReplayResult
        Equal input, equal result: no clock is looked at.

    Raises
    ------
    BrokenRule
        If a decider does what the cluster cannot do.
    """
    policy = policy or Policy()
    if seed is not None:
        policy = policy.model_copy(update={"seed": seed})
    decider = decider_of(scheduler) if isinstance(scheduler, Scheduler) else scheduler
    name = scheduler.value if isinstance(scheduler, Scheduler) else type(decider).__name__
    end_s = trace.end_s if until_s is None else min(until_s, trace.end_s)
    return _Replay(trace, cluster, policy, rules or WorldRules(), decider, end_s, progress, watch).run(name)


class _Replay:
    def __init__(
        self, trace: Trace, cluster: ClusterState, policy: Policy, rules: WorldRules, decider: Decider, end_s: int,
        progress: Progress | None, watch: EnvyWatch | None,
    ) -> None:  # fmt: skip
        self._watch = watch
        self._trace, self._policy, self._rules, self._decider = trace, policy, rules, decider
        self._end_s, self._progress = end_s, progress
        self._types = tuple(sorted(cluster.gpu_types, key=lambda t: t.name))
        names = tuple(t.name for t in self._types)
        tree = build_tree(cluster.groups)
        self._grounds = Grounds(cluster.nodes, names, trace.t0)
        rates = [max(1, round(1000 * t.charge_rate)) for t in self._types]
        ground = self._grounds.at(0)
        known = policy if decider.minds_debug_runs else policy.model_copy(update={"debug_contract_s": 0})
        facts = declared(trace, tree, names, self._grounds.sites, rates, known)
        self._truth = truth(trace, names)
        self._world = World(facts, tree, self._types, ground, known, rules, trace.t0)
        self._clockwork = Clockwork(
            self._world, self._truth, tell_unprotected=decider.minds_protection, tell_saved=decider.minds_checkpoints,
            saves_at_stop=decider.saves_at_stop,
        )  # fmt: skip
        self._world.listener = self._clockwork
        for span in trace.history:
            at = tree.nearest_named(span.group)
            if at is not None:
                self._world.window.seed(at, span.start_s, span.end_s, span.charged_gpus, 0)
        for at_s in self._grounds.maintenance():
            heapq.heappush(self._clockwork.queue, (at_s, int(Moment.MAINTENANCE), -1, 0))
        self._capacity = [(0, tuple(ground.capacity))]
        self._events = self._rounds = 0
        self._arrival = self._change = 0
        self._work_s = [j.duration_s for j in trace.jobs]
        self._submit_s = [j.submit_s for j in trace.jobs]

    def run(self, name: str) -> ReplayResult:
        """Go from moment to moment until the end."""
        world, said = self._world, 0
        wake: int | None = None
        while (now := self._next(wake)) is not None and now < self._end_s:
            self._look(now)
            world.now_s = now
            happened = self._take(now)
            if not self._decider.keeps_hit:
                self._drop_hit()
            self._decider.decide(world, happened)
            self._drop_hit()
            self._rounds += 1
            wake = self._decider.wakes_at(world)
            if self._progress is not None and now >= said + PROGRESS_S:
                said = now
                self._progress(now, self._end_s)
        self._look(self._end_s)
        world.now_s = self._end_s
        self._clockwork.finish()
        if self._progress is not None:
            self._progress(self._end_s, self._end_s)
        return self._result(name)

    def _look(self, until_s: int) -> None:
        """Let the watch see the world as it stands up to a moment."""
        while self._watch is not None and self._watch.due_s <= until_s:
            self._world.now_s = self._watch.due_s
            self._watch.look(self._world)

    def _next(self, wake: int | None) -> int | None:
        """The next moment at which something happens."""
        queue, jobs, changes = self._clockwork.queue, self._trace.jobs, self._trace.changes
        while queue and not self._clockwork.due(queue[0]):
            heapq.heappop(queue)
        times = [queue[0][0]] if queue else []
        if self._arrival < len(jobs):
            times.append(jobs[self._arrival].submit_s)
        if self._change < len(changes):
            times.append(changes[self._change].at_s)
        if wake is not None:
            times.append(wake)
        return max(self._world.now_s, min(times)) if times else None

    def _take(self, now: int) -> Happened:
        """Let everything happen that is due."""
        world, queue = self._world, self._clockwork.queue
        ended, free, saved, changed = [], [], [], False
        while queue and queue[0][0] <= now:
            entry = heapq.heappop(queue)
            _, kind, job, _ = entry
            if not self._clockwork.due(entry):
                continue
            self._events += 1
            if kind == Moment.END:
                ended.append(world.runs[job])
                world.stop(job, StayEnd.COMPLETED)
            elif kind == Moment.UNPROTECTED:
                free.append(job)
            elif kind == Moment.SAVED:
                saved.append(job)
                self._clockwork.saves_next(world.runs[job])
            else:
                changed = True
        changed |= self._changes(now)
        if changed:
            world.set_ground(self._grounds.at(now))
            self._capacity.append((now, tuple(world.ground.capacity)))
        arrived = []
        while self._arrival < len(self._trace.jobs) and self._trace.jobs[self._arrival].submit_s <= now:
            job, self._arrival = self._arrival, self._arrival + 1
            self._events += 1
            self._clockwork.arrives(job)
            if world.facts.shape[job] >= 0:
                arrived.append(job)
        return Happened(tuple(arrived), tuple(ended), tuple(free), tuple(saved), changed)

    def _changes(self, now: int) -> bool:
        """Other nodes, another tree."""
        changes, any_change = self._trace.changes, False
        while self._change < len(changes) and changes[self._change].at_s <= now:
            change, self._change = changes[self._change], self._change + 1
            self._events += 1
            any_change = True
            for at_s in self._grounds.alter(change.nodes, change.gone):
                heapq.heappush(self._clockwork.queue, (at_s, int(Moment.MAINTENANCE), -1, 0))
            tree = self._world.tree if change.groups is None else build_tree(change.groups)
            regroup(self._world, self._trace, tree, self._grounds)
        return any_change

    def _drop_hit(self) -> None:
        """Whoever lost a node and was not moved waits again."""
        for job in sorted(self._world.hit):
            self._world.stop(job, StayEnd.NODE_LOST)

    def _result(self, name: str) -> ReplayResult:
        world, r, facts = self._world, self._clockwork.record, self._world.facts
        came = self._arrival
        rows = sorted(self._clockwork.stays, key=lambda row: (row[2], row[0], row[1]))
        stays = np.array(rows, dtype=np.int64).reshape(-1, 8).T
        speed = [[round(1000 * x) for x in row] for row in self._truth.speed[:came]]
        shape = (came, len(self._types))
        times = [at for at, _ in self._capacity]
        last = [i for i, at in enumerate(times) if i + 1 == len(times) or times[i + 1] != at]
        return ReplayResult(
            trace=self._trace.name, credit=self._trace.credit, scheduler=name, t0=self._trace.t0,
            end_s=self._end_s, seed=self._policy.seed, policy=self._policy, rules=self._rules, tree=world.tree,
            capacity=Capacity(
                tuple(t.name for t in self._types), _ints(times[i] for i in last),
                np.array([self._capacity[i][1] for i in last], dtype=np.int64), _ints(world.rates),
            ),
            jobs=JobTable(
                ids=tuple(facts.ids[:came]), group=_ints(facts.group[:came]), size=_ints(facts.size[:came]),
                submit_s=_ints(self._submit_s[:came]), work_s=_ints(self._work_s[:came]),
                demand_milli=_ints(facts.demand_milli[:came]),
                speed_milli=np.array(speed, dtype=np.int64).reshape(shape),
                budgeted=np.array(facts.budgeted[:came], dtype=bool),
                kind=tuple(j.kind or "" for j in self._trace.jobs[:came]),
                **{field: _ints(getattr(r, field)[:came]) for field in COUNTED},
            ),
            stays=StayTable(
                job=stays[0], start_s=stays[1], end_s=stays[2], gpus=stays[3], gpu_type=stays[4], group=stays[5],
                charged=stays[6] > 0, end=stays[7],
            ),
            rounds=RoundCounts(
                self._events, self._rounds, world.full_rounds, world.displacements, world.decisions
            ),
        )  # fmt: skip


def _ints(values: Iterable[int]) -> IntArray:
    return np.array(list(values), dtype=np.int64)
