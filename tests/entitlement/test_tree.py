"""Rules D1 to D5 over random clusters, held against a maximum flow and a plain reading."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import networkx as nx
import numpy as np
import pytest
from strategies.clusters import random_state
from strategies.rules import random_policy

from evenhand import entitlement as rooms
from evenhand.entitlement import Entitlement, entitle
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand.tree import ROOT


def case(seed: int, profile: str) -> tuple[Snapshot, Entitlement]:
    rng = Random(seed)
    state = random_state(rng, profile)
    taken = take_snapshot(state, random_policy(rng, state))
    return taken, entitle(taken)


def flow(taken: Snapshot, members: list[int]) -> int:
    """Rule D1's flow, job by job."""
    network = nx.DiGraph()
    network.add_nodes_from(("from", "to"))
    for j in members:
        network.add_edge("from", ("job", j), capacity=int(taken.demand_milli[j]))
        types = np.flatnonzero(taken.fits[j]).tolist() or [int(taken.held_type[j])]
        for t in types:
            if t >= 0:
                network.add_edge(("job", j), ("type", t))
    for t in range(len(taken.types)):
        network.add_edge(("type", t), "to", capacity=int(taken.capacity[t] * taken.rate_milli[t]))
    return int(nx.maximum_flow_value(network, "from", "to"))


@pytest.mark.parametrize("seed", range(60))
def test_every_level_shares_out_what_it_has(seed):
    taken, found = case(seed, "small")
    tree = taken.tree
    for node in (ROOT, *range(len(tree.ids))):
        kids = tree.top if node == ROOT else tree.children[node]
        if not kids:
            continue
        there = found.available if node == ROOT else float(found.entitled[node])
        parts = [float(found.entitled[k]) for k in kids if tree.claim[k]]
        wanted = [min(float(found.demand[k]), float(found.limit[k])) for k in kids if tree.claim[k]]
        if node != ROOT:
            parts.append(float(found.leaf_entitled[node]))
            wanted.append(float(found.own_demand[node]))
        assert sum(parts) == pytest.approx(min(there, sum(wanted)), abs=1e-9)
        assert all(0 <= e <= c + 1e-9 for e, c in zip(parts, wanted, strict=True))
        assert all(found.entitled[k] >= found.guaranteed[k] - 1e-9 for k in kids)


@pytest.mark.parametrize("seed", range(40))
def test_demand_is_a_maximum_flow(seed):
    taken, found = case(seed, "small")
    tree = taken.tree
    for g in range(len(tree.ids)):
        own = [int(j) for j in np.flatnonzero(taken.budgeted) if taken.group[j] == g]
        below = [int(j) for j in np.flatnonzero(taken.budgeted) if g in tree.path[taken.group[j]]]
        assert found.own_demand[g] * 1000 == pytest.approx(flow(taken, own))
        inside = found.own_demand[g] + sum(min(found.demand[k], found.limit[k]) for k in tree.children[g])
        assert found.demand[g] == pytest.approx(min(flow(taken, below) / 1000, inside))


@pytest.mark.parametrize("seed", range(20))
def test_cuts_and_flows_agree(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    masks = np.unique(rng.random((12, 7)) < 0.4, axis=0)
    wanted = rng.integers(0, 5_000, (9, len(masks))) * (rng.random((9, len(masks))) < 0.6)
    capacity = rng.integers(0, 8_000, 7)
    quick = rooms.largest_flows(wanted, masks, capacity)
    monkeypatch.setattr(rooms, "_MOST_TYPES_BY_CUTS", -1)
    assert rooms.largest_flows(wanted, masks, capacity).tolist() == quick.tolist()


@pytest.mark.parametrize("seed", range(30))
def test_what_runs_changes_nothing(seed):
    """D and T do not depend on what runs, where jobs run on types they fit."""
    taken, found = case(seed, "small")
    idle = replace(taken, running=np.zeros_like(taken.running), held=np.zeros_like(taken.held))
    assert entitle(idle).entitled.tolist() == found.entitled.tolist()


@pytest.mark.parametrize("seed", range(30))
def test_standing_ranks_siblings_from_one(seed):
    taken, found = case(seed, "small")
    tree = taken.tree
    for kids in (tree.top, *tree.children):
        ranked = sorted(kids, key=lambda k: int(found.standing[k]))
        assert sorted(int(found.standing[k]) for k in kids) == list(range(1, len(kids) + 1))
        marks = [found.usage[k] / tree.weight[k] if tree.weight[k] else np.inf for k in ranked]
        assert marks == sorted(marks)
