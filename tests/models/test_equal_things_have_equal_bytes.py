"""Instants in any zone, lists in any order, defaults spelled out or not: equal states, equal hashes."""

import json
import pickle
import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand_models import (
    AllocateRequest,
    ClusterState,
    Policy,
    Usage,
    canonical_state_bytes,
    parse_request,
    parse_state,
    state_hash,
)


def state_of(document):
    return parse_request(json.dumps(document).encode()).state


@pytest.mark.parametrize(
    "spelled",
    [
        "2026-11-01T21:00:00+09:00",
        "2026-11-01T05:00:00-07:00",
        "2026-11-01t12:00:00z",
        "2026-11-01T12:00:00.000Z",
    ],
)
def test_the_same_instant_in_any_zone_gives_the_same_state_bytes_and_hash(sound, spelled):
    utc = state_of(sound)
    sound["state"]["now"] = sound["state"]["jobs"][0]["submitted_at"] = spelled
    moved = state_of(sound)
    assert moved == utc
    assert moved.model_dump_json() == utc.model_dump_json()
    assert state_hash(moved) == state_hash(utc)


def test_instants_are_held_in_utc_and_written_with_z(sound):
    sound["state"]["now"] = "2026-11-01T21:00:00.5+09:00"
    state = state_of(sound)
    assert state.now == datetime(2026, 11, 1, 12, 0, 0, 500_000, UTC)
    assert state.now.utcoffset() == timedelta(0)
    assert json.loads(state.model_dump_json())["now"] == "2026-11-01T12:00:00.500000Z"


def test_an_aware_datetime_is_taken_and_a_naive_one_refused(sound):
    tokyo = datetime(2026, 11, 1, 21, tzinfo=timezone(timedelta(hours=9)))
    state = ClusterState(**sound["state"] | {"now": tokyo})
    assert state == state_of(sound)
    assert state_hash(state) == state_hash(state_of(sound))
    assert state.now.tzinfo is UTC
    with pytest.raises(ValueError, match="naive"):
        ClusterState(**sound["state"] | {"now": datetime(2026, 11, 1, 12)})


@pytest.mark.parametrize(
    "spelled",
    [
        "2026-11-01T12:00:00",
        "2026-11-01",
        "2026-11-01 12:00:00Z",
        "20261101T120000Z",
        "2026-W44-7T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-11-01T12:00:60Z",
        "2026-11-01T24:00:00Z",
        "2026-11-01T12:00:00+09",
        "2026-11-01T12:00:00Z\n",
        "٢٠٢٦-11-01T12:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "1970-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-23:59",
        "1793534400",
        1793534400,
        1793534400.0,
        None,
        "",
    ],
)
def test_what_is_no_instant_with_an_offset_in_our_era_is_refused(sound, errors_of, spelled):
    sound["state"]["now"] = spelled
    assert list(errors_of(sound)) == ["/state/now"]


def test_the_order_of_lists_and_keys_changes_neither_bytes_nor_hash(sound):
    first = state_of(sound)
    for seed in range(20):
        shuffled = shuffle(sound["state"], random.Random(seed))
        assert canonical_state_bytes(ClusterState(**shuffled)) == canonical_state_bytes(first)
    assert state_hash(first) == state_hash(ClusterState(**shuffled))


def shuffle(value, rng):
    if isinstance(value, list):
        return [shuffle(item, rng) for item in rng.sample(value, len(value))]
    if isinstance(value, dict):
        return {key: shuffle(value[key], rng) for key in rng.sample(list(value), len(value))}
    return value


def test_spelling_out_defaults_or_a_fraction_of_zero_changes_nothing(sound):
    first = state_of(sound)
    sound["state"]["jobs"][0] |= {
        "priority": 0,
        "state": "pending",
        "contract": {},
        "user": None,
        "gpus": 4.0,
    }
    sound["state"]["jobs"][0]["speedup"] = {"a100": 1.0, "h100": 2}
    assert state_hash(state_of(sound)) == state_hash(first)


def test_minus_zero_is_zero(sound):
    sound["state"]["usage"][0]["charged_gpu_hours"] = 0.0
    sound["state"]["jobs"][0]["speedup"]["a100"] = 0.0
    plain = state_of(sound)
    sound["state"]["usage"][0]["charged_gpu_hours"] = -0.0
    sound["state"]["jobs"][0]["speedup"]["a100"] = -0.0
    assert state_hash(state_of(sound)) == state_hash(plain)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("now",), "2026-11-01T12:00:00.000001Z"),
        (("jobs", 0, "gpus"), 5),
        (("jobs", 0, "speedup", "a100"), 1.0000000000000002),
        (("nodes", 0, "labels", "rack"), "r1"),
        (("groups", 1, "share"), 3.5),
        (("usage", 0, "charged_gpu_hours"), 12.6),
    ],
)
def test_any_difference_that_counts_changes_the_hash(sound, path, value):
    before = state_hash(state_of(sound))
    *way, last = path
    at = sound["state"]
    for step in way:
        at = at[step]
    at[last] = value
    assert state_hash(state_of(sound)) != before


def test_models_are_frozen_and_can_be_pickled(sound):
    state = state_of(sound)
    with pytest.raises(ValueError, match="frozen"):
        state.jobs[0].gpus = 1
    assert pickle.loads(pickle.dumps(state)) == state


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
INSTANTS = st.datetimes(
    datetime(2000, 1, 1),
    datetime(2026, 11, 1),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=9)), timezone(-timedelta(hours=7, minutes=30))]),
)
FACTORS = st.one_of(st.integers(0, 10**9), st.floats(0, 1e30))


@st.composite
def requests(draw):
    types = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    names = draw(st.lists(NAMES, max_size=5, unique=True))
    nodes = [
        {"name": name, "gpu_type": draw(st.sampled_from(types)), "gpus": draw(st.integers(4, 16))} for name in names
    ]
    for node in nodes:
        node["unavailable_gpus"] = draw(st.integers(0, 2))
        node["labels"] = draw(st.dictionaries(NAMES, st.text(st.characters(categories=["L"]), max_size=3), max_size=2))
    ids = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    groups = [
        {"id": name, "parent": draw(st.sampled_from([None, *ids[:i]])), "share": draw(st.floats(0, 1e12))}
        for i, name in enumerate(ids)
    ]
    jobs = []
    for name in draw(st.lists(NAMES, max_size=6, unique=True)):
        unit = draw(st.integers(1, 4))
        job = {"id": name, "group": draw(NAMES), "gpus": unit * draw(st.integers(1, 8))}
        job |= {
            "speedup": draw(st.dictionaries(NAMES, FACTORS, max_size=3)),
            "submitted_at": draw(INSTANTS).isoformat(),
        }
        job[draw(st.sampled_from(["worker_gpus", "gpus_per_node"]))] = unit
        jobs.append(job)
    for job, node in zip(jobs, draw(st.permutations(nodes)), strict=False):
        if job["gpus"] <= node["gpus"]:
            job |= {
                "state": draw(st.sampled_from(["running", "terminating"])),
                "started_at": job["submitted_at"],
            }
            job["placement"] = [{"node": node["name"], "gpus": job["gpus"]}]
    now = datetime(2026, 11, 2, tzinfo=UTC).isoformat()
    state = {
        "now": now,
        "gpu_types": [{"name": t} for t in types],
        "nodes": nodes,
        "groups": groups,
        "jobs": jobs,
    }
    policy = draw(
        st.none() | st.fixed_dictionaries({}, optional={"window_s": st.integers(1, 10**6), "seed": st.integers(0, 9)})
    )
    return {"state": state, "policy": policy}


@given(requests())
def test_a_valid_request_comes_back_equal_after_being_written(document):
    request = parse_request(json.dumps(document).encode())
    written = request.model_dump_json().encode()
    again = parse_request(written)
    assert again == request
    assert again.model_dump_json().encode() == written
    assert AllocateRequest(**document) == request
    assert parse_state(written) == request.state


def test_a_sum_of_a_million_small_usages_is_not_lost_in_the_model():
    part = Usage(group="a", charged_gpu_hours=1 / 3600)
    assert part.charged_gpu_hours == 1 / 3600


def test_an_unset_policy_decides_as_all_defaults(sound):
    assert AllocateRequest(**sound).effective_policy == Policy()
