"""What an observation and a request may say."""

from __future__ import annotations

from datetime import timedelta

import pytest
from cases.states import NOW, cluster, job
from pydantic import ValidationError

from evenhand_models import DeclaredJob, InvalidInput, Observation, SpeedupAuditRequest, SpeedupPolicy

GOOD = {"job": "j", "gpu_type": "H100", "gpus": 8, "work_done": 5.0, "seconds": 60}


@pytest.mark.parametrize(
    "wrong",
    [
        {"work_done": -0.5}, {"work_done": -1}, {"work_done": "5"}, {"work_done": float("inf")}, {"seconds": 0},
        {"gpus": 0}, {"gpus": 1.5}, {"unit": "steps"}, {"requeues": -1}, {"progress": -1.0}, {"ended_at": "noon"},
    ],
)  # fmt: skip
def test_an_observation_is_strict(wrong):
    Observation.model_validate(GOOD)
    with pytest.raises(ValidationError):
        Observation.model_validate(GOOD | wrong)


def test_an_observation_is_frozen():
    with pytest.raises(ValidationError):
        Observation.model_validate(GOOD).gpus = 4


@pytest.mark.parametrize("wrong", [{"confidence": 1.0}, {"min_observations": 0}, {"noise": 0}, {"use": "guess"}])
def test_a_policy_is_strict(wrong):
    with pytest.raises(ValidationError):
        SpeedupPolicy.model_validate(wrong)


def test_all_contradictions_of_a_request_are_named():
    late = Observation(**GOOD, ended_at=NOW + timedelta(hours=1))
    with pytest.raises(InvalidInput) as refused:
        SpeedupAuditRequest(
            state=cluster("1x8 H100", {"A": 1}, [job("j", "A", 8)]),
            ended_jobs=[DeclaredJob(id="j", group="A", speedup={})],
            observations=[Observation(**GOOD), late],
            policy=SpeedupPolicy(reference_type="T4"),
        )
    assert [e.pointer for e in refused.value.errors] == [
        "/ended_jobs/0/id", "/observations/1/ended_at", "/policy/reference_type",
    ]  # fmt: skip


def test_no_observations_find_nothing():
    from evenhand.speedups import audit_speedups

    state = cluster("1x8 H100", {"A": 1}, [job("j", "A", 8)])
    report = audit_speedups(SpeedupAuditRequest(state=state, observations=()))
    assert (report.groups, report.hints, report.refuted, report.undeclared) == ((), (), (), ())
    assert [entry.job for entry in report.jobs] == ["j"]
