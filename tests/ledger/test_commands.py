"""evenhand ledger on the command line: what it shows is what the service says."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cases.states import NOW, after, job
from sqlalchemy import Engine, text
from typer.testing import CliRunner

from evenhand_api.cli import app
from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.database import reading, writing
from evenhand_api.ledger.events import record_events
from evenhand_api.ledger.rounds import Posted, decide_round
from evenhand_api.ledger.words import ClusterConfig, Event
from evenhand_models import GpuType, Group, Node
from ledger.clusters import ended, started, wire

CONFIG = ClusterConfig(
    gpu_types=[GpuType(name="H100")],
    nodes=[Node(name="n0", gpu_type="H100", gpus=8)],
    groups=[Group(id="A", share=1), Group(id="B", share=1)],
)
Run = Callable[..., Any]


@pytest.fixture
def kept(engine: Engine) -> Engine:
    """A ledger with a cluster, two rounds, and a job of 4 GPUs that ran for half an hour."""
    from evenhand import allocate

    with writing(engine) as connection:
        put_cluster(connection, "lab", CONFIG)
        events = [started("j", NOW, {"n0": 4}, group="A", min_runtime_s=60), ended("j", after(30))]
        record_events(connection, find_cluster(connection, "lab", lock=True), [Event.model_validate(e) for e in events])
    for minute in (0, 60):
        body = {"now": after(minute).isoformat(), "jobs": [wire(job("w", "B", 16))]}
        decide_round(engine, Posted("lab", json.dumps(body).encode()), 60, allocate)
    return engine


@pytest.fixture
def ledger(kept: Engine, url: str) -> Run:
    def ledger(*arguments: str, code: int = 0) -> Any:
        done = CliRunner().invoke(app, ["ledger", *arguments], env={"EVENHAND_DATABASE_URL": url})
        assert done.exit_code == code, (done.output, done.exception)
        return done

    return ledger


def test_show_says_what_was_charged(ledger: Run) -> None:
    assert json.loads(ledger("show", "--json").stdout)[0]["cluster"] == "lab"
    said = json.loads(ledger("show", "lab", "--json").stdout)
    assert (said["last_round"], said["charged_gpu_hours"]) == (2, {"A": 2.0})
    assert "2.000" in ledger("show", "lab", "--from", NOW.isoformat(), "--to", after(60).isoformat()).stdout


def test_an_adjustment_is_kept_exported_and_counted(ledger: Run) -> None:
    ledger("adjust", "lab", "A", "--reason", "broken fan", "--author", "ops", "--", "-0.5")
    assert json.loads(ledger("show", "lab", "--json").stdout)["charged_gpu_hours"] == {"A": 1.5}
    rows = list(csv.DictReader(io.StringIO(ledger("export", "lab").stdout)))
    assert [row["kind"] for row in rows] == ["occupancy", "adjustment"]
    assert (rows[0]["job"], rows[0]["gpu_hours"], rows[0]["from_at"]) == ("j", "2.0", "2026-11-01T12:00:00Z")
    assert (rows[1]["reason"], rows[1]["author"], rows[1]["charged_gpu_hours"]) == ("broken fan", "ops", "-0.5")
    as_json = [json.loads(line) for line in ledger("export", "lab", "--format", "json").stdout.splitlines()]
    assert [{k: "" if v is None else str(v) for k, v in line.items()} for line in as_json] == rows


def test_the_rollups_are_checked_against_the_intervals(ledger: Run, kept: Engine) -> None:
    ledger("check", "lab")
    with writing(kept) as connection:
        connection.execute(text("UPDATE hours SET charge_s = charge_s + 1"))
    assert json.loads(ledger("check", "lab", "--json", code=1).stdout)["cells"][0]["group"] == "A"
    ledger("check", "lab", "--repair", code=1)
    ledger("check", "lab")


def test_stored_rounds_give_the_same_plan_again_and_a_changed_one_is_found(ledger: Run, kept: Engine) -> None:
    assert json.loads(ledger("replay", "lab", "--json").stdout) == {
        "cluster": "lab",
        "rounds": 2,
        "same": 2,
        "differ": [],
        "cut_by_time_or_other_engine": [],
    }
    with writing(kept) as connection:
        connection.execute(text("UPDATE rounds SET plan_hash = state_hash WHERE n = 2"))
    assert json.loads(ledger("replay", "lab", "--json", code=1).stdout)["differ"] == [2]


def test_what_the_window_still_reaches_is_not_forgotten_and_what_lies_before_is(ledger: Run, kept: Engine) -> None:
    from evenhand import allocate

    ledger("forget", "lab", "--before", after(60).isoformat(), code=3)
    late = NOW + timedelta(days=30)
    body = {"now": late.isoformat(), "jobs": [wire(job("w", "B", 16))]}
    decide_round(kept, Posted("lab", json.dumps(body).encode()), 60, allocate)
    said = json.loads(ledger("forget", "lab", "--before", after(120).isoformat(), "--json").stdout)
    assert (said["intervals"], said["rounds"], said["jobs"]) == (1, 2, 1)
    ledger("check", "lab")
    with reading(kept) as connection:
        assert find_cluster(connection, "lab").kept_from_us > 0
    assert json.loads(ledger("show", "lab", "--from", NOW.isoformat(), "--json").stdout)["charged_gpu_hours"] == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "nowhere"),
        ("show", "lab", "--from", "yesterday"),
        ("adjust", "lab", "nobody", "1", "--reason", "r", "--author", "a"),
        ("adjust", "lab", "A", "much", "--reason", "r", "--author", "a"),
        ("adjust", "lab", "A", "nan", "--reason", "r", "--author", "a"),
        ("adjust", "lab", "A", "0", "--reason", "r", "--author", "a"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(ledger: Run, arguments: tuple[str, ...]) -> None:
    said = ledger(*arguments, code=3).stderr
    assert "Traceback" not in said
    assert len(said.splitlines()) == 2
