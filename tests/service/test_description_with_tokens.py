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
from hypothesis.stateful import Bundle, initialize, run_state_machine_as_test
from schemathesis.generation.stateful.state_machine import StepInput

from evenhand_api.access.grants import Scope
from evenhand_api.access.tokens import create_token
from evenhand_api.ledger.database import migrate, open_engine, writing
from evenhand_api.rest.clusters.solve import worker_engine
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


CHAIN = {
    "put_cluster": ("PUT /v1/clusters/{name}", 200),
    "post_round": ("POST /v1/clusters/{name}/rounds", 200),
    "get_round": ("GET /v1/clusters/{name}/rounds/{n}", 200),
    "explain_job": ("GET /v1/clusters/{name}/jobs/{job}/explanation", 200),
}
"""What the description's links lead along: a configuration, a round, the round again, why its first job waits."""


def run(
    folder: Path,
    examples: int,
    steps: int,
    *scopes: Scope,
    groups: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
) -> tuple[Counter[int], int]:
    """Run sequences of operations with a token of these scopes, of all on clusters or of these only.

    Returns
    -------
    (Counter, int)
        How often which status came, and how many sequences went along the whole chain.
    """
    kept, file = folder / "seeded.sqlite3", folder / "ledger.sqlite3"
    url = f"sqlite:///{file}"
    engine = open_engine(f"sqlite:///{kept}")
    migrate(engine)
    seed(engine)
    with writing(engine) as connection:
        secret, _ = create_token(connection, "machine", scopes, groups=groups)
    engine.dispose()
    client = inline_client(Settings(database_url=url, tokens=Tokens.REQUIRED, max_body_mb=0.2))
    whole = schemathesis.openapi.from_dict(openapi_document())
    schema = whole.include(operation_id=list(only)) if only else whole.include(path_regex="^/v1/clusters")
    schema.app = client.app
    statuses: Counter[int] = Counter()
    chains = 0

    class Machine(schema.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            """Every sequence begins with the same ledger: what it meets is its own doing."""
            self.went, self.turns = 0, itertools.count()
            client.app.state.ledger.close()
            worker_engine(url).dispose()
            for old in folder.glob("ledger.sqlite3*"):
                old.unlink()
            file.write_bytes(kept.read_bytes())

        @initialize(target=Bundle("catch_all"))
        def configure(self) -> Any:
            """Begin where the chain begins; by itself the machine hardly ever writes a configuration."""
            put = schema["/v1/clusters/{name}"]["PUT"]
            step = StepInput.initial(put.Case(path_parameters={"name": CLUSTER}, body=copy.deepcopy(CONFIG)))
            self.recorder.record_case(case=step.case)
            self.control.record_step(step, self.recorder)
            return self._step(step)

        def teardown(self) -> None:
            nonlocal chains
            chains += self.went == len(CHAIN)

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            right = RIGHT.get((case.method, case.path))
            if right is not None and next(self.turns) % 2:
                case.body, case.media_type = copy.deepcopy(right), "application/json"
            if "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = CLUSTER  # sequences meet in one cluster
            return {"headers": {"Authorization": f"Bearer {secret.written()}"}}

        def validate_response(self, response: Any, case: Any, **more: Any) -> None:
            statuses[response.status_code] += 1
            wanted = list(CHAIN.values())[self.went :]
            self.went += bool(wanted) and wanted[0] == (f"{case.method} {case.path}", response.status_code)
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
    return statuses, chains


def test_sequences_of_operations_fit_the_description_for_who_may_do_all(tmp_path: Path) -> None:
    found, _ = run(tmp_path, 12, 10, *Scope)
    assert found[200] + found[201] > 5
    assert found.keys() <= {200, 201, 400, 404, 405, 409, 413, 415, 422, 503}


def test_links_lead_from_a_configuration_to_the_explanation_of_a_job(tmp_path: Path) -> None:
    found, chains = run(tmp_path, 24, 10, *Scope, only=tuple(CHAIN))
    assert chains > 1
    assert not any(status >= 500 for status in found)


def test_sequences_of_operations_fit_the_description_for_who_may_see_a_part(tmp_path: Path) -> None:
    found, _ = run(tmp_path, 6, 8, Scope.READ, Scope.SUBMIT, groups=("acorn",))
    assert found[403] > 0
    assert not any(status >= 500 and status != 503 for status in found)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("scopes", "groups", "only"),
    [(tuple(Scope), (), ()), (tuple(Scope), (), tuple(CHAIN)), ((Scope.READ, Scope.SUBMIT), ("acorn",), ())],
)
def test_many_long_sequences_of_operations_fit_the_description(
    tmp_path: Path, scopes: tuple[Scope, ...], groups: tuple[str, ...], only: tuple[str, ...]
) -> None:
    found, chains = run(tmp_path, 300, 12, *scopes, groups=groups, only=only)
    assert not any(status >= 500 and status != 503 for status in found), found
    assert chains > 50 or not only
