"""Which gangs are owed whole (rule O3), worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from entitlement.built import group, jobs, snapshot
from strategies.clock import NOW, stamp
from strategies.clusters import state_of

from evenhand import allocate, audit
from evenhand.claims import Claims, claims, owed_weights
from evenhand.entitlement import Entitlement, entitle
from evenhand.owed_gangs import owed_gangs
from evenhand.snapshot import Snapshot
from evenhand_models import Action, Policy

ABC = [group("a"), group("b"), group("c")]


@pytest.mark.parametrize(
    ("gang", "asks", "owed"),
    [
        (64, 4, True),  # a is owed the 4 it asks for: 64 fit beside them
        (96, 4, False),  # 96 do not, and a stands first
        (92, 4, True),
        (64, 90, False),  # a wants more than its share of 96 and stands first
    ],
)
def test_who_is_owed_all_it_asks_for_stands_in_the_way_only_of_what_does_not_fit_beside_it(
    gang: int, asks: int, owed: bool
) -> None:
    work = [*jobs("a", asks), *jobs("b", 1, gang), *jobs("c", 96)]
    s = snapshot({"h100": 96}, ABC, work, usage={"b": 1_000.0, "c": 2_000.0, "a": 0.0}, node=8)
    found = [s.jobs[j].id for j in owed_gangs(s, entitle(s))]
    assert found == ([f"b-h100-{gang}-00000"] if owed else [])


PROGRAMS = [group("p"), group("p/a", parent="p"), group("p/b", parent="p"), group("q"), group("q/a", parent="q")]


def _round(gang: int, **usage: float) -> tuple[Snapshot, Entitlement, list[str]]:
    """Two programs of half each; `p/b` waits for a gang, the others ask for all there is, a GPU at a time."""
    work = [*jobs("p/a", 32), *jobs("p/b", 1, gang), *jobs("q/a", 32)]
    used = {name.replace("_", "/"): hours for name, hours in usage.items()}
    s = snapshot({"h100": 32}, PROGRAMS, work, usage=used, node=8)
    e = entitle(s)
    return s, e, [s.jobs[j].id for j in owed_gangs(s, e)]


def test_a_group_has_its_turn_though_its_siblings_took_what_it_did_not_get() -> None:
    """Both programs had half of all; of p's, a had three quarters: b had half of what it should."""
    assert _round(24, p_a=1_500, p_b=500, q_a=2_000)[2] == ["p/b-h100-24-00000"]
    assert _round(24, p_a=500, p_b=1_500, q_a=2_000)[2] == []


def test_a_sibling_that_wants_nothing_leaves_its_part_to_the_others() -> None:
    work = [*jobs("p/b", 1, 24), *jobs("q/a", 32)]
    s = snapshot({"h100": 32}, PROGRAMS, work, usage={"p/b": 1_900, "q/a": 2_000}, node=8)
    assert len(owed_gangs(s, entitle(s))) == 1  # b alone is all of p: half of the cluster


def test_an_owed_gang_weighs_as_a_gpu_short_at_every_level_that_does_not_cover_it() -> None:
    def weight(gang: int) -> tuple[float, Claims]:
        s, e, _ = _round(gang, p_a=800, p_b=700, q_a=2_000)
        found = claims(s, e)
        job = s.job_index[f"p/b-h100-{gang}-00000"]
        return owed_weights(s, e, found, [job])[job], found

    within, found = weight(12)  # p is owed 16 and more
    assert within == found.leaf[2] == pytest.approx((750 / 700) ** 4, abs=1e-3)
    beyond, found = weight(28)
    assert found.inner[0] == pytest.approx(2 * (1_750 / 1_500) ** 4, abs=2e-3)
    assert beyond == found.leaf[2] + found.inner[0]


def test_an_owed_gang_takes_from_who_is_owed_as_much_but_is_less_far_behind() -> None:
    """Nobody of p is behind the other, p is behind q: the gang beyond p's half runs all the same."""
    hour_ago = stamp(NOW - 7_200)
    work = [
        *jobs("p/b", 1, 24),
        *({**job, **_on(i, hour_ago)} for i, job in enumerate(jobs("p/a", 8))),
        *({**job, **_on(i + 8, hour_ago)} for i, job in enumerate(jobs("q/a", 24))),
    ]
    nodes = [{"name": f"n{i}", "gpu_type": "h100", "gpus": 8} for i in range(4)]
    used = [{"group": g, "charged_gpu_hours": u} for g, u in (("p/a", 700.0), ("p/b", 700.0), ("q/a", 2_000.0))]
    state = state_of(
        {
            "now": stamp(NOW),
            "gpu_types": [{"name": "h100"}],
            "nodes": nodes,
            "groups": PROGRAMS,
            "jobs": work,
            "usage": used,
        }
    )
    plan = allocate(state, Policy())
    assert next(a for a in plan.assignments if a.job == "p/b-h100-24-00000").action is Action.START
    assert audit(state, plan).ok


def _on(place: int, since: str) -> dict[str, Any]:
    return {
        "state": "running", "submitted_at": since, "started_at": since, "checkpointed_at": stamp(NOW - 60),
        "contract": {"min_runtime_s": 3_600, "resumable": True},
        "placement": [{"node": f"n{place // 8}", "gpus": 1}],
    }  # fmt: skip
