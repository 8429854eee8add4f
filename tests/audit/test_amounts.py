"""Flows, subset sums and the transport problem against plainer ways to compute them."""

import random
from itertools import combinations

import networkx as nx
import pytest

from evenhand.audit import amounts, transport
from evenhand.audit.amounts import largest_flow, largest_subset
from evenhand.audit.transport import most_throughput


def test_subset_sums_by_hand():
    assert largest_subset({8: 1, 4: 1}, 11) == 8
    assert largest_subset({8: 1, 4: 1}, 12) == 12
    assert largest_subset({8: 1, 4: 1}, 3) == 0
    assert largest_subset({3: 5}, 14) == 12
    assert largest_subset({}, 5) == 0
    assert largest_subset({2: 1}, -1) == 0


def test_subset_sums_against_all_subsets():
    rng = random.Random(3)
    for _ in range(200):
        values = [rng.choice([500, 1000, 1654, 2000, 3308, 7]) for _ in range(rng.randint(0, 8))]
        limit = rng.randint(0, 9000)
        sums = {sum(some) for size in range(len(values) + 1) for some in combinations(values, size)}
        counts = {value: values.count(value) for value in values}
        assert largest_subset(counts, limit) == max(s for s in sums if s <= limit)


def test_flows_by_hand():
    capacity = {"a": 4, "b": 4}
    assert largest_flow({}, capacity) == 0
    assert largest_flow({("a",): 6}, capacity) == 4
    assert largest_flow({("a",): 6, ("a", "b"): 3}, capacity) == 7
    assert largest_flow({("a",): 6, ("a", "b"): 6}, capacity) == 8
    assert largest_flow({("a",): 2, ("a", "b"): 2}, capacity) == 4
    assert largest_flow({("a",): 1, (): 2}, capacity) == 1


def test_flows_through_cuts_and_through_networkx_agree(monkeypatch):
    rng = random.Random(5)
    kinds = ["a", "b", "c", "d"]
    for _ in range(100):
        capacity = {kind: rng.randint(0, 12) for kind in kinds}
        demands = {
            tuple(sorted(rng.sample(kinds, rng.randint(1, 4)))): rng.randint(0, 20) for _ in range(rng.randint(0, 6))
        }
        by_cuts = largest_flow(demands, capacity)
        with monkeypatch.context() as patch:
            patch.setattr(amounts, "CUT_TYPES", 0)
            assert largest_flow(demands, capacity) == by_cuts


@pytest.mark.parametrize("kinds", [1, 2, 3])
@pytest.mark.parametrize("by_paths", [False, True])
def test_the_transport_problem_against_min_cost_flow(kinds, by_paths, monkeypatch):
    """Path by path throughout, and with the shortcut for what can be served type by type."""
    if by_paths:
        monkeypatch.setattr(transport, "_type_by_type", lambda *_: None)
    rng = random.Random(kinds)
    for _ in range(60):
        classes = {}
        for _ in range(rng.randint(1, 7)):
            rates = tuple(rng.choice([0, 500, 1000, rng.randint(1, 1000)]) for _ in range(kinds))
            classes[rates] = rng.randint(1, 8)
        bundle = [rng.randint(0, 9) for _ in range(kinds)]
        expected = _by_networkx(classes, bundle)
        assert most_throughput(classes, [float(gpus) for gpus in bundle]) == pytest.approx(expected, abs=1e-6)


def _by_networkx(classes, bundle):
    graph = nx.DiGraph()
    total = sum(classes.values())
    graph.add_node("jobs", demand=-total)
    graph.add_node("end", demand=total)
    graph.add_edge("jobs", "end", capacity=total, weight=0)
    for rates, gpus in classes.items():
        graph.add_edge("jobs", rates, capacity=gpus, weight=0)
        for place, rate in enumerate(rates):
            graph.add_edge(rates, place, capacity=gpus, weight=-rate)
            graph.add_edge(place, "end", capacity=bundle[place], weight=0)
    return -nx.min_cost_flow_cost(graph)


def test_a_fractional_bundle_is_drawn_from_exactly():
    """Two jobs of 2: one is as fast on b as on a, so it takes b and leaves all of a to the other."""
    assert most_throughput({(1000, 1000): 2, (1000, 400): 2}, [1.5, 1.25]) == pytest.approx(2750)
