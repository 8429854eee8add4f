"""Every route asks for the scope it should, and a route nobody has thought about is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from evenhand_api.access.grants import Scope
from evenhand_api.access.secrets import new_secret
from evenhand_api.access.tokens import list_tokens, revoke_token
from evenhand_api.ledger.database import open_engine, reading, writing
from evenhand_api.rest import create_app
from evenhand_api.rest.rules import RULES
from evenhand_api.settings import Settings, Tokens
from service.conftest import Office
from service.departments import CLUSTER

# Written by hand, and not read from the table that is tested: what each route must ask for.
PUBLIC = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/docs"), ("GET", "/openapi.json")}
NEEDS = {
    ("GET", "/metrics"): Scope.READ,
    ("POST", "/v1/allocate"): Scope.SUBMIT,
    ("GET", "/v1/clusters"): Scope.READ,
    ("PUT", "/v1/clusters/{name}"): Scope.ADMINISTER,
    ("POST", "/v1/clusters/{name}/adjustments"): Scope.ADMINISTER,
    ("POST", "/v1/clusters/{name}/rounds"): Scope.SUBMIT,
    ("POST", "/v1/clusters/{name}/events"): Scope.SUBMIT,
    ("POST", "/v1/clusters/{name}/observations"): Scope.SUBMIT,
    ("POST", "/v1/audit/speedups"): Scope.SUBMIT,
    ("POST", "/v1/fairness"): Scope.SUBMIT,
    ("POST", "/v1/whatif/start"): Scope.SUBMIT,
    ("POST", "/v1/whatif"): Scope.SUBMIT,
    ("GET", "/v1/whatif"): Scope.READ,
    ("GET", "/v1/whatif/{number}"): Scope.READ,
    ("DELETE", "/v1/whatif/{number}"): Scope.SUBMIT,
    ("GET", "/v1/whatif/{number}/events"): Scope.READ,
    ("GET", "/v1/whatif/{number}/result"): Scope.READ,
    ("GET", "/v1/whatif/{number}/report"): Scope.READ,
    ("GET", "/v1/clusters/{name}"): Scope.READ,
    ("GET", "/v1/clusters/{name}/rounds"): Scope.READ,
    ("GET", "/v1/clusters/{name}/rounds/{n}"): Scope.READ,
    ("GET", "/v1/clusters/{name}/jobs/{job:path}/explanation"): Scope.READ,
    ("GET", "/v1/clusters/{name}/groups"): Scope.READ,
    ("GET", "/v1/clusters/{name}/owed-received"): Scope.READ,
    ("GET", "/v1/clusters/{name}/occupancy"): Scope.READ,
    ("GET", "/v1/clusters/{name}/usage"): Scope.READ,
    ("GET", "/v1/clusters/{name}/speedups"): Scope.READ,
}


def address(path: str) -> str:
    return path.replace("{name}", CLUSTER).replace("{n}", "1").replace("{number}", "1").replace("{job:path}", "seed-1")


def test_every_route_of_the_service_has_a_rule(tmp_path: object) -> None:
    app = create_app(Settings(data_dir=str(tmp_path)))
    routes = {
        (method, str(route.path))
        for route in app.router.routes
        if isinstance(route, Route)
        for method in route.methods or ()
    }
    assert len(routes) == sum(len(route.methods or ()) for route in app.router.routes if isinstance(route, Route))
    assert all(isinstance(route, Route) for route in app.router.routes)
    assert {("GET" if method == "HEAD" else method, path) for method, path in routes} <= RULES.keys()


def test_no_rule_is_left_over_from_a_route_that_is_gone(tmp_path: object) -> None:
    app = create_app(Settings(data_dir=str(tmp_path)))
    there = {
        (method, route.path)
        for route in app.router.routes
        if isinstance(route, Route)
        for method in route.methods or ()
    }
    assert there >= RULES.keys() == PUBLIC | NEEDS.keys()


def test_the_table_says_what_each_route_must_ask_for() -> None:
    assert {key for key, rule in RULES.items() if rule.scope is None} == PUBLIC
    for key, scope in NEEDS.items():
        assert RULES[key].scope is scope, key


@pytest.mark.parametrize("key", NEEDS, ids=" ".join)
def test_each_route_is_closed_without_its_scope_and_open_with_it(office: Office, key: tuple[str, str]) -> None:
    method, path = key
    for scope in Scope:
        answer = office.client.request(method, address(path), headers=office.token(scope))
        assert (answer.status_code == 403) is (scope is not NEEDS[key]), (scope, answer.text)
    for headers in ({}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer evh_x"}):
        answer = office.client.request(method, address(path), headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("method", "path"), sorted(PUBLIC - {("GET", "/readyz")}))
def test_health_and_description_need_no_token(office: Office, method: str, path: str) -> None:
    assert office.client.request(method, path).status_code == 200


def test_a_token_that_is_revoked_over_or_of_another_secret_does_not_work(office: Office) -> None:
    headers = office.token(Scope.READ)
    assert office.client.get("/v1/clusters", headers=headers).status_code == 200
    number = headers["Authorization"].split("_")[1]
    forged = f"Bearer evh_{number}_{new_secret().value}"
    assert office.client.get("/v1/clusters", headers={"Authorization": forged}).status_code == 401
    engine = open_engine(office.url)
    with writing(engine) as connection:
        revoke_token(connection, number)
    engine.dispose()
    assert office.client.get("/v1/clusters", headers=headers).status_code == 401
    assert office.client.get("/v1/clusters", headers=office.token(Scope.READ, days=-1)).status_code == 401


def test_two_authorizations_are_none(office: Office) -> None:
    good = office.token(Scope.READ)["Authorization"]
    answer = office.client.get("/v1/clusters", headers=[("Authorization", good), ("Authorization", good)])
    assert answer.status_code == 401


def test_the_secret_is_nowhere_in_the_database(office: Office) -> None:
    value = office.token(Scope.READ)["Authorization"].rpartition("_")[2]
    engine = open_engine(office.url)
    with reading(engine) as connection:
        rows = connection.exec_driver_sql("SELECT * FROM tokens").all()
        assert len(list_tokens(connection)) == len(rows) > 0
    engine.dispose()
    assert all(value not in str(row) for row in rows)


def test_an_unknown_path_says_nothing_to_a_caller_without_a_token(office: Office) -> None:
    assert office.client.get("/v1/secret").status_code == 401
    assert office.client.delete(f"/v1/clusters/{CLUSTER}").status_code == 401
    assert office.client.get("/v1/secret", headers=office.token(Scope.READ)).status_code == 404
    assert office.client.delete(f"/v1/clusters/{CLUSTER}", headers=office.token(Scope.READ)).status_code == 405


def test_a_route_without_a_rule_is_refused_to_everybody(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    async def open_door(_: Request) -> Response:
        return JSONResponse({"secret": 1})

    office.client.app.add_route("/v1/new", open_door)  # type: ignore[attr-defined]
    answer = office.client.get("/v1/new", headers=office.token(*Scope))
    assert answer.status_code == 403
    assert "no row" in caplog.text


@pytest.fixture
def loopback(office_url: str) -> Iterator[TestClient]:
    """The service as it starts by default: on this machine only."""
    app = create_app(Settings(database_url=office_url))
    with_no_processes = TestClient(app, raise_server_exceptions=False)
    yield with_no_processes
    app.state.ledger.close()


def test_on_this_machine_no_token_is_needed_but_one_that_is_given_must_work(loopback: TestClient) -> None:
    assert loopback.get("/v1/clusters").status_code == 200
    assert loopback.get("/v1/clusters", headers={"Authorization": "Bearer evh_no"}).status_code == 401


@pytest.mark.parametrize(
    ("settings", "required"),
    [
        (Settings(), False),
        (Settings(host="localhost"), False),
        (Settings(host="127.3.2.1"), False),
        (Settings(host="::1"), False),
        (Settings(tokens=Tokens.REQUIRED), True),
        (Settings(host="0.0.0.0"), True),
        (Settings(host="::"), True),
        (Settings(host="10.0.0.7"), True),
        (Settings(host="cluster.example"), True),
        (Settings(host=""), True),
    ],
)
def test_any_address_but_this_machines_own_requires_tokens(settings: Settings, required: bool) -> None:
    assert settings.tokens_required is required
