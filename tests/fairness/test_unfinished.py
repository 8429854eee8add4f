"""What is served where the work allowed does not do: fair all the same (rule T4)."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import class_values, values
from fairness.test_class_values import fits, relative
from instances import instance

from evenhand import allocate, audit
from evenhand.fairness import envy_free as room
from evenhand.fairness import target as targets
from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.equal_throughput import equal_throughput
from evenhand.fairness.fair_share import fair_share
from evenhand.fairness.group_value import value_of
from evenhand.fairness.max_min import max_min
from evenhand.fairness.nash import nash
from evenhand.fairness.swapped import envy_of
from evenhand_models import Objective, Policy

WORK = (0, 60, 200, 400, 600, 900, 2000)


@pytest.mark.parametrize("draw", [values, class_values])
@pytest.mark.parametrize("caps", ["none", "some", "tight"])
@pytest.mark.parametrize("objective", [envy_free, nash, equal_throughput, max_min])
def test_every_answer_is_fair_and_more_work_is_no_worse(objective, caps, draw):
    v = draw(4, 35, 3, caps=caps)
    found = [objective(v, iterations) for iterations in WORK]
    for x, _ in found:
        fits(v, x)
        if objective in (envy_free, max_min):
            assert (relative(v, value_of(v, x) - v.floor) >= -1e-6).all()
        if objective is envy_free:
            assert relative(v, envy_of(v, x)).max() <= room.ROUGH + 1e-6
    assert (found[0][0] == fair_share(v)).all()
    assert [best for _, best in found] == sorted(best for _, best in found)


@pytest.mark.parametrize("objective", [envy_free, max_min, equal_throughput])
def test_there_is_something_between_the_slices_and_the_best(objective, monkeypatch):
    monkeypatch.setattr(room, "ROUGH", 0.5)
    v = values(4, 60, 3, caps="tight")
    top = value_of(v, objective(v)[0]).sum()
    found = (objective(v, iterations) for iterations in range(200, 800, 20))
    rough = [value_of(v, x).sum() for x, best in found if not best and (x != fair_share(v)).any()]
    assert rough
    assert min(rough) > v.floor.sum()
    assert max(rough) == pytest.approx(top, rel=0.1)


@pytest.mark.parametrize("objective", list(Objective))
def test_the_audit_accepts_what_is_not_finished_and_the_certificate_says_so(objective, monkeypatch):
    state, policy = instance("small"), Policy(objective=objective)
    seen = set()
    for iterations in (0, 40, 80, 100_000):
        monkeypatch.setattr(targets, "iterations_within", lambda *_, most=iterations: most)
        plan = allocate(state, policy)
        assert audit(state, plan).ok
        seen.add(plan.certificate.target_proven)
    assert plan.certificate.target_proven
    assert seen == ({True} if objective is Objective.FAIR_SHARE else {False, True})


def test_an_answer_that_leaves_too_much_envy_is_not_served(monkeypatch):
    v = values(4, 45, 3)
    monkeypatch.setattr(room, "ROUGH", 0.0)
    rough = [x for x, best in (envy_free(v, iterations) for iterations in WORK) if not best]
    assert rough
    for x in rough:
        assert (x == fair_share(v)).all() or np.abs(envy_of(v, x)).max() <= 1e-7
