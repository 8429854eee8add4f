"""Values that are not what their field means are refused with a pointer, and nothing is coerced."""

import json
import math

import pytest

from evenhand_models import Job, parse_policy, parse_request
from evenhand_models.errors import InvalidInput


@pytest.mark.parametrize("gpus", [-1, 0, 0.5, 2**63, 1e308, 10**400, "8", True, None, [8], {}])
def test_a_gang_size_that_is_no_whole_number_in_range_is_refused_with_its_pointer_alone(sound, errors_of, gpus):
    sound["state"]["jobs"][1]["gpus"] = gpus
    assert list(errors_of(sound)) == ["/state/jobs/1/gpus"]


def test_a_whole_number_written_with_a_fraction_of_zero_is_that_number(sound):
    sound["state"]["jobs"][0]["gpus"] = 4.0
    gpus = parse_request(json.dumps(sound).encode()).state.jobs[0].gpus
    assert (gpus, type(gpus)) == (4, int)


@pytest.mark.parametrize("factor", [-1, -1e-300, 1e31, 10**400, "1", True, None])
def test_a_speedup_that_is_negative_or_no_number_is_refused_naming_the_type(sound, errors_of, factor):
    sound["state"]["jobs"][0]["speedup"]["h100"] = factor
    assert list(errors_of(sound)) == ["/state/jobs/0/speedup/h100"]


@pytest.mark.parametrize("factor", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_from_python_too(sound, factor):
    job = sound["state"]["jobs"][0] | {"speedup": {"h100": factor}}
    with pytest.raises(ValueError, match=r"finite number|greater than or equal"):
        Job.model_validate(job)


def test_an_exponent_that_overflows_to_infinity_is_refused_where_it_stands(sound, errors_of):
    body = json.dumps(sound).replace('"a100": 1', '"a100": 1e999').encode()
    assert list(errors_of(body)) == ["/state/jobs/0/speedup/a100"]


@pytest.mark.parametrize("speedup", [{}, {"h100": 0}, {"tpu": 3.0}, {"K80": 0, "V100": 1}])
def test_a_job_that_can_run_nowhere_here_is_no_error_and_keeps_its_numbers(sound, speedup):
    sound["state"]["jobs"][0]["speedup"] = speedup
    assert parse_request(json.dumps(sound).encode()).state.jobs[0].speedup == speedup


def test_a_job_of_an_unknown_group_or_for_unknown_labels_is_no_error(sound, errors_of):
    sound["state"]["jobs"][0] |= {"group": "gone", "requires": {"disk": "nvme"}, "same": "rack"}
    assert errors_of(sound) == {}


@pytest.mark.parametrize("name", ["", "x" * 257, "a\nb", "a\x00", "\x7f", 7, None])
def test_an_id_that_is_empty_too_long_or_not_printable_is_refused(sound, errors_of, name):
    sound["state"]["jobs"][0]["id"] = name
    assert list(errors_of(sound)) == ["/state/jobs/0/id"]


def test_an_id_of_256_characters_of_any_script_is_taken(sound, errors_of):
    sound["state"]["jobs"][0]["id"] = "ジ" * 256
    assert errors_of(sound) == {}


def test_an_unknown_field_is_refused_at_its_own_pointer_with_slashes_escaped(sound, errors_of):
    sound["state"]["jobs"][0]["gpu~s/x"] = 1
    assert list(errors_of(sound)) == ["/state/jobs/0/gpu~0s~1x"]


@pytest.mark.parametrize("field", ["id", "\udfff"])
def test_half_a_character_is_refused_with_errors_that_utf8_can_carry(sound, errors_of, field):
    sound["state"]["jobs"][0][field] = "\ud800"
    found = errors_of(sound)
    assert list(found) == [""]
    assert "surrogate" in json.dumps(found, ensure_ascii=False).encode("utf-8").decode()


def test_a_whole_character_written_as_two_surrogates_is_taken(sound):
    sound["state"]["jobs"][0]["id"] = "\U0001f600"
    assert parse_request(json.dumps(sound).encode()).state.jobs[0].id == "\U0001f600"


def test_a_bad_name_of_a_type_is_refused_at_the_type_even_if_it_is_called_key(sound, errors_of):
    sound["state"]["jobs"][0]["speedup"] = {"a\tb": 1, "[key]": -1}
    assert list(errors_of(sound)) == ["/state/jobs/0/speedup/a\tb", "/state/jobs/0/speedup/[key]"]


def test_an_unknown_state_of_a_job_is_refused(sound, errors_of):
    sound["state"]["jobs"][0]["state"] = "paused"
    assert list(errors_of(sound)) == ["/state/jobs/0/state"]


@pytest.mark.parametrize("flag", [0, 1, "true", None])
def test_a_flag_is_true_or_false_and_nothing_else(sound, errors_of, flag):
    sound["policy"] = {"allow_migration": flag}
    assert list(errors_of(sound)) == ["/policy/allow_migration"]


@pytest.mark.parametrize("field", ["gpu_types", "nodes", "groups", "jobs", "now"])
def test_a_state_without_one_of_its_parts_is_refused(sound, errors_of, field):
    del sound["state"][field]
    assert list(errors_of(sound)) == [f"/state/{field}"]


def test_usage_left_out_is_told_from_usage_that_is_empty(sound):
    del sound["state"]["usage"]
    assert parse_request(json.dumps(sound).encode()).state.usage is None
    sound["state"]["usage"] = []
    assert parse_request(json.dumps(sound).encode()).state.usage == ()


def test_a_policy_left_out_or_empty_is_the_documented_defaults():
    policy = parse_policy(b"{}")
    assert json.loads(policy.model_dump_json()) == {
        "objective": "envy_free",
        "window_s": 604800,
        "half_life_s": None,
        "horizon_s": 604800,
        "max_protection_s": 28800,
        "throughput_unit": "best",
        "lookahead_s": 3600,
        "restart_cost_s": 300,
        "urgency": 4.0,
        "lost_work_weight": 8.0,
        "debug_contract_s": 600,
        "debug_share": 0.125,
        "allow_migration": True,
        "time_limit_s": 5.0,
        "seed": 0,
        "workers": 1,
        "deterministic": True,
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[(field, bad) for field in ("window_s", "horizon_s", "lookahead_s") for bad in (0, -1, "604800", 1.5)],
        *[("half_life_s", bad) for bad in (0, -1, "1")],
        *[(field, bad) for field in ("restart_cost_s", "max_protection_s") for bad in (-1, "0", 0.5)],
        *[("time_limit_s", bad) for bad in (0, -0.1, 3600.5, "5", True)],
        *[(field, bad) for field in ("urgency", "lost_work_weight") for bad in (0, -1, "8")],
        *[("workers", bad) for bad in (0, 65, "1")],
        *[("seed", bad) for bad in (-1, 2**31, 0.5)],
        ("objective", "envy"),
        ("throughput_unit", "worst"),
    ],
)
def test_a_policy_value_out_of_range_is_refused_naming_the_field(field, value):
    with pytest.raises(InvalidInput) as refused:
        parse_policy(json.dumps({field: value}).encode())
    assert [error.pointer for error in refused.value.errors] == [f"/{field}"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("restart_cost_s", 0),
        ("max_protection_s", 0),
        ("time_limit_s", 0.05),
        ("time_limit_s", 3600),
        ("workers", 64),
    ],
)
def test_a_policy_value_at_the_end_of_its_range_is_taken(field, value):
    assert getattr(parse_policy(json.dumps({field: value}).encode()), field) == value
