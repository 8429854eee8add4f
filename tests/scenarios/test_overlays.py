"""What a scenario lays over a cluster, a tree, a policy and a trace."""

from dataclasses import replace

import pytest
from scenarios.small import DAY, case, cluster

from evenhand.replay import Scheduler, replay
from evenhand.scenarios import ReplayCase, laid_over
from evenhand_models import InvalidInput
from evenhand_models.scenarios import BASE, read_scenario


def over(document: dict, seed: int = 0, base: ReplayCase | None = None) -> ReplayCase:
    return laid_over(base or case(), read_scenario({"name": "s", **document}), seed)


def pointers(document: dict) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        over(document)
    return [error.pointer for error in refused.value.errors]


def test_the_base_changes_nothing() -> None:
    base = case()
    assert laid_over(base, BASE, 7) == base


def test_nodes_come_at_once_or_on_their_day_and_go_again() -> None:
    got = over({"cluster": {"add": [
        {"gpu_type": "b200", "nodes": 2, "gpus": 4},
        {"gpu_type": "h100", "nodes": 1, "name": "guest", "from_day": 0.5, "until_day": 1},
    ]}})  # fmt: skip
    assert [n.name for n in got.cluster.nodes] == ["n1", "n2", "new-b200-1", "new-b200-2"]
    assert [t.name for t in got.cluster.gpu_types] == ["b200", "h100"]
    come, go = got.trace.changes
    assert (come.at_s, [n.name for n in come.nodes], come.gone) == (DAY // 2, ["guest-1"], ())
    assert (go.at_s, go.nodes, go.gone) == (DAY, (), ("guest-1",))


def test_a_rack_is_lost_on_its_day_and_comes_back() -> None:
    got = over({"cluster": {"lose": [{"labels": {"rack": "r1"}, "from_day": 1, "until_day": 1.5}]}})
    assert all(node.status == "up" for node in got.cluster.nodes)
    lost, back = got.trace.changes
    assert (lost.at_s, [(n.name, n.status) for n in lost.nodes]) == (DAY, [("n1", "down")])
    assert (back.at_s, [(n.name, n.status) for n in back.nodes]) == (DAY * 3 // 2, [("n1", "up")])


def test_a_loss_from_the_beginning_needs_no_change_later() -> None:
    got = over({"cluster": {"lose": [{"nodes": 1, "status": "cordoned"}]}})
    assert [node.status for node in got.cluster.nodes] == ["cordoned", "up"]
    assert got.trace.changes == ()


def test_a_node_that_is_added_can_be_lost_while_it_is_there() -> None:
    got = over({"cluster": {
        "add": [{"gpu_type": "h100", "nodes": 1, "name": "x", "from_day": 0.5}],
        "lose": [{"names": ["x-1"], "from_day": 1}],
    }})  # fmt: skip
    assert [(c.at_s, c.nodes[0].status) for c in got.trace.changes] == [(DAY // 2, "up"), (DAY, "down")]


def test_budgets_change_at_once_and_from_a_day_on() -> None:
    got = over({"tree": [
        {"groups": [{"id": "lab/b", "share": 60}, {"id": "lab/c", "parent": "lab", "share": 5}]},
        {"groups": [{"id": "lab/a", "max_gpus": 4}], "remove": ["lab/c"], "from_day": 1},
    ]})  # fmt: skip
    assert {g.id: g.share for g in got.cluster.groups} == {"lab": 1, "lab/a": 50, "lab/b": 60, "lab/c": 5}
    (later,) = got.trace.changes
    assert later.at_s == DAY
    assert {g.id: (g.share, g.max_gpus) for g in later.groups} == {
        "lab": (1, None),
        "lab/a": (50, 4),
        "lab/b": (60, None),
    }


def test_any_field_of_the_policy_and_of_the_world_can_be_other() -> None:
    got = over({"policy": {"objective": "max_min", "horizon_s": 3_600}, "world": {"checkpoint_interval_s": 60}})
    assert (got.policy.objective, got.policy.horizon_s, got.policy.window_s) == ("max_min", 3_600, 604_800)
    assert (got.rules.checkpoint_interval_s, got.rules.full_round_s) == (60, case().rules.full_round_s)


def test_doubled_arrivals_keep_every_job_and_add_one_like_it() -> None:
    base = case()
    got = over({"jobs": {"arrivals": 2}})
    assert len(got.trace.jobs) == 2 * len(base.trace.jobs)
    assert set(base.trace.jobs) <= set(got.trace.jobs)
    copies = {job.id: job for job in got.trace.jobs if "~" in job.id}
    for job in base.trace.jobs:
        copy = copies[f"{job.id}~2"]
        assert (copy.gpus, copy.duration_s, copy.group) == (job.gpus, job.duration_s, job.group)
        assert abs(copy.submit_s - job.submit_s) <= 3_600


def test_copies_and_added_nodes_never_take_a_name_that_is_there() -> None:
    base = case(jobs=4)
    twin = replace(base.trace.jobs[0], id=f"{base.trace.jobs[0].id}~2")
    crowded = replace(base, trace=replace(base.trace, jobs=(*base.trace.jobs, twin)))
    ids = [job.id for job in over({"jobs": {"arrivals": 3}}, base=crowded).trace.jobs]
    assert len(ids) == len(set(ids)) == 15
    long = "x" * 256
    assert len(over({"cluster": {"add": [{"gpu_type": long, "nodes": 2}]}}).cluster.nodes) == 4
    assert pointers({"cluster": {"add": [{"gpu_type": "h100", "nodes": 1, "name": long}]}}) == ["/cluster/add/0/name"]
    assert pointers({"cluster": {"add": [{"gpu_type": "h100", "nodes": 1, "name": "n"}] * 2}}) == [
        "/cluster/add/1/name"
    ]


@pytest.mark.parametrize("times", [0.5, 1.5])
def test_a_fraction_of_arrivals_is_drawn_by_the_seed(times: float) -> None:
    base = case(jobs=400)
    first, again, other = (over({"jobs": {"arrivals": times}}, seed, base).trace.jobs for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == pytest.approx(400 * times, rel=0.15)


def test_what_is_random_does_not_depend_on_the_other_jobs() -> None:
    base = case(jobs=200)
    fewer = {job.id for job in over({"jobs": {"arrivals": 0.5, "drop": [{"group": "lab/b"}]}}, 3, base).trace.jobs}
    whole = {job.id for job in over({"jobs": {"arrivals": 0.5}}, 3, base).trace.jobs if job.group == "lab/a"}
    assert fewer == whole


def test_jobs_are_dropped_changed_and_added() -> None:
    got = over({"jobs": {
        "drop": [{"kind": "debug", "gpus_from": 2}],
        "change": [{"where": {"group": "lab/a"}, "set": {"run_time_factor": 2, "min_runtime_s": 0}}],
        "add": [{"name": "debug-load", "group": "lab/b", "per_day": 50, "run_s": 90, "steady": True, "kind": "debug",
                 "from_day": 1}],
    }})  # fmt: skip
    before = {job.id: job for job in case().trace.jobs}
    added = [job for job in got.trace.jobs if job.id not in before]
    assert 30 <= len(added) <= 75
    assert {(job.group, job.duration_s, job.kind) for job in added} == {("lab/b", 90, "debug")}
    assert min(job.submit_s for job in added) >= DAY
    for job in got.trace.jobs:
        if job.id in before:
            assert not (job.kind == "debug" and job.gpus >= 2)
            twice = 2 if job.group == "lab/a" else 1
            assert job.duration_s == twice * before[job.id].duration_s
    assert list(got.trace.jobs) == sorted(got.trace.jobs, key=lambda job: (job.submit_s, job.id))


def test_what_is_malformed_is_refused_by_pointer() -> None:
    assert pointers({"policy": {"horizon_s": 0, "objectiv": "nash"}}) == ["/policy/horizon_s", "/policy/objectiv"]
    assert pointers({"jobs": {"arrivals": 0}, "clusters": {}}) == ["/jobs/arrivals", "/clusters"]


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"cluster": {"lose": [{"gpu_type": "b200"}]}}, "/cluster/lose/0"),
        ({"cluster": {"add": [{"gpu_type": "h100", "nodes": 1, "name": "n", "from_day": 2, "until_day": 1}]}},
         "/cluster/add/0/until_day"),
        ({"tree": [{"groups": [{"id": "new"}]}]}, "/tree/0/groups/0/share"),
        ({"tree": [{"remove": ["nobody"]}]}, "/tree/0/remove/0"),
        ({"tree": [{"groups": [{"id": "lab", "parent": "lab/a"}]}]}, "/tree/0"),
        ({"jobs": {"add": [{"name": "x", "group": "lab/a", "per_day": 9, "run_s": 9}] * 2}}, "/jobs/add/1/name"),
        ({"jobs": {"add": [{"name": "x", "group": "lab/a", "per_day": 1e6, "run_s": 9}]}}, "/jobs/add/0/per_day"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_cluster_is_refused_by_pointer(document: dict, pointer: str) -> None:
    assert pointers(document) == [pointer]


def test_a_laid_over_case_replays_and_shows_what_was_laid_over_it() -> None:
    got = over({"cluster": {"lose": [{"labels": {"rack": "r1"}, "from_day": 1}]}, "jobs": {"arrivals": 2}})
    result = replay(got.trace, got.cluster, got.policy, Scheduler.FIRST_FIT, rules=got.rules)
    assert result.capacity.at_s.tolist() == [0, DAY]
    assert result.capacity.gpus.sum(axis=1).tolist() == [16, 8]
    assert len(result.jobs.ids) == len(got.trace.jobs)
    assert cluster().nodes == case().cluster.nodes
