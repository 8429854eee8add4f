"""Jobs are read all at once, and read as each would be alone."""

import json
import warnings
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand_models import ClusterState, Contract, InvalidInput, Job, parse_document
from evenhand_models.many import read_many
from evenhand_models.parse import read_json
from evenhand_models.quantities import CHECKS_DEFERRED

NOW = "2026-11-01T12:00:00Z"
PLAIN = {"id": "a", "group": "g", "gpus": 4, "speedup": {"h100": 1}, "submitted_at": NOW}
FIELDS = {
    "group": ["g", "h"],
    "user": ["u", None],
    "gpus": [4, 8, 4.0],
    "min_gpus": [2, None],
    "speedup": [{"h100": 1}, {"h100": 1.0}, {"h100": -0.0, "a100": 2}, {"a100": 2, "h100": 0.0}],
    "requires": [{}, {"rack": "r", "pod": ""}],
    "priority": [0, -0.0, 7],
    "submitted_at": [NOW, "2026-11-01T12:00:00.5+01:00"],
    "contract": [{}, {"min_runtime_s": 1}, {"min_runtime_s": 1, "resumable": True}, {"min_runtime_s": 0}],
    "state": ["pending", "running", "terminating"],
    "placement": [[], [{"node": "n1", "gpus": 1}, {"node": "n0", "gpus": 3}]],
    "utilization": [0, 1, -0.0, 0.5, None],
}
GIVEN = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in FIELDS.items()}).flatmap(
    lambda job: st.permutations(list({**PLAIN, **job}.items())).map(dict)
)


def told(job):
    return job.model_dump_json(), job.__dict__, list(job.__dict__), job.model_fields_set, repr(job)


@given(st.lists(GIVEN, min_size=1, max_size=8))
def test_jobs_read_together_are_the_jobs_read_alone(jobs):
    alone = [Job.model_validate(job, context=CHECKS_DEFERRED) for job in jobs]
    assert list(map(told, read_many(Job, jobs))) == list(map(told, alone))


WRONG = [
    ("gpus", 1, True),
    ("priority", 0, False),
    ("contract", {"resumable": True}, {"resumable": 1}),
    ("contract", {"min_runtime_s": 1}, {"min_runtime_s": True}),
    ("speedup", {"h100": 1}, {"h100": True}),
    ("utilization", 1.0, True),
    ("state", "pending", "Pending"),
    ("user", None, ""),
    ("surprise", None, None),
]


@pytest.mark.parametrize(("name", "right", "wrong"), WRONG)
def test_a_value_that_is_wrong_in_one_job_only_is_refused_there(sound, errors_of, name, right, wrong):
    jobs = [PLAIN | {"id": f"j{i}"} | ({} if name == "surprise" else {name: right}) for i in range(9)]
    jobs[6][name] = wrong
    sound["state"]["jobs"] = jobs
    assert {pointer.split("/")[3] for pointer in errors_of(sound)} == {"6"}
    assert read_many(Job, jobs) is None


def test_jobs_that_each_give_other_fields_are_read_one_by_one(sound):
    fields = list(permutations(PLAIN))[:40]
    jobs = [{name: PLAIN[name] for name in names} | {"id": f"j{i}"} for i, names in enumerate(fields)]
    assert read_many(Job, jobs) is None
    assert len(read_many(Job, jobs[:1] * 40)) == 40
    sound["state"]["jobs"] = jobs
    assert len(parse_document(json.dumps(sound).encode()).state.jobs) == 40


def test_a_state_keeps_its_jobs_however_it_is_made(sound):
    state = sound["state"]
    read = parse_document(json.dumps(sound).encode()).state
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = ClusterState(**state)
    assert [job.id for job in made.jobs] == ["waits", "runs"]
    assert made == read == ClusterState.model_validate(state) == ClusterState.model_validate_json(json.dumps(state))
    assert read.model_fields_set == set(state)


def test_contracts_of_jobs_that_say_nothing_are_the_default(sound):
    sound["state"]["jobs"] = [PLAIN | {"id": f"j{i}"} for i in range(5)]
    jobs = parse_document(json.dumps(sound).encode()).state.jobs
    assert {job.contract for job in jobs} == {Contract()}


@pytest.mark.parametrize("colon", [":", " :", "\t: ", "\n\r :"])
def test_a_key_that_stands_twice_is_found_however_the_colon_stands(colon):
    body = f'{{"a"{colon}1, "b"{colon}"\\":\\":", "c"{colon}":", "a"{colon}1}}'
    with pytest.raises(InvalidInput, match="'a' stands twice"):
        read_json(body.encode())


def test_a_string_may_hold_what_looks_like_a_key():
    said = {"a": '":', "b": [{"c": ':" :', '":': '"\t:'}]}
    assert read_json(json.dumps(said).encode()) == said


def test_the_first_thing_wrong_with_the_text_is_named():
    with pytest.raises(InvalidInput, match="'a' stands twice"):
        read_json(b'[{"a": 1, "a": 2}, NaN, oops]')
