"""Everything around the search grows with the input and no faster; shown by counts, never by the clock."""

from __future__ import annotations

import gc
import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from types import ModuleType

import numpy as np
import pytest
from instances import instance
from strategies.sweeps import case

from evenhand import Policy, allocate
from evenhand.deadline import Deadline
from evenhand.entitlement import entitle
from evenhand.fitting import fit_and_speed
from evenhand.gangs_below import GangsBelow
from evenhand.greedy import greedy
from evenhand.outcome import WAITS, Outcome
from evenhand.program.index import build_index
from evenhand.shapes import Filter, Sites
from evenhand.shelves import FEW, Floor
from evenhand.snapshot import take_snapshot
from evenhand_models import ThroughputUnit, parse_document, parse_plan, parse_state
from evenhand_models.collection import without_collection

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "rounds"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", BENCHMARKS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module
    spec.loader.exec_module(module)
    return module


def wide(nodes: int, types: int, filters: int) -> bytes:
    """A state of many types and of jobs that each ask for labels of their own."""
    return json.dumps(
        {
            "now": "2026-11-02T09:00:00Z",
            "gpu_types": [{"name": f"t{t:03d}"} for t in range(types)],
            "nodes": [
                {
                    "name": f"n{n:05d}", "gpu_type": f"t{n % types:03d}", "gpus": 8,
                    "labels": {"host": f"n{n:05d}", "rack": f"r{n // 16}"},
                }
                for n in range(nodes)
            ],
            "groups": [{"id": "a", "share": 1.0}],
            "jobs": [
                {
                    "id": f"j{i:05d}", "group": "a", "gpus": 1, "speedup": {f"t{i % nodes % types:03d}": 1.0},
                    "submitted_at": "2026-11-02T08:00:00Z", "requires": {"host": f"n{i % nodes:05d}"},
                    "contract": {"min_runtime_s": 3600}, "priority": i,
                }
                for i in range(filters)
            ],
        }
    ).encode()  # fmt: skip


class CountedLabels(dict[str, str]):
    """Labels that count how often they are looked at."""

    looks = 0

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        CountedLabels.looks += 1
        return super().get(key, default)

    def items(self):  # type: ignore[no-untyped-def]
        CountedLabels.looks += 1
        return super().items()


def labelled_sites(count: int) -> Sites:
    state = parse_state(wide(count, 4, 1))
    nodes = [n.model_copy(update={"labels": CountedLabels(n.labels)}) for n in state.nodes]
    return Sites(nodes, np.zeros(count, dtype=np.int64))


def test_a_filter_of_one_node_looks_at_no_other_node() -> None:
    looks = []
    for count in (200, 400):
        sites = labelled_sites(count)
        CountedLabels.looks = 0
        for n in range(count):
            ((_, found),) = sites.domains(Filter((("host", f"n{n:05d}"), ("rack", f"r{n // 16}")), None), 0)
            assert found.tolist() == [n]
        looks.append(CountedLabels.looks)
    assert looks[1] == 2 * looks[0]


def test_each_shape_is_tried_once_on_each_type_that_its_jobs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    stands = Sites.stands
    monkeypatch.setattr(Sites, "stands", lambda self, *key: tried.append(key) or stands(self, *key))
    state = parse_state(wide(320, 160, 3_000))
    types = tuple(sorted(t.name for t in state.gpu_types))
    place = {name: t for t, name in enumerate(types)}
    sites = Sites(state.nodes, np.array([place[n.gpu_type] for n in state.nodes]))
    fits, full, speed, *_ = fit_and_speed(state.jobs, types, sites, ThroughputUnit.BEST)
    assert fits.sum() == full.sum() == 3_000
    assert (speed[fits] == 1000).all()
    assert len(tried) <= 2 * 320  # least and full size of 320 filters; never 3,000 jobs x 160 types


def test_as_many_priorities_as_jobs_are_ranked_all_the_same() -> None:
    s = take_snapshot(parse_state(wide(8, 1, 10_000)), Policy())
    assert s.level_count.tolist() == [10_000] * 10_000
    assert s.level_rank.tolist() == list(range(10_000))
    assert s.level[-1] == 1.0


def test_shelves_find_what_looking_at_every_node_finds() -> None:
    rng = Random(7)
    for _ in range(60):
        count = rng.choice((FEW, FEW + 1, 60))
        free = [rng.randint(-1, 8) for _ in range(count)]
        floor = Floor(free, [min(f, rng.randint(0, 8)) for f in free])
        shelves = floor.shelves(range(count))
        for _ in range(40):
            gpus = rng.randint(1, 8)
            ranks = [(floor.at_once[n] < gpus, floor.free[n] - gpus, n) for n in range(count) if floor.free[n] >= gpus]
            node = shelves.best_fit(gpus)
            assert node == (min(ranks)[2] if ranks else None)
            fullest = sorted((-floor.free[n], n) for n in range(count) if floor.free[n] > 0)[:gpus]
            assert shelves.first(gpus, lambda left, _: (-left,)) == [n for _, n in fullest]
            if node is not None:
                floor.take(node, gpus)
                if rng.random() < 0.2:
                    floor.take(node, -gpus)


def test_gangs_below_a_group_are_those_of_its_own_jobs_and_of_all_groups_below() -> None:
    for seed in range(30):
        s = take_snapshot(*case(seed, "small"))
        gangs = GangsBelow(s)
        for c in range(len(s.tree.ids)):
            mine = [j for j in np.flatnonzero(s.budgeted).tolist() if c in s.tree.path[int(s.group[j])]]
            rigid = [j for j in mine if s.least[j] == s.size[j]]
            if rigid == mine:
                everything = sum(int(s.demand_milli[j]) * 16 // 1000 for j in mine) / 16
                assert gangs.within(c, 1e9) == everything


def test_a_written_plan_reads_back_with_full_validation_as_it_was() -> None:
    for seed in range(40):
        state, policy = case(seed, "tiny")
        plan = allocate(state, policy.model_copy(update={"time_limit_s": 1.0}))
        assert parse_plan(plan.to_json_bytes()) == plan


def test_every_stage_of_a_round_is_in_its_report() -> None:
    state = instance("small")
    stages = allocate(state, Policy(time_limit_s=20.0)).solver.stages_ms
    writing = {"explain", "goals", "certify", "warn", "report", "assign", "hash", "audit", "seal"}
    assert writing | {"read", "entitle", "target", "formulate", "greedy"} <= set(stages)


@pytest.fixture
def collector() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.usefixtures("collector")
def test_the_collector_rests_inside_a_stage_and_is_back_after_it_even_where_it_fails() -> None:
    def fail() -> None:
        with Deadline(1.0).stage("a"), without_collection():
            assert not gc.isenabled()
            raise ValueError("stage")

    with pytest.raises(ValueError, match="stage"):
        fail()
    assert gc.isenabled()


@pytest.mark.parametrize("name", ["S", "M"])
@pytest.mark.parametrize("pinned", [0.0, 0.9])
def test_made_up_states_are_valid_and_as_contended_as_asked(generate: ModuleType, name: str, pinned: float) -> None:
    for demand in (0.8, 2.5):
        how = replace(generate.TIGHT, demand=demand, pinned=pinned, busy=max(0.5, pinned), odd=0.1, same_rack=0.5)
        body = generate.document(generate.SIZES[name], how, seed=3)
        assert body == generate.document(generate.SIZES[name], how, seed=3)
        s = take_snapshot(parse_document(body).state, Policy())
        usable = int(s.room[s.opened].sum())
        assert not s.hit.any()
        assert s.size.sum() == pytest.approx(demand * usable, rel=0.35)
        assert s.held[s.pinned].sum() <= pinned * usable
        assert s.held[s.pinned].sum() >= 0.5 * pinned * min(1.0, demand) * usable


def test_greedy_on_a_crowd_of_filters_starts_one_gang_a_node_at_most_eight_times() -> None:
    s = take_snapshot(parse_state(wide(64, 4, 1_000)), Policy())
    outcome = greedy(s, entitle(s), build_index(s, ()))
    started = [d for d in outcome.decisions.values() if d.places]
    assert len(started) == 64 * 8
    assert Outcome(outcome.decisions).table.gpus.sum() == 512
    assert sum(d == WAITS for d in outcome.decisions.values()) == 1_000 - 512
