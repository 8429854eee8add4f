"""Rule T3's lines where bundles lie, and what repeating the program of `envy_free` with them brings."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import class_values, values
from fairness.test_class_values import fits, relative, some_bundles
from instances import instance

from evenhand import allocate, audit
from evenhand.entitlement import entitle
from evenhand.fairness import envy_free as room
from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.group_value import GroupValues, group_values, value_of, values_of, wished_of
from evenhand.fairness.lines import slice_lines
from evenhand.fairness.pair_envy import envy_missed
from evenhand.fairness.pareto import pareto_gap
from evenhand.fairness.swapped import envy_of, value_of_others
from evenhand.snapshot import take_snapshot
from evenhand_models import Policy

CAPS = ["none", "some", "tight"]


def throughput(v: GroupValues) -> float:
    return float(value_of(v, envy_free(v)[0]).sum())


@pytest.mark.parametrize("draw", [values, class_values])
@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(5))
def test_a_line_touches_the_value_where_the_bundle_lies_and_is_above_it_elsewhere(seed, caps, draw):
    v = draw(seed, 9, 1 + seed % 5, caps=caps)
    here = some_bundles(v, seed)
    pairs = np.nonzero(np.random.default_rng(seed).random((9, 9)) < 0.7)
    lines, changed = slice_lines(v).touching(here, *pairs)
    asked = np.zeros((9, 9), dtype=bool)
    asked[pairs] = True
    assert not (changed & ~asked).any()
    assert lines.wished(here)[asked] == pytest.approx(value_of_others(v, here)[asked], rel=1e-9, abs=1e-9)
    assert (lines.wished(here)[~asked] == wished_of(v, here)[~asked]).all()
    for k in range(8):
        y = some_bundles(v, 100 + k)
        assert (lines.wished(y) >= value_of_others(v, y) - 1e-9).all()


@pytest.mark.parametrize("draw", [values, class_values])
@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(8))
def test_throughput_never_falls_by_a_repeat_and_nobody_envies_after_any(seed, caps, draw, monkeypatch):
    v = draw(seed, 4 + 3 * seed, 1 + seed % 4, caps=caps)
    found = []
    for repeats in (0, 1, 2, 4, 8):
        monkeypatch.setattr(room, "MOST_REPEATS", repeats)
        x, best = envy_free(v)
        assert best
        fits(v, x)
        assert (relative(v, value_of(v, x) - v.floor) >= -1e-6).all()
        assert relative(v, envy_of(v, x)).max() <= 1e-6
        assert envy_missed(v, x) <= 1e-6
        found.append(value_of(v, x).sum())
    assert (np.diff(found) >= -1e-9 * found[0]).all()


@pytest.mark.parametrize("seed", range(6))
def test_with_one_class_and_caps_that_do_not_bind_a_repeat_changes_no_byte(seed, monkeypatch):
    v = values(seed, 20, 3, caps="none", twins=seed % 2 == 0)
    repeated = envy_free(v)[0].tobytes()
    monkeypatch.setattr(room, "MOST_REPEATS", 0)
    assert envy_free(v)[0].tobytes() == repeated


def test_repeats_bring_a_seventh_more_on_the_instance_medium_and_leave_next_to_nothing(monkeypatch):
    taken = take_snapshot(instance("medium"), Policy())
    v, _ = group_values(taken, entitle(taken))
    x, _ = envy_free(v)
    assert pareto_gap(v, x).gap < 0.01
    assert x.sum() == pytest.approx(v.capacity.sum())
    monkeypatch.setattr(room, "MOST_REPEATS", 0)
    once, _ = envy_free(v)
    assert pareto_gap(v, once).gap > 0.16
    assert value_of(v, x).sum() > 1.13 * value_of(v, once).sum()


def test_what_repeats_find_need_not_be_the_best_of_all(monkeypatch):
    """Five groups: with lines that touch for all pairs, not only near ones, repeats end at more, as fair."""
    v = class_values(2, 5, 2, caps="tight")
    one = throughput(v)
    monkeypatch.setattr(room, "NEAR", 1e9)
    assert throughput(v) > 1.001 * one
    assert envy_missed(v, envy_free(v)[0]) <= 1e-6


def test_where_the_work_does_not_do_for_a_repeat_the_last_one_that_was_done_counts(monkeypatch):
    v = class_values(2, 60, 3, caps="tight")
    most, least = throughput(v), []
    for allowed in (0, 400, 800, 1600, 3200):
        monkeypatch.setattr(room, "LEAST_REPEATED", allowed)
        x, best = envy_free(v)
        assert best
        assert relative(v, envy_of(v, x)).max() <= 1e-6
        least.append(value_of(v, x).sum())
    assert least == sorted(least)
    assert least[0] < most


@pytest.mark.parametrize("caps", ["some", "tight"])
@pytest.mark.parametrize("seed", range(5))
def test_more_of_everything_and_other_units_change_nothing(seed, caps):
    v = class_values(seed, 8, 3, caps=caps)
    rng = np.random.default_rng(seed)
    generic = v.weights * rng.uniform(0.8, 1.0, len(v.of))[:, None]
    one = values_of(v.leaves, v.entitled, generic, v.cap, v.capacity, v.of)
    threefold = values_of(v.leaves, 3 * v.entitled, generic, 3 * v.cap, 3 * v.capacity, v.of)
    other_unit = values_of(v.leaves, 7 * v.entitled, 2 * generic, v.cap, v.capacity, v.of)
    value = value_of(one, envy_free(one)[0])
    assert value_of(threefold, envy_free(threefold)[0]) == pytest.approx(3 * value, rel=1e-5, abs=1e-6)
    assert value_of(other_unit, envy_free(other_unit)[0]) == pytest.approx(2 * value, rel=1e-5, abs=1e-6)


def test_the_audit_finds_envy_that_is_there_and_the_same_sum_of_it():
    state = instance("small")
    plan = allocate(state, Policy())
    assert audit(state, plan).ok
    assert plan.certificate.target_envy_slack <= 1e-6
    wire = plan.model_dump(mode="json")
    wire["certificate"]["target_envy_slack"] = 1.0
    assert "T3" in {finding.rule for finding in audit(state, type(plan).model_validate(wire)).findings}
