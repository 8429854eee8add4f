"""What `evenhand trace` says and writes."""

import json
from pathlib import Path

import pytest
from traces.sources import NEUTRAL, SACCT
from traces.test_describe import BUDGET

from evenhand_api.traces import read_trace


@pytest.fixture
def trace(tmp_path: Path):
    path = tmp_path / "made.csv"
    path.write_text(NEUTRAL)
    return str(path)


def test_describe_writes_json_with_every_odd_row(run, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    done = run("trace", "describe", str(path), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [row["line"] for row in said["odd_rows"]] == [4, 6, 7]
    table = run("trace", "describe", str(path)).stdout.decode()
    assert "never_started" in table
    assert "Odd rows" in table


def test_convert_writes_a_trace_that_reads_the_same(run, tmp_path: Path) -> None:
    path, copy = tmp_path / "jobs.txt", tmp_path / "copy.csv"
    path.write_text(SACCT)
    done = run("trace", "convert", str(path), "--to", "csv")
    assert done.returncode == 0, done.stderr
    assert b"3 odd rows" in done.stderr
    copy.write_bytes(done.stdout)
    assert read_trace(str(copy)).trace.jobs == read_trace(str(path)).trace.jobs


def test_a_cluster_is_built_on_the_command_line_and_describes_the_supply(run, tmp_path: Path, trace: str) -> None:
    budget, cluster = tmp_path / "budget.json", tmp_path / "cluster.json"
    budget.write_text(json.dumps(BUDGET))
    done = run("trace", "cluster", "h100=16", "--budget", str(budget))
    assert done.returncode == 0, done.stderr
    cluster.write_bytes(done.stdout)
    said = run("trace", "describe", trace, "--cluster", str(cluster), "--json")
    assert json.loads(said.stdout)["supply"]["gpus"] == 16
    assert json.loads(said.stdout)["odd"] == {"unknown_group": 2}
    assert run("trace", "cluster", "h100=16").returncode == 2
    assert run("trace", "cluster", "h100", "--trace", trace).returncode == 2
