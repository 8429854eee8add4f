"""From bytes to words. Either the words, or `InvalidInput` with everything that is wrong.

The quick way reads and validates in one go. If anything is wrong the slow way goes over the document again,
entry by entry, so that one answer names malformed fields and contradictions together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from evenhand_models.checks import Draft, draft_errors, entry_errors
from evenhand_models.cluster import ClusterState
from evenhand_models.collection import without_collection
from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.groups import Group, Usage
from evenhand_models.hardware import GpuType, Node
from evenhand_models.jobs import Job
from evenhand_models.plan import Plan
from evenhand_models.policy import Policy
from evenhand_models.quantities import CHECKS_DEFERRED
from evenhand_models.request import AllocateRequest

M = TypeVar("M", bound=BaseModel)
E = TypeVar("E", bound=BaseModel)


def parse_request(body: bytes) -> AllocateRequest:
    """Read the body of an allocate request, ``{"state": ..., "policy"?: ...}``.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are relative to the body.
    """
    return read_model(body, AllocateRequest, request_errors)


def parse_document(body: bytes) -> AllocateRequest:
    """Read a file that holds either a whole request or a bare state.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are relative to the file.
    """
    document = read_json(body)
    if isinstance(document, dict) and "state" not in document and "now" in document:
        try:
            return AllocateRequest(state=validated(document, ClusterState, _bare_errors))
        except InvalidInput:  # the default cap on contracts, which only a request looks at
            raise InvalidInput(_bare_errors(document)) from None
    return validated(document, AllocateRequest, request_errors)


def parse_state(body: bytes) -> ClusterState:
    """Read a state, bare or inside a request; what `parse_document` refuses is refused.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are relative to the file.
    """
    return parse_document(body).state


def parse_policy(body: bytes) -> Policy:
    """Read a policy; what it leaves out takes its default.

    Raises
    ------
    InvalidInput
        If anything is wrong with it.
    """
    return read_model(body, Policy, lambda document: field_errors(document, Policy))


def parse_plan(body: bytes) -> Plan:
    """Read a plan back.

    Raises
    ------
    InvalidInput
        If anything is wrong with it.
    """
    return read_model(body, Plan, lambda document: field_errors(document, Plan))


def parse_fields(body: bytes, model: type[M]) -> M:
    """Read a document field by field; what must hold between fields is left to the caller to check.

    Raises
    ------
    InvalidInput
        If it is not strict JSON or fields are malformed by themselves; pointers are relative to the body.
    """
    document = read_json(body)
    try:
        with without_collection():
            return model.model_validate(document, context=CHECKS_DEFERRED)
    except ValidationError:
        raise InvalidInput(dict.fromkeys(field_errors(document, model))) from None


class _Refused(ValueError):
    """A document that is JSON to the letter but not what we mean by it."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, refusing a key that stands in it twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"key {key!r} stands twice in one object")
            seen.add(key)
    return members


_SPACE = b" \t\n\r"
_may_hold_surrogates = re.compile(rb"\\u[dD][89a-fA-F]").search


def _constant(name: str) -> NoReturn:
    raise _Refused(f"{name} is not a number of JSON")


def _read_quickly(text: str, body: bytes) -> object:
    """Read JSON and look afterwards whether a key may stand twice in one object; None if so, or if it is no JSON.

    No key does if the objects have as many members in all as there are quotes with a colon behind them. Inside a string
    such a pair means nothing, and makes them look too few.
    """
    members = []

    def counted(read: dict[str, Any]) -> dict[str, Any]:
        members.append(len(read))
        return read

    try:
        document = json.loads(text, object_hook=counted, parse_constant=_constant)
    except (ValueError, RecursionError):
        return None
    return document if body.translate(None, _SPACE).count(b'":') == sum(members) else None


def read_json(body: bytes) -> object:
    """Read strict JSON: UTF-8, no NaN or Infinity, no key twice in one object.

    Raises
    ------
    InvalidInput
        With pointer ``""`` if it is not.
    """
    try:
        with without_collection():
            text = body.decode("utf-8")
            document = _read_quickly(text, body)
            if document is None:
                document = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
        if _may_hold_surrogates(body):
            json.dumps(document, ensure_ascii=False).encode("utf-8")
        return document
    except UnicodeEncodeError:
        message = "The body holds a lone surrogate, which is half a character."
    except UnicodeDecodeError as reason:
        message = f"The body is not UTF-8: {reason.reason} at byte {reason.start}."
    except RecursionError:
        message = "The body is nested too deeply."
    except _Refused as reason:
        message = f"The body is not strict JSON: {reason}."
    except json.JSONDecodeError as reason:
        message = f"The body is not JSON: {reason}."
    except ValueError:
        message = "The body holds a number of too many digits."
    raise InvalidInput([FieldError("", _printable(message))])


def read_model(body: bytes, model: type[M], errors: Callable[[object], Iterable[FieldError]]) -> M:
    """Read one model from strict JSON; if it is refused, `errors` says all that is wrong with the document.

    Raises
    ------
    InvalidInput
        If it is no JSON or refused.
    """
    return validated(read_json(body), model, errors)


def validated(document: object, model: type[M], errors: Callable[[object], Iterable[FieldError]]) -> M:
    """Validate a document, or raise all its errors."""
    try:
        with without_collection():
            return model.model_validate(document)
    except (ValidationError, InvalidInput):
        raise InvalidInput(dict.fromkeys(errors(document))) from None


def request_errors(document: object, model: type[BaseModel] = AllocateRequest) -> list[FieldError]:
    """Say all that is wrong with a request, or with a model that has the fields of one."""
    errors = field_errors(document, model)
    if not isinstance(document, dict):
        return errors
    policy = salvaged(document.get("policy") or {}, Policy)
    cap = None if policy is None else policy.max_protection_s
    return errors + [error.under("/state") for error in cross_errors(document.get("state"), cap)]


def _bare_errors(document: object) -> list[FieldError]:
    """Say all that is wrong with a bare state, contracts held against the default cap."""
    return [*field_errors(document, ClusterState), *cross_errors(document, Policy().max_protection_s)]


def field_errors(document: object, model: type[BaseModel]) -> list[FieldError]:
    """Say which fields are malformed by themselves."""
    try:
        model.model_validate(document, context=CHECKS_DEFERRED)
    except ValidationError as reason:
        found = reason.errors(include_url=False, include_context=False)
        return [
            FieldError(
                _printable(_pointer(_place(document, error["loc"]))),
                _printable(_message(_SAID.get(error["type"], error["msg"]), error["input"])),
            )
            for error in found
        ]
    return []


def cross_errors(state: object, cap: int | None) -> tuple[FieldError, ...]:
    """Say which readable fields of a state contradict each other, inside one entry or between entries."""
    if not isinstance(state, dict):
        return ()
    unread: dict[str, list[tuple[int, str]]] = {}
    unsure: set[str] = set()

    def entries(name: str, model: type[E], key: str) -> list[tuple[int, E]]:
        listed = state.get(name)
        kept: list[tuple[int, E]] = []
        if not isinstance(listed, list):
            unsure.add(name)
        for index, raw in enumerate(listed if isinstance(listed, list) else ()):
            entry = salvaged(raw, model)
            if entry is not None:
                kept.append((index, entry))
            elif isinstance(raw, dict) and isinstance(raw.get(key), str):
                unread.setdefault(name, []).append((index, raw[key]))
            else:
                unsure.add(name)
        return kept

    clock = salvaged({"now": state.get("now"), "gpu_types": [], "nodes": [], "groups": [], "jobs": []}, ClusterState)
    draft = Draft(
        now=None if clock is None else clock.now,
        gpu_types=entries("gpu_types", GpuType, "name"),
        nodes=entries("nodes", Node, "name"),
        groups=entries("groups", Group, "id"),
        usage=entries("usage", Usage, "group"),
        jobs=entries("jobs", Job, "id"),
        max_protection_s=cap,
        unread=unread,
        unsure=unsure,
    )
    return entry_errors(draft) + draft_errors(draft)


def salvaged(raw: object, model: type[E]) -> E | None:
    """Read one entry, or nothing if one of its fields is malformed."""
    try:
        return model.model_validate(raw, context=CHECKS_DEFERRED)
    except ValidationError:
        return None


def _place(document: object, steps: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Take off the step by which pydantic says that it means the key of an entry, not its value."""
    if not steps or steps[-1] != "[key]":
        return steps
    at: Any = document
    for step in steps[:-1]:
        at = at[step]
    return steps if isinstance(at, dict) and "[key]" in at else steps[:-1]


def _pointer(place: tuple[int | str, ...]) -> str:
    """Write a place in a document as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in place)


_SAID = {
    "model_type": "Input should be an object",
    "dict_type": "Input should be an object",
    "tuple_type": "Input should be a list",
    "extra_forbidden": "There is no such field",
    "missing": "This field is required",
    "string_pattern_mismatch": "Input should be free of control characters",
}
"""Plainer words for some of pydantic's, by its error type."""


def _message(said: str, value: object) -> str:
    """Make pydantic's words a sentence that shows a short value."""
    said = re.sub(r"^Value error, ", "", said)
    if isinstance(value, str | int | float | None):
        shown = json.dumps(value, ensure_ascii=False)
        said += f", got {shown if len(shown) <= 60 else shown[:57] + '...'}"
    return said + "."


def _printable(text: str) -> str:
    """Escape what UTF-8 cannot carry (lone surrogates)."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
