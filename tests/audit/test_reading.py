"""Rules S on small states, every expected value worked out by hand."""

import pytest

from audit.build import at, group, job, node, running, state
from evenhand.audit.reading import read
from evenhand_models import Policy

ROOT = [group("a")]


def read_jobs(nodes, jobs, groups=ROOT, policy=None):
    return read(state(nodes, groups, jobs), policy or Policy()).jobs


def test_s1_clocks_ahead_count_as_now():
    jobs = read_jobs(
        [node("n1", 8)],
        [
            job("new", "a", 1, submitted_at=at(2)),
            running("run", "a", {"n1": 1}, started_at=at(2), checkpointed_at=at(3)),
        ],
    )
    assert jobs["new"].age_step == 0
    assert jobs["run"].pinned
    assert jobs["run"].started_at.isoformat() == "2026-11-01T12:00:00+00:00"
    assert jobs["run"].lost_s == 0


def test_s2_contracts_are_cut_to_the_cap():
    policy = Policy(max_protection_s=600)
    jobs = read_jobs([node("n1", 8)], [running("run", "a", {"n1": 1}, started_at=at(-10))], policy=policy)
    assert jobs["run"].length_s == 600
    assert not jobs["run"].pinned  # half-open: protection ended right now


def test_s3_rooms_and_capacity():
    nodes = [
        node("up", 8, unavailable_gpus=1, foreign_gpus=2),
        node("cordoned", 8, status="cordoned"),
        node("down", 8, status="down"),
        node("past", 8, available_until_at=at(0)),
        node("soon", 8, available_until_at=at(1)),
    ]
    reading = read(state(nodes, ROOT, []), Policy())
    assert reading.room == {"up": 5, "cordoned": 8, "down": 0, "past": 0, "soon": 8}
    assert reading.open == {"up", "soon"}
    assert reading.keeping == {"up", "soon", "cordoned"}
    assert reading.capacity == {"h100": 13}
    assert reading.gpus == 40


def test_s4_unknown_groups():
    groups = [group("a"), group("a/b", parent="a")]
    jobs = [
        job("pending", "a/x", 1),
        running("nearest", "a/b/c/d", {"n1": 1}),
        running("orphan", "z/b", {"n1": 1}),
        running("leaving", "a/x", {"n1": 1}, state="terminating"),
    ]
    reading = read(state([node("n1", 8)], groups, jobs, usage={"a/b/q": 3.0, "z": 9.0, "a": 1.0}), Policy())
    assert reading.jobs["pending"].infeasible
    assert reading.jobs["nearest"].group == "a/b"
    assert reading.jobs["orphan"].orphan
    assert reading.jobs["orphan"].pinned
    assert not reading.jobs["orphan"].live
    assert reading.jobs["leaving"].group == "a"
    assert not reading.jobs["leaving"].live
    assert reading.usage == {"a": 1.0, "a/b": 3.0}


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ({"gpus": 14}, True),
        ({"gpus": 15}, False),
        ({"gpus": 12, "worker_gpus": 3}, True),
        ({"gpus": 15, "worker_gpus": 3}, False),
        ({"gpus": 8, "gpus_per_node": 4}, True),
        ({"gpus": 14, "gpus_per_node": 7}, False),
        ({"gpus": 40, "min_gpus": 2}, True),
        ({"gpus": 8, "same": "rack"}, True),
        ({"gpus": 9, "same": "rack"}, False),
        ({"gpus": 6, "requires": {"rack": "r1"}}, True),
        ({"gpus": 7, "requires": {"rack": "r1"}}, False),
        ({"gpus": 1, "requires": {"rack": "r9"}}, False),
        ({"gpus": 1, "speedup": {"h100": 0.0}}, False),
        ({"gpus": 1, "speedup": {"b200": 1.0}}, False),
    ],
)
def test_s5_nominal_fit(shape, fits):
    """Nodes of 6 (rack 1) and 8 (rack 2, down): status plays no part, all GPUs count."""
    nodes = [
        node("n1", 6, labels={"rack": "r1"}, unavailable_gpus=5),
        node("n2", 8, labels={"rack": "r2"}, status="down"),
    ]
    more = {name: value for name, value in shape.items() if name != "gpus"}
    reading = read_jobs(nodes, [job("j", "a", shape["gpus"], **more)])["j"]
    assert reading.infeasible is not fits
    assert reading.fits == (("h100",) if fits else ())


def test_s5_full_fit_is_at_the_full_size():
    nodes = [node("n1", 4), node("n2", 8, kind="a100")]
    both = {"h100": 2.0, "a100": 1.0}
    elastic = read_jobs(nodes, [job("j", "a", 8, min_gpus=4, speedup=both)])["j"]
    assert elastic.fits == ("a100", "h100")
    assert elastic.full == {"a100"}


def test_s6_rates_are_thousandths_of_the_best_or_the_slowest():
    nodes = [node("n1", 8), node("n2", 8, kind="a100"), node("n3", 8, kind="t4")]
    speeds = {"h100": 3.0, "a100": 2.0, "t4": 0.0001, "gone": 9.0}
    jobs = [job("j", "a", 1, speedup=speeds)]
    assert read_jobs(nodes, jobs)["j"].rates == {"h100": 1000, "a100": 667, "t4": 1}
    slowest = read_jobs(nodes, jobs, policy=Policy(throughput_unit="slowest"))["j"]
    assert slowest.rates == {"h100": 1_000_000, "a100": 1_000_000, "t4": 1000}  # never above 1,000


def test_s6_halves_round_to_even():
    nodes = [node("n1", 8), node("n2", 8, kind="a100")]
    jobs = [
        job("down", "a", 1, speedup={"h100": 2000.0, "a100": 1001.0}),
        job("up", "a", 1, speedup={"h100": 2000.0, "a100": 1003.0}),
    ]
    reading = read_jobs(nodes, jobs)
    assert reading["down"].rates["a100"] == 500
    assert reading["up"].rates["a100"] == 502


def test_s6_a_running_job_that_does_not_fit_its_type():
    nodes = [node("n1", 8), node("n2", 8, kind="a100")]
    jobs = read_jobs(nodes, [running("j", "a", {"n2": 2}), running("k", "a", {"n2": 2}, speedup={"t4": 1.0})])
    assert jobs["j"].rates == {"h100": 1000}
    assert jobs["j"].held_type == "a100"
    assert jobs["k"].rates == {}
    assert jobs["k"].kind.reach == ("a100",)
    assert jobs["k"].demand == 2000


def test_s7_and_s8_zero_shares_have_no_claim():
    groups = [group("a", 0), group("b", 2), group("a1", 1, "a"), group("b1", 0, "b"), group("b2", 0, "b")]
    jobs = [job(name, name, 1) for name in ("a", "b", "a1", "b1", "b2")]
    reading = read(state([node("n1", 8)], groups, [*jobs, job("free", "b", 1, c=0)]), Policy())
    assert {name for name, j in reading.jobs.items() if j.budgeted} == {"b", "b1", "b2"}
    assert all(j.live for j in reading.jobs.values())
    assert reading.tree.weight["b1"] == 1
    assert reading.tree.own_weight("b") == 1
    assert reading.tree.own_weight("a") == 1


def test_s9_node_loss():
    nodes = [
        node("good", 8),
        node("down", 8, status="down"),
        node("past", 8, available_until_at=at(-1)),
        node("full", 4, unavailable_gpus=2),
    ]
    jobs = read_jobs(
        nodes,
        [
            running("ok", "a", {"good": 4}),
            running("gone", "a", {"good": 1, "nowhere": 1}),
            running("down", "a", {"down": 1}),
            running("past", "a", {"past": 1}),
            running("over", "a", {"full": 1}),
            running("leaving", "a", {"full": 2}, state="terminating"),
            running("lost", "z", {"down": 1}),
        ],
    )
    assert {name for name, j in jobs.items() if j.hit} == {"gone", "down", "past", "over", "lost"}
    assert not jobs["lost"].pinned


def test_s10_pinned_until_the_contract_ends():
    def pinned(minutes, **more):
        jobs = [running("j", "a", {"n1": 1}, started_at=at(minutes), **more)]
        return read_jobs([node("n1", 8)], jobs)["j"].pinned

    assert pinned(-59.9)
    assert not pinned(-60)
    assert not pinned(-1, c=0)


def test_o4_levels_and_ages():
    jobs = read_jobs(
        [node("n1", 8)],
        [
            job("low", "a", 1, priority=-5, submitted_at=at(-4.99)),
            job("mid", "a", 1, priority=0, submitted_at=at(-5)),
            job("top", "a", 1, priority=7, submitted_at=at(-60 * 24 * 8)),
            job("free", "a", 1, priority=3, c=0),
        ],
    )
    assert {name: j.level for name, j in jobs.items()} == {"low": 0, "mid": 0.5, "top": 1, "free": 1}
    assert {name: j.age_step for name, j in jobs.items()} == {"low": 0, "mid": 1, "top": 7, "free": 2}


def test_o5_lost_work_counts_from_the_checkpoint_if_it_is_of_use():
    def lost(**more):
        given = {"started_at": at(-50), **more}
        return read_jobs([node("n1", 8)], [running("j", "a", {"n1": 1}, **given)])["j"].lost_s

    assert lost() == 3000
    assert lost(checkpointed_at=at(-10)) == 600
    assert lost(checkpointed_at=at(-10), resumable=False) == 3000
    assert lost(checkpointed_at=at(-55)) == 3000  # before the start: of an earlier run
    assert lost(started_at=at(-300)) == 3600  # at most one contract length


@pytest.mark.parametrize(
    ("kind", "gpus", "nodes"),
    [("h100", 8, 1), ("h100", 9, 2), ("h100", 12, 2), ("h100", 15, 3), ("h100", 99, None), ("a100", 1, None)],
)
def test_g3_as_few_nodes_as_the_size_needs(kind, gpus, nodes):
    given = [node("n1", 8, unavailable_gpus=8), node("n2", 4), node("n3", 4)]
    reading = read(state(given, ROOT, [job("j", "a", 1)]), Policy())
    assert reading.shapes.nominal_count(reading.jobs["j"].job, kind, gpus) == nodes
