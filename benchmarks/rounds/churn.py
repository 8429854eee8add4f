"""The round after a round: the plan done, a minute gone, and some jobs ended and others come in their place."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

from evenhand_models import Assignment, Plan


def next_round(request: dict[str, Any], plan: Plan, share: float, seed: int) -> dict[str, Any]:
    """Return the request of a minute later.

    Parameters
    ----------
    request : of the round that was decided, as JSON; plan : its answer.
    share : part of the running jobs that end, and of the waiting ones that go while as many others come.
    """
    draw, state = Random(f"{seed} {share}"), request["state"]
    now = _stamp(_read(state["now"]) + timedelta(seconds=60))
    answers = {a.job: a for a in plan.assignments}
    jobs = []
    for job in state["jobs"]:
        done = _done(job, answers[job["id"]], state["now"])
        if done is None or (done.get("state") == "running" and draw.random() < share):
            continue
        if "state" not in done and draw.random() < share:
            done |= {"id": f"{done['id']}n", "submitted_at": now}
        jobs.append(done)
    return {**request, "state": {**state, "now": now, "jobs": jobs}}


def _done(job: dict[str, Any], answer: Assignment, now: str) -> dict[str, Any] | None:
    """The job once its answer is carried out; None if it ends for good."""
    if answer.action == "preempt" and not answer.requeue:
        return None
    left = (
        {"state", "started_at", "placement", "checkpointed_at"}
        if answer.action in ("preempt", "start", "migrate")
        else set()
    )
    done = {name: value for name, value in job.items() if name not in left}
    if answer.action in ("start", "migrate"):
        done |= {"state": "running", "started_at": now}
    if answer.action in ("start", "migrate", "resize"):
        done["placement"] = [{"node": part.node, "gpus": part.gpus} for part in answer.placement]
    return done


def _read(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
