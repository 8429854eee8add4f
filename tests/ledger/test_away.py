"""A database that is away or full: said clearly, nothing half-written, and all is well once it is back."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases.states import NOW, after, job
from sqlalchemy import event, func, select
from starlette.testclient import TestClient

from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.database import migrate, open_engine, reading, writing
from evenhand_api.ledger.errors import LedgerUnavailable
from evenhand_api.ledger.events import record_events
from evenhand_api.ledger.rollups import differences
from evenhand_api.ledger.tables import facts, intervals
from evenhand_api.ledger.words import ClusterConfig, Event
from evenhand_api.rest import create_app
from evenhand_api.settings import Settings
from ledger.clusters import JSON, Cluster, ended, started
from ledger.postgres import running_server
from ledger.simulated import CONFIG


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'full.sqlite3'}"
    engine = open_engine(url)
    migrate(engine)
    with writing(engine) as connection:
        put_cluster(connection, "lab", ClusterConfig.model_validate(CONFIG))
    engine.dispose()
    tight = open_engine(url)
    with tight.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    tight.dispose()
    event.listen(tight, "connect", lambda raw, _: raw.execute(f"PRAGMA max_page_count = {pages + 4}"))
    events = []
    for i in range(400):
        events += [started(f"j{i}", NOW, {"n0": 1}, group="a", min_runtime_s=60), ended(f"j{i}", after(30))]
    batch = [Event.model_validate(e) for e in events]
    with pytest.raises(LedgerUnavailable, match="full"), writing(tight) as connection:
        record_events(connection, find_cluster(connection, "lab", lock=True), batch)
    tight.dispose()
    roomy = open_engine(url)
    with reading(roomy) as connection:
        counts = [connection.execute(select(func.count()).select_from(t)).scalar_one() for t in (facts, intervals)]
        assert counts == [0, 0]
    with writing(roomy) as connection:
        record_events(connection, find_cluster(connection, "lab", lock=True), batch)
    with reading(roomy) as connection:
        assert connection.execute(select(func.count()).select_from(intervals)).scalar_one() == 400
        assert differences(connection, find_cluster(connection, "lab").id) == []
    roomy.dispose()


@pytest.mark.postgres
def test_a_database_that_went_away_is_used_again_when_it_is_back() -> None:
    with running_server() as server:
        settings = Settings(max_concurrent=1, database_url=server.new_database("lab", "template1"))
        with TestClient(create_app(settings), raise_server_exceptions=False) as client:
            lab = Cluster(client, "lab")
            lab.configure("1x8 H100", {"A": 1.0, "B": 1.0})
            lab.round(NOW, [job("j", "A", 4, on={"n0": 4})])
            server.stop("immediate")
            begun = started("k", NOW, {"n0": 4}, group="B", min_runtime_s=60)
            for answer in (
                client.get("/v1/clusters/lab"),
                client.post("/v1/clusters/lab/events", json={"events": [begun]}),
                client.post("/v1/clusters/lab/rounds", json={"now": after(5).isoformat(), "jobs": []}, headers=JSON),
                client.put("/v1/clusters/lab", json=CONFIG),
            ):
                assert answer.status_code == 503, answer.text
                assert answer.json()["type"].endswith("ledger-unavailable")
                assert int(answer.headers["Retry-After"]) > 0
            server.start()
            lab.events(begun, ended("k", after(10)))
            late = lab.round(after(15), [job("j", "A", 4, on={"n0": 4}, ran=15, now=after(15))])
            assert late["round"] == 2
            assert lab.charged(end=after(15)) == {"A": 1.0, "B": pytest.approx(4 * 10 / 60, rel=1e-12)}


@pytest.mark.postgres
def test_a_service_that_starts_before_its_database_serves_once_that_is_there() -> None:
    with running_server() as server:
        url = server.new_database("late", "template1")
        server.stop()
        with TestClient(create_app(Settings(max_concurrent=1, database_url=url))) as client:
            assert client.get("/v1/clusters").status_code == 503
            assert client.get("/healthz").status_code == 200
            server.start()
            assert client.get("/v1/clusters").json() == {"clusters": []}
