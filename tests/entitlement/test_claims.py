"""What claims weigh, worked out by hand (rule O2)."""

from __future__ import annotations

import pytest

from evenhand.claims import Claims, claims
from evenhand.entitlement import entitle
from evenhand.snapshot import take_snapshot
from evenhand_models import ClusterState, Policy


def weighed(groups: list[dict[str, object]], used: dict[str, float], works: str, urgency: float = 4.0) -> Claims:
    """Claims where the groups named have a waiting job each; groups go by their ids."""
    jobs = [
        {
            "id": f"j-{g}",
            "group": g,
            "gpus": 1,
            "speedup": {"h100": 1.0},
            "submitted_at": "2026-11-01T00:00:00Z",
            "contract": {"min_runtime_s": 60},
            "state": "pending",
        }
        for g in works.split()
    ]
    state = ClusterState.model_validate(
        {
            "now": "2026-11-01T12:00:00Z",
            "gpu_types": [{"name": "h100"}],
            "nodes": [{"name": "n", "gpu_type": "h100", "gpus": 8}],
            "groups": groups,
            "usage": [{"group": g, "charged_gpu_hours": u} for g, u in used.items()],
            "jobs": jobs,
        },
        strict=False,
    )
    snapshot = take_snapshot(state, Policy(urgency=urgency))
    return claims(snapshot, entitle(snapshot))


FLAT = [{"id": "a", "share": 1.0}, {"id": "b", "share": 3.0}]


@pytest.mark.parametrize(
    ("used", "leaf"),
    [
        ({}, (300.0, 300.0)),  # nobody has used anything: nobody has had anything yet
        ({"a": 100.0, "b": 300.0}, (1.0, 1.0)),
        ({"a": 50.0, "b": 350.0}, (16.0, 1.0)),  # half of 100 a share, to the fourth power
        ({"a": 20.0, "b": 380.0}, (300.0, 1.0)),  # 5^4 is above the most there is
        ({"a": 250.0, "b": 150.0}, (1.0, 16.0)),
        ({"b": 400.0}, (300.0, 1.0)),
    ],
)
def test_a_claim_gains_weight_with_the_fourth_power_of_how_far_it_is_behind(
    used: dict[str, float], leaf: tuple[float, ...]
) -> None:
    assert weighed(FLAT, used, "a b").leaf == leaf


def test_weights_are_whole_thousandths_and_as_steep_as_the_policy_says() -> None:
    used = {"a": 80.0, "b": 320.0}
    assert weighed(FLAT, used, "a b").leaf == (2.441, 1.0)  # 1.25^4 = 2.44140625
    assert weighed(FLAT, used, "a b", urgency=1.0).leaf == (1.25, 1.0)
    assert weighed(FLAT, used, "a b", urgency=1e6).leaf == (300.0, 1.0)


def test_who_wants_nothing_is_no_measure_for_others() -> None:
    assert weighed(FLAT, {"a": 10.0, "b": 400.0}, "a b").leaf == (300.0, 1.0)
    assert weighed(FLAT, {"a": 10.0, "b": 400.0}, "a").leaf[0] == 1.0  # alone it is its own average


def test_inner_groups_and_own_jobs_are_judged_among_their_siblings() -> None:
    tree = [{"id": "p", "share": 1.0}, {"id": "p/x", "parent": "p", "share": 1.0}, {"id": "q", "share": 1.0}]
    found = weighed(tree, {"p": 100.0, "p/x": 1.0, "q": 5.0}, "p p/x q")
    assert found.inner[0] == 2.0  # p has used 101 of 106
    assert found.leaf == (1.0, 300.0, 300.0)  # p's own jobs used 100 of 101, p/x 1, q 5 of 106
    assert weighed(tree, {}, "p p/x q").inner[0] == 600.0
