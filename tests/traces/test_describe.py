"""A trace in figures, and clusters built for a trace."""

import json
from pathlib import Path

import pytest
from traces.sources import NEUTRAL

from evenhand_api.rest.rounds import TINY
from evenhand_api.traces import read_trace
from evenhand_api.traces.clusters import built_cluster, groups_of_budget, groups_of_trace, parse_cluster
from evenhand_api.traces.describe import description
from evenhand_models import InvalidInput

BUDGET = {
    "programs": [
        {"id": "p1", "budget_gpu_h": 600, "projects": [
            {"id": "t1", "budget_gpu_h": 400, "researchers": [{"id": "u1", "budget_gpu_h": 400}]},
            {"id": "t2", "budget_gpu_h": 200, "researchers": []}]},
        {"id": "p2", "budget_gpu_h": 300, "projects": []},
    ]
}  # fmt: skip


@pytest.fixture
def trace(tmp_path: Path):
    path = tmp_path / "made.csv"
    path.write_text(NEUTRAL)
    return str(path)


def test_a_description_adds_up(trace: str) -> None:
    reading = read_trace(trace)
    cluster = built_cluster({"h100": 12}, 8, groups_of_trace(reading.trace))
    facts = description(reading, cluster)
    assert facts["jobs"] == 2
    assert facts["gpu_hours"] == pytest.approx(8 + 30 / 3_600)
    assert facts["mean_gpus_asked_for"] == pytest.approx(facts["gpu_hours"] / (facts["days"] * 24))
    assert facts["supply"]["demand_over_supply"] == pytest.approx(facts["mean_gpus_asked_for"] / 12)
    for name in ("groups", "kinds", "gpu_types", "gangs", "runs"):
        assert sum(part["jobs"] for part in facts[name]) == 2
        assert sum(part["gpu_hours"] for part in facts[name]) == pytest.approx(facts["gpu_hours"])
    assert facts["run_s"] == {"p50": 30.0, "p90": 3_600.0, "p99": 3_600.0, "most": 3_600.0}


def test_a_built_cluster_has_the_gpus_asked_for_in_nodes_of_a_size() -> None:
    cluster = built_cluster({"h100": 20, "a100": 8}, 8, groups_of_budget(json.dumps(BUDGET).encode()))
    assert [(node.name, node.gpus) for node in cluster.nodes] == [
        ("a100-1", 8), ("h100-1", 8), ("h100-2", 8), ("h100-3", 4),
    ]  # fmt: skip
    assert [(g.id, g.parent, g.share) for g in cluster.groups] == [
        ("p1", None, 600.0), ("t1", "p1", 400.0), ("t2", "p1", 200.0), ("p2", None, 300.0),
    ]  # fmt: skip
    assert parse_cluster(cluster.model_dump_json(exclude_defaults=True).encode()) == cluster


@pytest.mark.parametrize(("depth", "ids"), [(1, ["p1", "p2"]), (3, ["p1", "t1", "u1", "t2", "p2"])])
def test_a_budget_tree_is_taken_as_deep_as_asked(depth: int, ids: list[str]) -> None:
    assert [group.id for group in groups_of_budget(json.dumps(BUDGET).encode(), depth)] == ids


def test_a_budget_tree_that_is_none_is_refused_by_pointer() -> None:
    with pytest.raises(InvalidInput) as refused:
        groups_of_budget(b'{"programs": [{"id": "p1", "budget_gpu_h": -1}, {"budget_gpu_h": 2}]}')
    assert [error.pointer for error in refused.value.errors] == ["/programs/0", "/programs/1"]


def test_a_cluster_file_may_be_a_state_whose_jobs_are_not_looked_at() -> None:
    tiny = json.loads(TINY)
    assert parse_cluster(json.dumps(tiny).encode()).jobs == ()
    bare = {name: tiny["state"][name] for name in ("gpu_types", "nodes", "groups")}
    assert parse_cluster(json.dumps(bare).encode()).nodes == parse_cluster(json.dumps(tiny).encode()).nodes
