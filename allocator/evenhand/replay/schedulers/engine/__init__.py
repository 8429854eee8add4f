"""The production engine in a replay: full rounds at most so far apart, and an incremental path between them."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.outcome import ARRIVALS, Move, Outcome
from evenhand.replay.rules import StayEnd
from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.schedulers.engine.full_round import full_round, state_of
from evenhand.replay.schedulers.engine.incremental import Incremental
from evenhand.replay.schedulers.engine.owed import FRESH_S, Owed, owed_now
from evenhand.replay.schedulers.engine.worth import Worth
from evenhand.replay.world import World
from evenhand.snapshot import Snapshot


class Evenhand:
    """Decides as `allocate` does.

    A full round is solved when nodes or groups change, and, while anybody waits or could do better on free GPUs, at the
    latest `full_round_s` after the last one, when most has just been saved; between them events are answered by the
    incremental path under entitlements that are never older than a minute.
    """

    keeps_hit = True
    minds_protection = True
    minds_checkpoints = True
    saves_at_stop = False
    minds_debug_runs = True

    def __init__(self) -> None:
        self._full_at_s: int | None = None
        self._facts: object = None
        self._owed: Owed | None = None

    def decide(self, world: World, happened: Happened) -> None:
        """Answer what happened, in full if it is time to."""
        due = self._full_at_s is None or world.now_s >= self._full_at_s
        if self._facts is not world.facts or happened.ground_changed:
            self._facts = world.facts
            self._worth = Worth(world)
            self._incremental = Incremental(world, self._worth)
            due = True
        if due and (world.lines.count or world.hit or better_elsewhere(world)):
            self._full(world)
        else:
            self._refresh(world)
            self._incremental.decide(happened)

    def wakes_at(self, world: World) -> int | None:
        """The next full round, as long as anybody waits or could do better elsewhere."""
        if self._full_at_s is None or not world.rules.full_round_s:
            return None
        if not (world.lines.count or better_elsewhere(world)):
            return None
        return max(world.now_s + 1, self._full_at_s)

    def _refresh(self, world: World) -> None:
        """Work entitlements out again if somebody came or went, or a minute has passed."""
        stale = self._owed is None or world.now_s >= self._owed.at_s + FRESH_S
        if stale or world.wanted_changed:
            self._owed = owed_now(world)
            self._worth.use(self._owed)
            world.wanted_changed = False

    def _full(self, world: World) -> None:
        world.full_rounds += 1
        state = state_of(world, world.t0)
        limit_s = min(world.policy.time_limit_s, world.rules.full_round_limit_s)
        policy = world.policy.model_copy(update={"time_limit_s": limit_s})
        snapshot, outcome, owed = full_round(state, policy)
        number = {world.facts.ids[j]: j for j in [*world.lines.jobs(), *world.runs]}
        carry_out(world, snapshot, outcome, number)
        whole = (number[snapshot.jobs[at].id] for at in owed)
        self._worth.gangs = frozenset(j for j in whole if not world.facts.debug[j])
        self._refresh(world)
        self._incremental.fill(None)
        self._full_at_s = self._cheapest_moment(world)

    def _cheapest_moment(self, world: World) -> int:
        """When to solve in full next: a stop costs least just after progress was saved, and the larger the gang the more.

        The moment at which the largest gang outside its contract, of a group that holds more than it is owed, saves its
        progress; not before a third of `full_round_s` has passed, and at the end of it if there is none.
        """
        every, now = world.rules.full_round_s, world.now_s
        best, at_s = 0, now + every
        for job, run in world.runs.items():
            if run.gpus <= best or not run.milli or not world.facts.resumable[job]:
                continue
            saves = world.next_save_s(run, max(now + every // 3, run.protected_until_s))
            if saves <= now + every and self._worth.served(world.facts.group[job]) > 1.0:
                best, at_s = run.gpus, saves
        return at_s


def better_elsewhere(world: World) -> bool:
    """Whether some job that may move runs slower than it could on GPUs that are free."""
    idle, facts = world.ground.idle, world.facts
    if len(idle) < 2 or not world.policy.allow_migration or not any(idle):
        return False
    for j, run in world.runs.items():
        if facts.resumable[j] and world.now_s >= run.protected_until_s:
            speed = facts.shapes[facts.shape[j]].speed_milli
            if any(free >= run.gpus and speed[t] > speed[run.gpu_type] for t, free in enumerate(idle)):
                return True
    return False


def carry_out(world: World, snapshot: Snapshot, outcome: Outcome, number: Mapping[str, int]) -> None:
    """Do what a round has decided: first everybody who leaves, then everybody who comes."""
    coming = []
    for at, decision in sorted(outcome.decisions.items()):
        job = number[snapshot.jobs[at].id]
        if decision.move is Move.PREEMPT:
            world.stop(job, StayEnd.NODE_LOST if job in world.hit else StayEnd.PREEMPTED)
        elif decision.move in ARRIVALS:
            places = tuple(sorted((world.ground.index[snapshot.nodes[n].name], gpus) for n, gpus in decision.places))
            coming.append((job, decision.gpu_type, places))
            if decision.move is not Move.START:
                world.stop(job, StayEnd.NODE_LOST if job in world.hit else StayEnd.MIGRATED)
    for job, gpu_type, places in coming:
        world.start(job, gpu_type, places)


__all__ = ["Evenhand", "carry_out"]
