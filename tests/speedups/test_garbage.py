"""Whatever the contract lets through, the audit answers: drawn garbage, written and read back (V1 to V8)."""

from __future__ import annotations

from random import Random

import pytest
from cases.states import NOW, after, cluster, job

from evenhand.speedups import audit_speedups, state_in_use, with_gains
from evenhand_api.report import as_text
from evenhand_api.report.speedups import speedup_report
from evenhand_models import (
    ClusterState,
    DeclaredJob,
    Observation,
    Policy,
    SpeedupAuditRequest,
    SpeedupPolicy,
    SpeedupReport,
)

TYPES = ("a", "b", "c", "Typ \u00e9\U0001f680")
FACTORS = (0.0, 5e-324, 1e-300, 1e-9, 0.5, 1.0, 1.0, 2.0, 3.0, 1e9, 1e30)
WORK = (0.0, 5e-324, 1e-200, 1.0, 1.0, 2.0, 1e9, 1e30)
SECONDS = (5e-324, 1e-9, 0.5, 29.0, 31.0, 600.0, 600.0, 3600.0, 315_360_000.0)


def garbage(seed: int) -> SpeedupAuditRequest:
    """A request that is valid and mad."""
    draw = Random(seed)

    def vector() -> dict[str, float]:
        return {t: draw.choice(FACTORS) for t in draw.sample((*TYPES, "gone"), draw.randint(0, 5))}

    work = [
        job(f"j{i}", draw.choice("ABX"), draw.choice((1, 2, 8)), speedup=vector()) for i in range(draw.randint(0, 6))
    ]
    state = cluster([*cluster("1x8 a, 1x8 b, 1x8 c", {"A": 1}).nodes], {"A": 1, "B": 0.5}, work)
    ended = tuple(DeclaredJob(id=f"e{i}", group=draw.choice("AX"), speedup=vector()) for i in range(draw.randint(0, 2)))
    seen = []
    for _ in range(draw.choice((0, 1, 5, 60))):
        stamped = {"ended_at": after(-draw.randint(0, 3))} if draw.random() < 0.3 else {}
        if draw.random() < 0.5:
            stamped |= {"requeues": draw.randint(0, 3), "progress": draw.choice(WORK)}
        seen.append(
            Observation(
                job=draw.choice(("j0", "j0", "j1", "j2", "e0", "nobody")),
                gpu_type=draw.choice((*TYPES, "gone", "never")),
                gpus=draw.choice((1, 1, 8, 10**6)),
                work_done=draw.choice(WORK),
                seconds=draw.choice(SECONDS),
                **stamped,
            )
        )
    seen += draw.sample(seen, min(len(seen), draw.choice((0, 3))))
    policy = SpeedupPolicy(
        use=draw.choice(("declared", "observed", "blend")),
        consequence=draw.choice(("warn", "use_observed", "refuse")),
        min_observations=draw.choice((1, 1, 5)),
        min_seconds=draw.choice((0, 600)),
        shortest_observation_s=draw.choice((0, 0, 30)),
        tolerance=draw.choice((0.0, 0.1, 1.0)),
        confidence=draw.choice((0.5, 0.98, 0.9999)),
        noise=draw.choice((0.001, 0.1, 3.0)),
        reference_type=draw.choice((None, None, "a")),
        min_like_jobs=draw.choice((1, 3)),
        checkpoint_s=draw.choice((0, 3600)),
        most_gains=draw.choice((0, 1, 10)),
    )
    return SpeedupAuditRequest(state=state, ended_jobs=ended, observations=tuple(seen), policy=policy)


def answered(seed: int) -> SpeedupReport:
    request = garbage(seed)
    report = with_gains(request.state, audit_speedups(request), Policy())
    assert SpeedupReport.model_validate_json(report.model_dump_json()) == report
    used = state_in_use(request.state, report)
    assert ClusterState.model_validate_json(used.model_dump_json()) == used
    assert used.now == NOW
    refused = {entry.job for entry in report.jobs if entry.refused}
    assert {j.id for j in used.jobs} == {j.id for j in request.state.jobs} - refused
    declared = {j.id: j.speedup for j in request.state.jobs}
    for one in used.jobs:
        assert {t for t, x in one.speedup.items() if x > 0} == {t for t, x in declared[one.id].items() if x > 0}
    for width in (40, 120):
        assert max(map(len, as_text(speedup_report(request.state, report, width), width).splitlines())) <= width
    return report


def test_garbage_is_answered_and_reads_back():
    reports = [answered(seed) for seed in range(60)]
    assert {"none", "overdeclared", "underdeclared"} <= {entry.flag.value for r in reports for entry in r.groups}
    assert any(r.gains for r in reports)
    assert any(r.refuted for r in reports)
    assert {left.code.value for r in reports for left in r.left_out} == {
        "unknown_job", "unknown_type", "repeated", "too_short", "no_work",
    }  # fmt: skip


@pytest.mark.heavy
def test_much_garbage_is_answered_and_reads_back():
    for seed in range(60, 1500):
        answered(seed)
