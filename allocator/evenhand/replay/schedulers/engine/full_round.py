"""A round of the engine itself on the state of the replayed world: the stages of `allocate` up to its decisions."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import datetime, timedelta

from evenhand.deadline import Deadline
from evenhand.entitlement import entitle
from evenhand.errors import PlacementError, SolverError
from evenhand.fairness.target import fair_target
from evenhand.greedy import greedy, top_up
from evenhand.outcome import Outcome
from evenhand.owed_gangs import owed_gangs
from evenhand.program.formulate import formulate
from evenhand.program.index import build_index
from evenhand.program.solve import solve
from evenhand.replay.world import World
from evenhand.restore import restore
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand_models import ClusterState, Job, JobState, Placement, Policy, Usage


class Unhurried(Deadline):
    """A deadline that never comes: work is limited by the solvers' own count, so no clock decides anything."""

    @property
    def spent_s(self) -> float:
        """Nothing."""
        return 0.0

    @property
    def left_s(self) -> float:
        """An hour, always."""
        return 3_600.0


def state_of(world: World, t0: datetime) -> ClusterState:
    """Write the world as the state that `allocate` takes; it holds nothing that is not declared."""
    now = t0 + timedelta(seconds=world.now_s)
    usage = world.window.gpu_hours(world.now_s).tolist()
    jobs = [_waiting(world, t0, j) for j in _who_may_start(world)] + [_running(world, t0, j) for j in world.runs]
    return ClusterState.model_construct(
        now=now,
        gpu_types=world.types,
        nodes=tuple(n for n in world.ground.nodes if n.gpus > 0),
        groups=world.tree.groups,
        usage=tuple(
            Usage.model_construct(group=g, charged_gpu_hours=u) for g, u in zip(world.tree.ids, usage, strict=True)
        ),
        jobs=tuple(jobs),
    )


def _who_may_start(world: World) -> list[int]:
    """Waiting jobs that a round could start, or that change what is owed.

    Of jobs alike in group, kind (budgeted, debug run), shape and priority the eldest are enough, as many as the cluster
    could hold and one more: the others start after them, and demand is cut to capacity (D1). With several types all
    budgeted ones are told, because the mix of speedups in a group counts (T). Unallocated ones count for nobody and
    displace nobody (U1): as many as what they hold now and what is idle could hold; GPUs that a round frees beyond that
    they get after it.
    """
    there = sum(n.gpus for n in world.ground.nodes) if len(world.types) == 1 else sys.maxsize
    spare = sum(world.ground.idle) + sum(run.gpus for run in world.runs.values() if not run.milli)
    found: list[int] = []
    for shape, lines in world.lines.by_shape.items():
        for (_, budgeted, _), line in lines.items():
            most = (there if budgeted else spare) // world.facts.shapes[shape].gpus + 1
            if len(line) <= most:
                found.extend(rank[2] for rank in line)
                continue
            told: Counter[int] = Counter()
            for priority, _, job in line:
                told[priority] += 1
                if told[priority] <= most:
                    found.append(job)
    return sorted(found)


def _waiting(world: World, t0: datetime, job: int) -> Job:
    """A waiting job; made once, and again when it starts over."""
    at = t0 + timedelta(seconds=world.facts.submit_s[job])
    known = world.wires.get(job)
    if known is None or known.submitted_at != at:
        known = world.wires[job] = world.facts.wire(job, at)
    return known


def _running(world: World, t0: datetime, job: int) -> Job:
    run, saved, names = world.runs[job], world.checkpointed_s(job), world.ground.names
    parts = tuple(Placement.model_construct(node=names[n], gpus=g) for n, g in run.places)
    return _with(
        _waiting(world, t0, job),
        {
            "state": JobState.RUNNING,
            "started_at": t0 + timedelta(seconds=run.start_s),
            "placement": tuple(sorted(parts, key=lambda p: (p.node, p.gpus))),
            "checkpointed_at": None if saved is None else t0 + timedelta(seconds=saved),
        },
    )


def _with(job: Job, changes: dict[str, object]) -> Job:
    """A copy with other values, not validated: `model_copy(update=...)` in a tenth of the time."""
    made = Job.__new__(Job)
    object.__setattr__(made, "__dict__", {**job.__dict__, **changes})
    for name in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        object.__setattr__(made, name, getattr(job, name))
    return made


def full_round(state: ClusterState, policy: Policy) -> tuple[Snapshot, Outcome, tuple[int, ...]]:
    """Decide a round as `allocate` does, without words, certificate and audit.

    Returns
    -------
    tuple
        The state as the engine read it, its decisions, and the gangs that are owed whole (rule O3), by index.
    """
    deadline = Unhurried(policy.time_limit_s)
    snapshot = take_snapshot(state, policy)
    entitled = entitle(snapshot)
    owed = owed_gangs(snapshot, entitled)
    target = fair_target(snapshot, entitled)
    index = build_index(snapshot, owed)
    first = greedy(snapshot, entitled, index)
    try:
        program, counted = formulate(snapshot, entitled, target, owed, index)
        solved = solve(program, counted, first, deadline, 0.0)
        outcome = solved.outcome
        if not solved.optimal:
            outcome = top_up(snapshot, entitled, index, restore(snapshot, outcome))
    except (PlacementError, SolverError, OverflowError):  # as in `allocate`: the greedy plan keeps every rule
        outcome = first
    return snapshot, outcome, owed
