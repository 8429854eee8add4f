"""A state that contradicts itself is refused whole, with all ids and numbers, from bytes and from Python."""

import json

import pytest
from pydantic import ValidationError

from evenhand_models import ClusterState, InvalidInput, Job, Policy, check_state, parse_request


def test_a_sound_request_has_no_errors(sound, errors_of):
    assert errors_of(sound) == {}


@pytest.mark.parametrize(
    ("where", "key"),
    [("jobs", "id"), ("nodes", "name"), ("gpu_types", "name"), ("groups", "id"), ("usage", "group")],
)
def test_a_name_used_twice_is_refused_naming_it(sound, errors_of, where, key):
    entries = sound["state"][where]
    entries.append(dict(entries[0]))
    last = len(entries) - 1
    found = errors_of(sound)
    assert list(found) == [f"/state/{where}/{last}/{key}"]
    assert repr(entries[0][key]) in found[f"/state/{where}/{last}/{key}"]


def test_a_group_that_is_its_own_parent_is_refused_with_the_path(sound, errors_of):
    sound["state"]["groups"] = [{"id": "A", "parent": "A", "share": 1}]
    assert "A > A" in errors_of(sound)["/state/groups/0/parent"]


def test_a_cycle_of_groups_is_refused_with_the_path_whatever_the_order(sound, errors_of):
    groups = [{"id": "A", "parent": "B", "share": 1}, {"id": "B", "parent": "A", "share": 1}]
    groups.append({"id": "below", "parent": "A", "share": 1})
    for ordered in (groups, groups[::-1]):
        sound["state"]["groups"] = ordered
        (message,) = errors_of(sound).values()
        assert "A > B > A" in message


def test_every_cycle_is_named_once_parents_before_children(sound, errors_of):
    parents = {"a": "b", "b": "c", "c": "a", "x": "y", "y": "x", "tail": "a"}
    sound["state"]["groups"] = [{"id": k, "parent": v, "share": 1} for k, v in parents.items()]
    messages = " ".join(errors_of(sound).values())
    assert messages.count("cycle") == 2
    assert "a > c > b > a" in messages
    assert "x > y > x" in messages


def test_a_tree_ten_thousand_deep_is_read_without_recursion(sound, errors_of):
    deep = [{"id": f"g{i}", "parent": f"g{i - 1}" if i else None, "share": 1} for i in range(10_000)]
    sound["state"]["groups"] = [*deep, {"id": "a", "share": 1}]
    assert errors_of(sound) == {}


def test_an_unknown_parent_is_refused_naming_it(sound, errors_of):
    sound["state"]["groups"][1]["parent"] = "nobody"
    assert "'nobody'" in errors_of(sound)["/state/groups/1/parent"]


def test_a_node_of_an_unknown_type_is_refused_naming_it(sound, errors_of):
    sound["state"]["nodes"][2]["gpu_type"] = "tpu"
    assert "'tpu'" in errors_of(sound)["/state/nodes/2/gpu_type"]


@pytest.mark.parametrize(("broken", "foreign", "refused"), [(8, 0, False), (0, 8, False), (5, 4, True), (9, 0, True)])
def test_broken_and_foreign_gpus_may_fill_a_node_and_not_more(sound, errors_of, broken, foreign, refused):
    sound["state"]["nodes"][0] |= {"unavailable_gpus": broken, "foreign_gpus": foreign}
    assert list(errors_of(sound)) == (["/state/nodes/0/gpus"] if refused else [])


@pytest.mark.parametrize("status", ["up", "cordoned", "down"])
@pytest.mark.parametrize("state", ["running", "terminating"])
def test_more_gpus_placed_on_a_node_than_it_has_is_refused_with_all_ids_and_numbers(sound, errors_of, status, state):
    sound["state"]["nodes"][0]["status"] = status
    other = sound["state"]["jobs"][1] | {"id": "other", "gpus": 1, "placement": [{"node": "n0", "gpus": 1}]}
    sound["state"]["jobs"].append(other | {"state": state})
    found = errors_of(sound)
    assert list(found) == ["/state/nodes/0/gpus"]
    for part in ("'n0'", "'runs' (8)", "'other' (1)", "8 gpus", "hold 9"):
        assert part in found["/state/nodes/0/gpus"]


def test_more_placed_than_is_usable_but_not_than_installed_is_a_loss_and_no_error(sound, errors_of):
    sound["state"]["nodes"][0]["unavailable_gpus"] = 8
    assert errors_of(sound) == {}


def test_a_placement_on_a_node_that_is_not_listed_is_a_loss_and_no_error(sound, errors_of):
    sound["state"]["jobs"][1]["placement"][0]["node"] = "gone"
    assert errors_of(sound) == {}


def test_a_job_placed_on_nodes_of_two_types_is_refused_naming_both(sound, errors_of):
    sound["state"]["jobs"][1]["placement"][0]["node"] = "n2"
    message = errors_of(sound)["/state/jobs/1/placement"]
    assert "'a100'" in message
    assert "'h100'" in message


@pytest.mark.parametrize("field", ["started_at", "checkpointed_at", "submitted_at"])
def test_an_instant_of_a_job_ten_minutes_ahead_is_refused_and_five_seconds_ahead_is_not(sound, errors_of, field):
    job = sound["state"]["jobs"][1]
    job[field] = "2026-11-01T12:10:00Z"
    found = errors_of(sound)
    assert list(found) == [f"/state/jobs/1/{field}"]
    assert "600 s after now" in found[f"/state/jobs/1/{field}"]
    for tolerated in ("2026-11-01T12:00:05Z", "2026-11-01T12:05:00Z"):
        job[field] = tolerated
        assert errors_of(sound) == {}
    job[field] = "2026-11-01T12:05:00.000001Z"
    assert list(errors_of(sound)) == [f"/state/jobs/1/{field}"]


def test_a_node_down_since_the_far_future_is_refused(sound, errors_of):
    sound["state"]["nodes"][0] |= {"status": "down", "down_since_at": "2026-11-01T12:10:00Z"}
    assert list(errors_of(sound)) == ["/state/nodes/0/down_since_at"]


def test_a_contract_of_nine_hours_is_refused_for_a_pending_job_naming_the_cap(sound, errors_of):
    sound["state"]["jobs"][0]["contract"] = {"min_runtime_s": 32400}
    message = errors_of(sound)["/state/jobs/0/contract/min_runtime_s"]
    assert "32400" in message
    assert "max_protection_s of 28800 s" in message
    sound["policy"] = {"max_protection_s": 32400}
    assert errors_of(sound) == {}


def test_a_contract_above_a_lowered_cap_is_tolerated_for_a_running_job(sound, errors_of):
    sound["policy"] = {"max_protection_s": 60}
    assert errors_of(sound) == {}


JOB = {"id": "j", "group": "a", "gpus": 8, "speedup": {"h100": 1}, "submitted_at": "2026-11-01T12:00:00Z"}
RUN = {"state": "running", "started_at": "2026-11-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("fields", "pointers"),
    [
        ({"min_gpus": 9}, {"/min_gpus"}),
        ({"worker_gpus": 2, "gpus_per_node": 2}, {"/gpus_per_node"}),
        ({"worker_gpus": 3}, {"/gpus"}),
        ({"gpus_per_node": 16}, {"/gpus"}),
        ({"min_gpus": 3, "worker_gpus": 2}, {"/min_gpus"}),
        ({"started_at": RUN["started_at"]}, {"/started_at"}),
        ({"placement": [{"node": "n0", "gpus": 8}]}, {"/placement"}),
        ({"state": "running"}, {"/started_at", "/placement"}),
        ({"state": "terminating"}, {"/started_at", "/placement"}),
        (RUN | {"placement": []}, {"/placement"}),
        (RUN | {"placement": [{"node": "n0", "gpus": 7}]}, {"/placement"}),
        (RUN | {"gpus": 4, "placement": [{"node": "n0", "gpus": 5}]}, {"/placement"}),
        (RUN | {"placement": [{"node": "n0", "gpus": 4}, {"node": "n0", "gpus": 4}]}, {"/placement"}),
        (RUN | {"min_gpus": 4, "placement": [{"node": "n0", "gpus": 3}]}, {"/placement"}),
        ({"min_gpus": 9, "state": "running"}, {"/min_gpus", "/started_at", "/placement"}),
    ],
)
def test_a_job_whose_fields_contradict_each_other_is_refused_alone_and_in_a_request(sound, errors_of, fields, pointers):
    with pytest.raises(InvalidInput) as refused:
        Job.model_validate(JOB | fields)
    assert {error.pointer for error in refused.value.errors} == pointers
    assert all("'j'" in error.message for error in refused.value.errors)
    sound["state"]["jobs"] = [JOB | {"id": "fine"}, JOB | fields]
    assert set(errors_of(sound)) == {f"/state/jobs/1{pointer}" for pointer in pointers}


@pytest.mark.parametrize(
    "fields",
    [
        {"min_gpus": 8},
        {"min_gpus": 2, "worker_gpus": 2},
        {"gpus_per_node": 8},
        {"worker_gpus": 8},
        RUN | {"min_gpus": 4, "placement": [{"node": "n0", "gpus": 5}]},
        RUN | {"state": "terminating", "placement": [{"node": "n0", "gpus": 8}]},
        {"checkpointed_at": "2026-11-01T11:00:00Z", "expected_end_at": "2030-01-01T00:00:00Z"},
    ],
)
def test_a_job_whose_fields_agree_is_taken(fields):
    Job.model_validate(JOB | fields)


def test_one_answer_names_malformed_fields_and_contradictions_together(sound, errors_of):
    state = sound["state"]
    state["jobs"] += [dict(state["jobs"][0]), state["jobs"][0] | {"id": "odd", "worker_gpus": 3}]
    state["jobs"][0]["gpus"] = -1
    state["nodes"].append({"name": "n0", "gpu_type": "tpu", "gpus": 8})
    state["groups"][0]["parent"] = "a"
    sound["policy"] = {"window_s": 0, "max_protection_s": 5}
    sound["surprise"] = 1
    assert set(errors_of(sound)) == {
        "/state/jobs/0/gpus",
        "/state/jobs/2/id",
        "/state/jobs/3/gpus",
        "/state/nodes/3/name",
        "/state/nodes/3/gpu_type",
        "/state/groups/1/parent",
        "/policy/window_s",
        "/surprise",
    }


def test_a_malformed_entry_raises_no_false_alarm_where_others_refer_to_it(sound, errors_of):
    sound["state"]["gpu_types"][0]["charge_rate"] = -1
    sound["state"]["groups"][0]["share"] = -1
    assert set(errors_of(sound)) == {"/state/gpu_types/0/charge_rate", "/state/groups/0/share"}


def test_an_entry_without_a_readable_name_raises_no_false_alarm_either(sound, errors_of):
    del sound["state"]["gpu_types"][0]["name"]
    sound["state"]["groups"][0]["id"] = 7
    assert set(errors_of(sound)) == {"/state/gpu_types/0/name", "/state/groups/0/id"}


def test_python_objects_run_the_same_checks_with_pointers_relative_to_the_state(sound):
    sound["state"]["jobs"].append(dict(sound["state"]["jobs"][0]))
    sound["state"]["jobs"][1]["min_gpus"] = 13
    for build in (ClusterState.model_validate, lambda data: ClusterState(**data)):
        with pytest.raises(InvalidInput) as refused:
            build(sound["state"])
        assert [error.pointer for error in refused.value.errors] == [
            "/jobs/1/min_gpus",
            "/jobs/1/placement",
            "/jobs/2/id",
        ]


def test_python_objects_with_a_malformed_field_raise_pydantics_error(sound):
    sound["state"]["jobs"][0]["gpus"] = "4"
    with pytest.raises(ValidationError):
        ClusterState(**sound["state"])


def test_check_state_holds_pending_contracts_against_a_policy(sound):
    state = parse_request(json.dumps(sound).encode()).state
    assert check_state(state) == ()
    short = Policy(max_protection_s=0)
    assert check_state(state, short) == ()
    longer = state.model_copy(
        update={"jobs": (state.jobs[0].model_copy(update={"contract": state.jobs[1].contract}), state.jobs[1])}
    )
    assert [error.pointer for error in check_state(longer, short)] == ["/jobs/0/contract/min_runtime_s"]


def test_an_error_shows_its_pointers_and_how_many_more_there_are(sound):
    sound["state"]["jobs"] = [sound["state"]["jobs"][0] | {"gpus": 0, "id": f"j{i}"} for i in range(25)]
    with pytest.raises(InvalidInput, match=r"/state/jobs/0/gpus: .* and 15 more$") as refused:
        parse_request(json.dumps(sound).encode())
    assert len(refused.value.errors) == 25
