"""The description holds with tokens in force, operation by operation and over sequences of operations that feed each other."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from evenhand_api.access.grants import Scope
from evenhand_api.access.tokens import create_token
from evenhand_api.ledger.database import migrate, open_engine, writing
from evenhand_api.rest.openapi import openapi_document
from evenhand_api.settings import Settings, Tokens
from service.departments import CLUSTER, CONFIG, EVENTS, ROUNDS, seed
from service.inline import inline_client

LEFT_OUT = [
    # JSON Schema cannot say that ids are unique or placements fit; a state machine's names need not exist.
    schemathesis.checks.positive_data_acceptance,
    schemathesis.checks.max_response_time,
    # Names and bodies are put right below: what was drawn as wrong may be taken then.
    schemathesis.checks.negative_data_rejection,
]
ADJUSTMENT = {"group": "acorn", "charged_gpu_hours": 1.5, "reason": "a test", "author": "uma"}
RIGHT = {
    ("PUT", "/v1/clusters/{name}"): CONFIG,
    ("POST", "/v1/clusters/{name}/rounds"): ROUNDS[-1],
    ("POST", "/v1/clusters/{name}/events"): EVENTS,
    ("POST", "/v1/clusters/{name}/adjustments"): ADJUSTMENT,
}
"""Bodies that are right, in place of every other one that is drawn: else nearly all are refused, and nothing follows."""


def run(folder: Path, examples: int, steps: int, *scopes: Scope, groups: tuple[str, ...] = ()) -> Counter[int]:
    """Run sequences of operations with a token of these scopes; returns how often which status came."""
    url = f"sqlite:///{folder}/ledger.sqlite3"
    engine = open_engine(url)
    migrate(engine)
    seed(engine)
    with writing(engine) as connection:
        secret, _ = create_token(connection, "machine", scopes, groups=groups)
    engine.dispose()
    client = inline_client(Settings(database_url=url, tokens=Tokens.REQUIRED, max_body_mb=0.2, max_time_limit_s=1))
    schema = schemathesis.openapi.from_dict(openapi_document()).include(path_regex="^/v1/clusters")
    schema.app = client.app
    statuses: Counter[int] = Counter()

    turns = itertools.count()

    class Machine(schema.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            right = RIGHT.get((case.method, case.path))
            if right is not None and next(turns) % 2:
                case.body, case.media_type = copy.deepcopy(right), "application/json"
            if "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = CLUSTER  # sequences meet in one cluster
            return {"headers": {"Authorization": f"Bearer {secret.written()}"}}

        def validate_response(self, response: Any, case: Any, **more: Any) -> None:
            statuses[response.status_code] += 1
            case.validate_response(response, excluded_checks=LEFT_OUT, **more)

    quiet = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=quiet)
    return statuses


def test_sequences_of_operations_fit_the_description_for_who_may_do_all(tmp_path: Path) -> None:
    found = run(tmp_path, 12, 6, *Scope)
    assert found[200] + found[201] > 5
    assert found.keys() <= {200, 201, 400, 404, 405, 409, 413, 415, 422, 503}


def test_sequences_of_operations_fit_the_description_for_who_may_see_a_part(tmp_path: Path) -> None:
    found = run(tmp_path, 6, 8, Scope.READ, Scope.SUBMIT, groups=("acorn",))
    assert found[403] > 0
    assert not any(status >= 500 and status != 503 for status in found)


@pytest.mark.heavy
@pytest.mark.parametrize(("scopes", "groups"), [(tuple(Scope), ()), ((Scope.READ, Scope.SUBMIT), ("acorn",))])
def test_many_long_sequences_of_operations_fit_the_description(
    tmp_path: Path, scopes: tuple[Scope, ...], groups: tuple[str, ...]
) -> None:
    assert run(tmp_path, 300, 30, *scopes, groups=groups)
