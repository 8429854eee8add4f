"""Guarantees that cannot hold are refused where a configuration is written, and tolerated in a round."""

import json

import pytest

from evenhand_models import Group, Node, check_tree, parse_request


def tree(*rows):
    return [Group(id=i, parent=p, share=1, guaranteed_gpus=g, max_gpus=m) for i, p, g, m in rows]


def nodes(gpus):
    return [Node(name=f"n{i}", gpu_type="h100", gpus=8, status="down") for i in range(gpus // 8)]


def found(groups, gpus):
    return {error.pointer: error.message for error in check_tree(groups, nodes(gpus))}


def test_guarantees_that_fit_are_no_error():
    rows = tree(("p", None, 100, 104), ("a", "p", 60, None), ("b", "p", 40, 40), ("c", "p", None, 1))
    assert found(rows, 104) == {}


def test_children_guaranteed_more_than_their_parent_are_refused_with_path_and_numbers():
    rows = tree(("org", None, None, None), ("p", "org", 100, None), ("a", "p", 70, None), ("b", "p", 50, None))
    (message,) = found(rows, 200).values()
    for part in ("'org' > 'p'", "100", "120", "'a' 70", "'b' 50"):
        assert part in message
    assert list(found(rows, 200)) == ["/groups/1/guaranteed_gpus"]


def test_a_guarantee_above_what_is_installed_is_refused_with_both_numbers():
    found_errors = found(tree(("a", None, 100, None)), 64)
    assert list(found_errors) == ["/groups/0/guaranteed_gpus"]
    assert "100" in found_errors["/groups/0/guaranteed_gpus"]
    assert "64" in found_errors["/groups/0/guaranteed_gpus"]


def test_guarantees_that_only_together_are_above_what_is_installed_are_refused():
    message = found(tree(("a", None, 40, None), ("b", None, 40, None)), 64)["/groups"]
    assert "80" in message
    assert "64" in message


def test_a_limit_below_the_own_guarantee_is_refused():
    assert list(found(tree(("a", None, 10, 9)), 64)) == ["/groups/0/max_gpus"]


def test_a_limit_below_the_guarantees_of_grandchildren_is_refused():
    rows = tree(("p", None, None, 10), ("m", "p", None, None), ("a", "m", 6, None), ("b", "m", 6, None))
    assert list(found(rows, 64)) == ["/groups/0/max_gpus"]


def test_a_broken_shape_is_reported_before_numbers():
    rows = tree(("a", "b", 100, 1), ("b", "a", None, None), ("a", "nobody", None, None))
    assert set(found(rows, 0)) == {"/groups/2/id", "/groups/2/parent"}
    assert set(found(rows[:2], 0)) == {"/groups/0/parent"}


@pytest.mark.parametrize("guarantee", [100, 1])
def test_a_round_is_not_stopped_by_numbers_that_cannot_all_hold(sound, guarantee):
    sound["state"]["groups"] = [
        {"id": "p", "share": 1, "guaranteed_gpus": guarantee, "max_gpus": 0},
        {"id": "a", "parent": "p", "share": 1, "guaranteed_gpus": 70},
    ]
    assert parse_request(json.dumps(sound).encode()).state.groups[1].guaranteed_gpus == 70
