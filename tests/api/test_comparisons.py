"""Runs side by side: the figures, the table, and the page that needs nothing but itself."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from scenarios.small import case
from typer.testing import CliRunner, Result

from evenhand.replay import Scheduler
from evenhand_api.cli import app
from evenhand_api.report.comparison import Comparison, compare, estimate
from evenhand_api.report.comparison_table import comparison_table
from evenhand_api.report.page import comparison_page
from evenhand_api.report.text import as_text
from evenhand_api.traces.neutral import write_neutral
from evenhand_api.whatif.pools import Here
from evenhand_api.whatif.runs import Base, Run
from evenhand_api.whatif.store import Memory
from evenhand_api.whatif.sweep import sweep
from evenhand_models.scenarios import BASE, read_scenario

MORE = read_scenario(
    {
        "name": "more & <better>",
        "description": "One node more.",
        "cluster": {"add": [{"gpu_type": "h100", "nodes": 1}]},
        "policy": {"horizon_s": 3_600},
        "jobs": {"jitter_s": 600},
    }
)
JITTERED = read_scenario({"name": "base", "jobs": {"jitter_s": 600}})


@pytest.fixture(scope="module")
def results() -> list[dict]:
    runs = [Run(one, Scheduler.FIRST_FIT, seed) for one in (JITTERED, MORE) for seed in range(3)]
    return sweep(Base(case(jobs=40)), runs, Here(), Memory())


@pytest.fixture(scope="module")
def both(results) -> Comparison:
    return compare(results)


@pytest.fixture(scope="module")
def page(both) -> str:
    return comparison_page(both)


def test_an_estimate_is_the_mean_and_students_confidence_interval() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.half_width == pytest.approx(3.182 * 1.2909944 / 2, rel=1e-4)
    assert estimate([5.0]).half_width is None
    assert estimate([1.0] * 50).half_width == 0.0


def test_seeds_are_one_run_and_differences_are_paired_by_seed(both: Comparison, results) -> None:
    assert both.labels == ("base / first_fit", "more & <better> / first_fit")
    assert [len(own) for own in both.results] == [3, 3]
    for figure, (first, second) in zip(both.figures, both.cells, strict=True):
        assert first.difference is None
        if first.value is None or second.value is None:
            continue
        pairs = [(figure.value(a), figure.value(b)) for a, b in zip(results[:3], results[3:], strict=True)]
        assert second.difference.mean == pytest.approx(sum(b - a for a, b in pairs) / 3)
        assert second.value.seeds == 3


def test_more_gpus_show_as_less_waiting(both: Comparison) -> None:
    rows = {figure.key: row for figure, row in zip(both.figures, both.cells, strict=True)}
    assert rows["jct_p90"][1].difference.mean < 0
    assert rows["occupancy"][1].difference.mean < 0
    assert "wait_p90:debug" in rows
    assert rows["window_envy"][0].value.mean >= 0
    assert "wait_large_p90" not in rows


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_table_fits_and_names_every_figure(both: Comparison, width: int) -> None:
    text = as_text(comparison_table(both, width), width)
    assert all(figure.title in text for figure in both.figures)
    assert "Differences are to base / first_fit." in " ".join(text.split())
    assert "±" in text


def test_eight_runs_stand_in_tables_that_all_hold_the_first(results) -> None:
    copies = [dict(result, label=f"run {i}") for i in range(8) for result in results[:3]]
    text = as_text(comparison_table(compare(copies), 100), 100)
    assert text.count("run 0") >= 3
    assert all(f"run {i}" in text for i in range(8))


VOID = frozenset({"meta", "br", "path", "use", "rect", "circle", "link", "img"})


class Seen(HTMLParser):
    """Tags, attributes and text of a page; tags must close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            if name in {"href", "src", "xlink:href", "action"}:
                self.links.append(value)
            if name == "id":
                self.ids.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_is_whole_needs_no_network_and_runs_no_script(page: str, both: Comparison) -> None:
    seen = Seen()
    seen.feed(page)
    assert seen.open == []
    assert not {"script", "link", "img", "iframe", "object"} & set(seen.tags)
    assert all(link.startswith("#") for link in seen.links)
    assert not re.findall(r"url\((?!#)", page)
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", page))
    assert addresses <= {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    assert seen.tags.count("svg") == 4 + len(both.labels)


def test_names_in_a_page_are_escaped_and_links_inside_it_lead_somewhere(page: str) -> None:
    assert "more &amp; &lt;better&gt;" in page
    assert "<better>" not in page
    seen = Seen()
    seen.feed(page)
    assert {link.removeprefix("#") for link in seen.links} <= set(seen.ids)
    uses = set(re.findall(r"url\(#([^)]+)\)", page))
    assert uses <= set(seen.ids)


def test_equal_runs_make_equal_pages(page: str, results) -> None:
    assert page == comparison_page(compare(results))


def test_the_page_follows_the_readers_colours(page: str) -> None:
    assert "prefers-color-scheme: dark" in page
    assert "currentColor" in page
    assert "#010203" not in page
    assert "#010204" not in page


def test_a_page_of_one_run_and_of_none_that_ever_ran(results) -> None:
    assert "Replay of made" in comparison_page(compare(results[:1]))
    empty = Base(case(jobs=1), until_s=1)
    nothing = sweep(empty, [Run(BASE, Scheduler.FIFO, 0)], Here(), Memory())
    assert "Replay of made" in comparison_page(compare(nothing))


def here(*arguments: str) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def files(tmp_path: Path) -> tuple[list[str], str]:
    small = case(jobs=12)
    trace, cluster, scenario = tmp_path / "made.csv", tmp_path / "cluster.json", tmp_path / "more.yaml"
    trace.write_text(write_neutral(small.trace))
    cluster.write_text(small.cluster.model_dump_json(exclude_defaults=True))
    scenario.write_text("cluster:\n  add:\n    - {gpu_type: h100, nodes: 1}\n")
    return [str(trace), "--cluster", str(cluster)], str(scenario)


def test_replay_on_the_command_line_sets_scenarios_and_schedulers_side_by_side(run, files, tmp_path: Path) -> None:
    given, scenario = files
    page = tmp_path / "report.html"
    asked = ["replay", *given, "--scenario", scenario, "--scheduler", "evenhand", "--scheduler", "first_fit", "--json"]
    done = here(*asked, "--html", str(page), "--workers", "1")
    assert done.exit_code == 0, done.stderr
    labels = [one["label"] for one in json.loads(done.stdout)["runs"]]
    assert labels == ["base", "base / first_fit", "more", "more / first_fit"]
    assert page.read_text().startswith("<!doctype html>")
    assert run(*asked, "--workers", "2").stdout == done.stdout_bytes


def test_a_sweep_is_kept_resumed_and_reported(files, tmp_path: Path) -> None:
    given, _ = files
    grid, out = tmp_path / "grid.yaml", tmp_path / "runs"
    grid.write_text("policy: {horizon_s: [3600, 86400]}\nschedulers: [first_fit]\nseeds: [0, 1]\n")
    asked = ["sweep", given[0], str(grid), *given[1:], "--out", str(out), "--json", "--workers", "1"]
    first = here(*asked)
    assert first.exit_code == 0, first.stderr
    kept = {file.name: file.stat().st_mtime_ns for file in out.iterdir()}
    assert len(kept) == 4
    assert here(*asked).stdout == first.stdout
    assert {file.name: file.stat().st_mtime_ns for file in out.iterdir()} == kept
    said = here("report", str(out), "--only", "base horizon_s=86400 / first_fit")
    assert said.exit_code == 0, said.stderr
    assert "horizon_s=86400" in said.stdout
    assert here("report", str(out), "--only", "nothing").exit_code == 2
    assert here("report", str(tmp_path / "nowhere")).exit_code == 3


def test_a_scenario_can_be_laid_under_all_runs(files, tmp_path: Path) -> None:
    given, scenario = files
    under = tmp_path / "fewer.yaml"
    under.write_text("jobs: {drop: [{group: lab/a}]}\n")
    asked = ["replay", *given, "--scheduler", "fifo", "--scenario", scenario, "--json"]
    done = here(*asked, "--base", str(under), "--out", str(tmp_path / "runs"))
    assert done.exit_code == 0, done.stderr
    kept = [json.loads(file.read_bytes()) for file in (tmp_path / "runs").iterdir()]
    fewer = sum(job.group == "lab/b" for job in case(jobs=12).trace.jobs)
    assert [one["jobs"] for one in kept] == [fewer, fewer]
    under.write_text("tree: [{remove: [nobody]}]\n")
    refused = here(*asked, "--base", str(under))
    assert refused.exit_code == 3
    assert "fewer.yaml#/tree/0/remove/0: " in refused.stderr


def test_what_is_wrong_on_the_command_line_is_a_line_each(files, tmp_path: Path) -> None:
    given, _ = files
    bad = tmp_path / "bad.yaml"
    bad.write_text("policy: {horizon_s: 0}\njobs: {arrivals: x}\n")
    done = here("replay", *given, "--scenario", str(bad))
    assert done.exit_code == 3
    lines = done.stderr.splitlines()
    assert any("bad.yaml#/policy/horizon_s: " in line for line in lines)
    assert any("bad.yaml#/jobs/arrivals: " in line for line in lines)
    assert here("replay", *given, "--scheduler", "best").exit_code == 2
    assert here("replay", given[0], "--cluster", str(bad)).exit_code == 3
    refused = here("replay", *given, "--scheduler", "fifo", "--ray", "auto")
    assert refused.exit_code == 4
    assert "evenhand[ray]" in refused.stderr
