"""Odd traces: the same result sorted or not, each odd row by its line, never a traceback. Case 36."""

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from replay.build import cluster
from traces.sources import ALIBABA, HELIOS, SACCT, SWF

from evenhand import Policy
from evenhand.replay import Scheduler, measure, replay
from evenhand_api.traces import OddKind, Reading, ReadOptions, read_trace
from evenhand_models import InvalidInput
from evenhand_models.traces import TraceJob

HEADER = "job_id,group,user,submit_s,duration_s,gpus,gpu_type,state,model"
ODD = """e1,A,,100,50,1,,,
e2,A,,100,50,1,,,
late,A,,90,50,1,,,
zero,A,,10,0,1,,,
long,A,,20,9000000,4,,,
who,Z,,30,60,1,,,
half,A,,40,60,0.5,,,
none,A,,50,60,0,,,
minus,A,,60,60,-1,,,
back,A,,-5,60,1,,,
text,A,,soon,60,1,,,
nan,A,,60,nan,1,,,
huge,A,,60,60,1e308,,,
short,A,,60
dup,A,,70,60,1,,,
dup,A,,71,60,1,,,
end,A,,60,60,1,,exploded,
tpu,A,,60,60,1,tpu,,
"""
SAID = {
    5: OddKind.ZERO_DURATION,
    6: OddKind.LONGER_THAN_PERIOD,
    7: OddKind.UNKNOWN_GROUP,
    8: OddKind.FRACTION,
    9: OddKind.NO_GPUS,
    10: OddKind.UNREADABLE,
    11: OddKind.BEFORE_START,
    12: OddKind.UNREADABLE,
    13: OddKind.UNREADABLE,
    14: OddKind.UNREADABLE,
    15: OddKind.FIELD_COUNT,
    17: OddKind.DUPLICATE_ID,
    18: OddKind.UNREADABLE,
    19: OddKind.UNKNOWN_TYPE,
}
KNOWN = ReadOptions(groups=frozenset({"A"}), gpu_types=frozenset({"h100"}))


def read(path: Path, text: str, options: ReadOptions | None = None) -> Reading:
    path.write_text(text)
    return read_trace(str(path), options)


def jobs_or_none(path: Path, text: str) -> tuple[TraceJob, ...]:
    try:
        return read(path, text).trace.jobs
    except InvalidInput:
        return ()


def test_case_36_every_odd_row_is_said_by_its_line_and_why(tmp_path: Path) -> None:
    reading = read(tmp_path / "t.csv", f"{HEADER}\n{ODD}", KNOWN)
    assert {row.line: row.kind for row in reading.odd} == SAID
    assert len(reading.odd) == len(SAID)
    assert all(row.message.endswith(".") for row in reading.odd)
    assert [job.id for job in reading.trace.jobs] == [
        "zero", "long", "who", "half", "tpu", "dup", "late", "e1", "e2",
    ]  # fmt: skip
    assert not reading.in_order


@pytest.mark.parametrize("seed", range(20))
def test_case_36_the_same_rows_in_any_order_make_the_same_trace(tmp_path: Path, seed: int) -> None:
    lines = ODD.splitlines()
    want = read(tmp_path / "t.csv", f"{HEADER}\n{ODD}", KNOWN)
    Random(seed).shuffle(lines)
    found = read(tmp_path / "t.csv", "\n".join([HEADER, *lines]), KNOWN)
    assert found.trace == want.trace
    by_line = dict(enumerate(lines, start=2))
    assert {by_line[row.line] for row in found.odd} == {ODD.splitlines()[line - 2] for line in SAID} - {
        "dup,A,,71,60,1,,,"
    } | {by_line[row.line] for row in found.odd if row.kind is OddKind.DUPLICATE_ID}


@pytest.mark.parametrize("who", Scheduler)
def test_case_36_odd_rows_are_replayed_to_the_same_result_in_any_order(tmp_path: Path, who: Scheduler) -> None:
    where = cluster(nodes=1, groups={"A": 1, "B": 1})
    lines, seen = ODD.splitlines(), set()
    for seed in range(3):
        trace = read(tmp_path / "t.csv", "\n".join([HEADER, *lines]), KNOWN).trace
        seen.add(measure(replay(trace, where, Policy(time_limit_s=0.5), who)).to_json())
        Random(seed).shuffle(lines)
    (metrics,) = (json.loads(text) for text in seen)
    # an unknown group and an unknown type never run; what is longer than the period still does when it is over
    jobs = metrics["jobs"]
    assert (jobs["infeasible"], jobs["running"], jobs["completed"] + jobs["waiting"]) == (2, 1, 6)
    assert jobs["waiting"] == (5 if who is Scheduler.STATIC_QUOTA else 0)  # the long one has all of its group's quota


@pytest.mark.parametrize("layout", ["sacct", "swf", "helios", "alibaba"])
def test_shuffled_rows_of_every_text_layout_make_the_same_trace(tmp_path: Path, layout: str) -> None:
    text = {"sacct": SACCT, "swf": SWF, "helios": HELIOS, "alibaba": ALIBABA}[layout]
    top = 3 if layout == "swf" else 1
    head, rows = text.splitlines()[:top], text.splitlines()[top:]
    want = read(tmp_path / "t", text).trace
    for seed in range(5):
        Random(seed).shuffle(rows)
        assert read(tmp_path / "t", "\n".join([*head, *rows])).trace == want


@pytest.mark.parametrize("seed", range(60))
def test_spoiled_bytes_never_make_a_traceback(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    text = rng.choice([SACCT, SWF, HELIOS, ALIBABA, f"{HEADER}\n{ODD}"])
    for _ in range(rng.randint(1, 12)):
        at = rng.randrange(len(text))
        text = (
            text[:at]
            + rng.choice(['"', "\n", ",", "|", "\x00", "9" * 30, "-", "é", ""])
            + text[at + rng.randint(0, 3) :]
        )
    jobs = jobs_or_none(tmp_path / "t", text)
    assert all(job.gpus >= 1 and job.duration_s >= 0 and job.submit_s >= 0 for job in jobs)
    assert len({job.id for job in jobs}) == len(jobs)


def test_what_ran_before_the_period_seeds_the_window_and_its_rest_comes_at_once(tmp_path: Path) -> None:
    since = datetime(2026, 3, 1, 10, 35, tzinfo=UTC)
    options = ReadOptions(since=since, charge_rates={"h100": 2.0})
    trace = read(tmp_path / "t", SACCT, options).trace
    assert trace.t0 == since
    spans = [(span.group, span.start_s, span.end_s, span.charged_gpus) for span in trace.history]
    assert spans == [("language", -2_080, -1_480, 2.0), ("language", -2_070, 0, 1.0), ("vision", -1_800, 0, 16.0)]
    assert [(job.id, job.submit_s, job.duration_s) for job in trace.jobs] == [("10", 0, 1_800), ("13", 0, 1_930)]


def test_until_ends_the_period_without_calling_later_rows_odd(tmp_path: Path) -> None:
    text = f"{HEADER}\na,A,,0,10,1,,,\nb,A,,90000,10,1,,,\n"
    reading = read(tmp_path / "t.csv", text, ReadOptions(until=datetime(2001, 1, 2, tzinfo=UTC)))
    assert [job.id for job in reading.trace.jobs] == ["a"]
    assert reading.trace.end_s == 86_400
    assert reading.odd == ()
