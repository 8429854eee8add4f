"""The report for people: readable at any width, with any number of jobs, and true to the plan."""

from datetime import timedelta
from pathlib import Path

import pytest

from evenhand import allocate
from evenhand_api.report import as_text, explanation, plan_report
from evenhand_api.report.text import brief, by_type, duration, names, number, percent
from evenhand_models import Action, ClusterState, Plan, parse_request

PHILLY = Path(__file__).parents[2] / "examples" / "states" / "philly_3vc_day40.json.gz"


@pytest.fixture(scope="module")
def round_() -> tuple[ClusterState, Plan]:
    import gzip

    request = parse_request(gzip.decompress(PHILLY.read_bytes()))
    return request.state, allocate(request.state, request.policy)


@pytest.mark.parametrize("width", [40, 80, 100, 160, 300])
def test_no_line_is_wider_than_the_terminal_and_no_list_longer_than_asked(
    round_: tuple[ClusterState, Plan], width: int
) -> None:
    text = as_text(plan_report(*round_, width, rows=5), width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) < max(80, 15_000 / width)
    assert "\x1b" not in text


def test_every_action_is_counted_and_every_group_is_listed(round_: tuple[ClusterState, Plan]) -> None:
    state, plan = round_
    text = as_text(plan_report(state, plan, 200), 200)
    for action in Action:
        count = sum(assignment.action is action for assignment in plan.assignments)
        assert (f"{count:,} {action}" in text) == (count > 0)
    for group in state.groups:
        assert f"\n{group.id} " in text


def test_with_rows_0_every_start_is_listed(round_: tuple[ClusterState, Plan]) -> None:
    state, plan = round_
    text = as_text(plan_report(state, plan, 200, rows=0), 200)
    for assignment in plan.assignments:
        if assignment.action is Action.START:
            assert f"\n{assignment.job} " in text


def test_an_explanation_has_all_reasons_whole(round_: tuple[ClusterState, Plan]) -> None:
    state, plan = round_
    jobs = {job.id: job for job in state.jobs}
    for action in (Action.START, Action.KEEP, Action.PREEMPT, Action.WAIT):
        assignment = next(a for a in plan.assignments if a.action is action)
        text = as_text(explanation(state, plan, jobs[assignment.job]), 2_000)
        assert f"Job {assignment.job}" in text
        for reason in assignment.reasons:
            assert reason.message in text
            assert reason.code in text


def test_a_tree_shows_children_below_their_parents() -> None:
    groups = [{"id": "lab", "share": 1}, {"id": "lab/b", "parent": "lab", "share": 1}]
    groups += [{"id": "lab/a", "parent": "lab", "share": 3}, {"id": "other", "share": 1}]
    state = ClusterState.model_validate(
        {
            "now": "2026-11-01T00:00:00Z",
            "gpu_types": [{"name": "h100"}],
            "nodes": [{"name": "n1", "gpu_type": "h100", "gpus": 8}],
            "groups": groups,
            "jobs": [],
        }
    )
    lines = as_text(plan_report(state, allocate(state), 200, rows=0), 200).splitlines()
    listed = [line.split()[0] for line in lines if line.startswith(("lab", "  lab", "other"))]
    assert sorted(listed) == ["lab", "lab/a", "lab/b", "other"]
    assert {listed[listed.index("lab") + 1], listed[listed.index("lab") + 2]} == {"lab/a", "lab/b"}
    assert any(line.startswith("  lab/a ") for line in lines)


def test_groups_without_work_are_counted_unless_all_are_asked_for(
    round_: tuple[ClusterState, Plan],
) -> None:
    state, plan = round_
    quiet = tuple(
        report.model_copy(update={"demand_gpus": 0.0, "allocated": {}, "unallocated_use": {}}) for report in plan.groups
    )
    still = plan.model_copy(update={"groups": quiet})
    assert "and 3 more groups without work" in as_text(plan_report(state, still, 200), 200)
    assert "without work" not in as_text(plan_report(state, still, 200, rows=0), 200)


def test_a_round_without_anything_is_said_too() -> None:
    state = ClusterState.model_validate(
        {
            "now": "2026-11-01T00:00:00Z",
            "gpu_types": [{"name": "h100"}],
            "nodes": [{"name": "n1", "gpu_type": "h100", "gpus": 8}],
            "groups": [],
            "jobs": [],
        }
    )
    assert "0 jobs: none" in as_text(plan_report(state, allocate(state), 80), 80)


def test_numbers_read_well() -> None:
    assert [number(x) for x in (0, -0.04, 1234.5, 1e6, None)] == ["0", "0", "1,234.5", "1,000,000", "-"]
    assert [percent(x) for x in (0.0451, 0, None)] == ["4.51 %", "0 %", "-"]
    assert [duration(x) for x in (0, 59, 60, 3_661, 90_000, -5)] == [
        "0 s",
        "59 s",
        "1 min",
        "1 h 1 min",
        "1 d 1 h",
        "0 s",
    ]
    assert duration(timedelta(days=35, hours=13).total_seconds()) == "35 d 13 h"
    assert by_type({"v100": 2.0, "a100": 0.5, "k80": 0}) == "0.5 a100, 2 v100"
    assert names(["a", "b", "c"], 1) == "a and 2 more"
    assert names([]) == "-"


def test_a_long_sentence_is_cut_at_a_word() -> None:
    assert brief("short") == "short"
    assert brief("one two, three four", 9) == "one two ..."
    assert len(brief("x" * 500)) < 120
