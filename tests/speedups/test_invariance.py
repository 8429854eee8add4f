"""What must change nothing: the unit of each job's work and of its declaration, the order of lists, names of types."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from speedups.simulated import shuffled, world

from evenhand.speedups import audit_speedups
from evenhand_models import SpeedupAuditRequest, SpeedupPolicy

LIE = {"A": {"H100": 1.4}, "B": {"A100": 0.7}}
seeds = st.integers(0, 10**6)
few = settings(max_examples=10, deadline=None)


def rescaled(request, rng):
    """Every job's work in another unit, every declaration on another scale."""
    work = {job.id: float(np.exp(rng.uniform(-12, 12))) for job in request.state.jobs}
    told = {job.id: float(np.exp(rng.uniform(-12, 12))) for job in request.state.jobs}
    jobs = tuple(
        job.model_copy(update={"speedup": {t: x * told[job.id] for t, x in job.speedup.items()}})
        for job in request.state.jobs
    )
    seen = tuple(o.model_copy(update={"work_done": o.work_done * work[o.job]}) for o in request.observations)
    state = request.state.model_copy(update={"jobs": jobs})
    return request.model_copy(update={"state": state, "observations": seen}), told


@few
@given(seeds)
def test_units_of_jobs_change_nothing(seed):
    request = world(seed, groups=("A", "B"), jobs=(1, 3), each=(2, 6), factors=LIE)
    other, told = rescaled(request, np.random.default_rng(seed))
    a, b = audit_speedups(request), audit_speedups(other)
    assert [(g.group, g.gpu_type, g.reference_type, g.flag, g.enough) for g in a.groups] == [
        (g.group, g.gpu_type, g.reference_type, g.flag, g.enough) for g in b.groups
    ]
    for x, y in zip(a.groups, b.groups, strict=True):
        assert (y.ratio, y.low, y.high) == pytest.approx((x.ratio, x.low, x.high), abs=1e-8)
    for x, y in zip(a.jobs, b.jobs, strict=True):
        assert y.speedup == pytest.approx({t: v * told[x.job] for t, v in x.speedup.items()}, rel=1e-8)


@few
@given(seeds)
def test_order_changes_no_byte(seed):
    request = world(seed, groups=("A", "B"), jobs=(1, 3), each=(2, 6), factors=LIE)
    other = shuffled(np.random.default_rng(seed), request)
    assert audit_speedups(request).model_dump_json() == audit_speedups(other).model_dump_json()


@few
@given(seeds)
def test_other_groups_change_nothing(seed):
    request = world(seed, groups=("A", "B"), jobs=(1, 3), each=(3, 6), factors=LIE)
    alone = request.model_copy(update={"observations": tuple(o for o in request.observations if o.job[0] == "A")})
    a, b = audit_speedups(request), audit_speedups(alone)
    assert [g for g in a.groups if g.group == "A"] == [g for g in b.groups if g.group == "A"]


@few
@given(seeds)
def test_swapping_what_is_declared_and_what_is_done_turns_the_sign(seed):
    over = world(seed, groups=("A",), jobs=(2, 2), each=(6, 6), factors={"A": {"H100": 1.5}}, noise=1e-9)
    under = world(seed, groups=("A",), jobs=(2, 2), each=(6, 6), factors={"A": {"H100": 1 / 1.5}}, noise=1e-9)
    at = {"policy": SpeedupPolicy(reference_type="V100")}
    (a,) = [g for g in audit_speedups(over.model_copy(update=at)).groups if g.gpu_type == "H100"]
    (b,) = [g for g in audit_speedups(under.model_copy(update=at)).groups if g.gpu_type == "H100"]
    assert a.ratio == pytest.approx(-b.ratio, abs=1e-6)
    assert a.severity == pytest.approx(b.severity, abs=1e-6)
    assert (a.flag, b.flag) == ("overdeclared", "underdeclared")


def test_a_request_reads_back_from_its_own_json():
    request = world(1, groups=("A",), factors=LIE)
    assert SpeedupAuditRequest.model_validate_json(request.model_dump_json()) == request
    report = audit_speedups(request)
    assert type(report).model_validate_json(report.model_dump_json()) == report
