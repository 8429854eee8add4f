"""The best outcome that enumeration finds on tiny clusters, written as a plan, is accepted at its worth."""

from datetime import timedelta
from random import Random

import pytest
from oracles.enumeration import Enumeration
from strategies import random_policy, random_state

from audit.build import answer, finish
from evenhand.audit import audit
from evenhand.audit.dues import dues
from evenhand.audit.reading import read
from evenhand.audit.target import entitled_leaves

ACTIONS = {"reserve": "wait", "orphan": "keep", "repair": "migrate"}


def answers_of(reading, best):
    """Write the moves of an outcome as assignments; arrivals wait for all who leave their nodes."""
    found = {}
    for name, job in reading.jobs.items():
        move = best.moves.get(name)
        if move is None:
            found[name] = _without_a_move(job)
            continue
        action = ACTIONS.get(move.what, move.what)
        more = {
            "unallocated": job.live and not job.budgeted,
            "protected_until_at": _end(reading, job, action),
        }
        if action == "preempt":
            more = {"requeue": job.hit or job.job.contract.resumable, "why": "preempted_for"}
        if move.what == "reserve":
            more = {"gpu_type": move.kind, "why": "reserved_ending"}
        elif best.spots[name]:
            more["gpu_type"] = move.kind or job.held_type
        found[name] = answer(name, action, dict(best.spots[name]), **more)
    leavers = {}
    for name, job in reading.jobs.items():
        for node, gpus in job.held.items():
            if gpus > _after(job, found[name]).get(node, 0):
                leavers.setdefault(node, set()).add(name)
    for name, job in reading.jobs.items():
        comes = [node for node, gpus in _after(job, found[name]).items() if gpus > job.held.get(node, 0)]
        found[name]["after"] = sorted(set().union(*(leavers.get(node, ()) for node in comes)) - {name})
    return list(found.values())


def _without_a_move(job):
    name = job.job.id
    if job.terminating:
        return answer(name, "keep", dict(job.held), gpu_type=job.held_type, why="terminating")
    if job.infeasible:
        return answer(name, "infeasible", why="unknown_group")
    return answer(name, "preempt", requeue=True, why="node_loss")  # an orphan that is hit


def _after(job, wire):
    return {} if job.terminating else {part["node"]: part["gpus"] for part in wire.get("placement", ())}


def _end(reading, job, action):
    if not job.budgeted or job.length_s == 0 or action in ("wait", "preempt"):
        return None
    since = reading.state.now if action in ("start", "migrate") else job.started_at
    end = since + timedelta(seconds=job.length_s)
    return end if end > reading.state.now else None


@pytest.mark.parametrize("seed", range(40))
def test_the_best_outcome_is_accepted_at_its_worth(seed):
    rng = Random(seed)
    state = random_state(rng)
    policy = random_policy(rng, state)
    reading = read(state, policy)
    due = dues(reading)
    target = {leaf.group: leaf.used(leaf.slice) for leaf in entitled_leaves(reading, due)}
    best = Enumeration(state, policy, target).best()
    plan = finish(state, answers_of(reading, best), policy)
    assert audit(state, plan, policy).findings == ()
    said = {goal.name: goal.value * goal.weight for goal in plan.certificate.goals}
    assert said == pytest.approx(best.goals, abs=1e-6)
