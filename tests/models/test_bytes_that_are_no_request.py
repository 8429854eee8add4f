"""What is not strict JSON is refused with one clear message, never with a traceback."""

import gc
import json

import pytest

from evenhand_models import InvalidInput, parse_document, parse_plan, parse_policy, parse_request, parse_state

READERS = [parse_request, parse_document, parse_state, parse_policy, parse_plan]
NOT_JSON = [
    (b"", "not JSON"),
    (b"{", "not JSON"),
    (b"\xff\xfe{}", "not UTF-8"),
    ("{}".encode("utf-16"), "not UTF-8"),
    (b"\xef\xbb\xbf{}", "BOM"),
    (b'{"a": NaN}', "NaN"),
    (b'{"a": -Infinity}', "Infinity"),
    (b'{"seed": 1, "seed": 1}', "'seed' stands twice"),
    (b'{"a": {"b": 1, "b": 2}}', "'b' stands twice"),
    (b"[" * 200_000, "nested too deeply"),
    (b'{"a":' * 200_000, "nested too deeply"),
    (b"1" * 5_000, "too many digits"),
]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("body", "said"), NOT_JSON, ids=[said + str(i) for i, (_, said) in enumerate(NOT_JSON)])
def test_bytes_that_are_not_strict_json_are_refused_as_a_whole(reader, body, said):
    with pytest.raises(InvalidInput) as refused:
        reader(body)
    (error,) = refused.value.errors
    assert error.pointer == ""
    assert said in error.message


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("body", [b"null", b"[]", b"3", b'"x"', b"true"])
def test_json_that_is_no_object_is_refused_as_a_whole(reader, body):
    with pytest.raises(InvalidInput) as refused:
        reader(body)
    assert [(error.pointer, "should be an object" in error.message) for error in refused.value.errors] == [("", True)]


@pytest.mark.parametrize("was_on", [True, False])
def test_reading_leaves_the_garbage_collector_as_it_was(was_on):
    try:
        (gc.enable if was_on else gc.disable)()
        parse_policy(b"{}")
        with pytest.raises(InvalidInput):
            parse_policy(b"{")
        assert gc.isenabled() is was_on
    finally:
        gc.enable()


def test_a_document_may_be_a_bare_state_or_a_request_and_gives_the_same_state(sound):
    wrapped = parse_document(json.dumps(sound | {"policy": {"seed": 7}}).encode())
    bare = parse_document(json.dumps(sound["state"]).encode())
    assert wrapped.state == bare.state == parse_state(json.dumps(sound["state"]).encode())
    assert (wrapped.policy.seed, bare.policy) == (7, None)


def test_pointers_into_a_bare_state_start_at_the_state(sound):
    sound["state"]["jobs"][0] |= {"gpus": 0}
    sound["state"]["nodes"][2] |= {"gpu_type": "tpu"}
    with pytest.raises(InvalidInput) as refused:
        parse_state(json.dumps(sound["state"]).encode())
    assert {error.pointer for error in refused.value.errors} == {"/jobs/0/gpus", "/nodes/2/gpu_type"}


def test_a_request_does_not_pass_as_a_bare_state_without_state(sound, errors_of):
    assert "/state" in errors_of(sound["state"])
