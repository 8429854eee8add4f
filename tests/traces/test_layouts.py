"""Every layout is told by its beginning and read into the same words."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from traces.sources import ALIBABA, HELIOS, NEUTRAL, PHILLY, SACCT, SWF, sacct_json

from evenhand_api.traces import Format, OddKind, Reading, ReadOptions, read_trace
from evenhand_api.traces.formats import format_of
from evenhand_api.traces.neutral import write_neutral
from evenhand_models import InvalidInput
from evenhand_models.traces import TraceEnd

LAYOUTS = {
    Format.CSV: NEUTRAL,
    Format.SACCT: SACCT,
    Format.SACCT_JSON: sacct_json(wrapped=True),
    Format.SWF: SWF,
    Format.PHILLY: PHILLY,
    Format.HELIOS: HELIOS,
    Format.ALIBABA: ALIBABA,
}


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str, **options) -> Reading:
        path = tmp_path / "some.txt"
        path.write_text(text)
        return read_trace(str(path), ReadOptions(**options))

    return read


def kinds(reading: Reading) -> list[tuple[int, OddKind]]:
    return [(row.line, row.kind) for row in reading.odd]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_told_by_its_beginning(layout: Format) -> None:
    assert format_of(LAYOUTS[layout]) is layout


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_job_of_8_gpus_that_ran_an_hour_is_read_from_every_layout(layout: Format, read) -> None:
    found = [job for job in read(LAYOUTS[layout]).trace.jobs if job.gpus == 8]
    assert [(job.duration_s, job.state) for job in found] == [(3_600, TraceEnd.COMPLETED)]


def test_neutral_csv_keeps_what_a_row_says_and_takes_defaults_for_the_rest(read) -> None:
    b, a = read(NEUTRAL, min_runtime_s=600).trace.jobs
    assert (a.id, a.group, a.user, a.submit_s) == ("a", "vision", "ann", 60)
    assert (a.gpu_types, a.model, a.kind) == (("a100", "h100"), "resnet", "train")
    assert (a.min_runtime_s, a.resumable) == (1_800, False)
    assert (b.min_runtime_s, b.resumable, b.user, b.gpu_types, b.state) == (600, True, None, (), TraceEnd.UNKNOWN)


def test_neutral_csv_carries_speedups_shapes_and_recorded_starts_there_and_back(read) -> None:
    text = (
        "job_id,group,submit_s,duration_s,gpus,speedup,true_speedup,gpus_per_node,priority,started_s\n"
        "x,g,0,10,8,h100:2|a100:1,h100:1.5|a100:1,4,3,-5\n"
    )
    first = read(text).trace.jobs[0]
    assert first.speedup == {"a100": 1.0, "h100": 2.0}
    assert first.true_speedup == {"a100": 1.0, "h100": 1.5}
    assert (first.gpus_per_node, first.priority, first.started_s) == (4, 3, -5)
    assert read(write_neutral(read(text).trace)).trace.jobs == (first,)


def test_sacct_counts_gpus_once_leaves_steps_out_and_says_what_never_started(read) -> None:
    reading = read(SACCT)
    jobs = {job.id: job for job in reading.trace.jobs}
    assert sorted(jobs) == ["10", "12_3", "13"]
    assert (jobs["10"].gpus, jobs["10"].gpu_types, jobs["10"].started_s) == (8, ("h100",), 300)
    assert (jobs["12_3"].group, jobs["12_3"].state) == ("language", TraceEnd.KILLED)
    assert kinds(reading) == [
        (4, OddKind.NO_GPUS), (6, OddKind.NEVER_STARTED), (7, OddKind.STILL_RUNNING),
    ]  # fmt: skip
    assert reading.rows == 5
    assert reading.trace.t0 == datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def test_sacct_of_steps_alone_counts_each_job_once(read) -> None:
    rows = SACCT.splitlines()
    steps = [rows[0], rows[2].replace("10.batch", "10.extern"), rows[2]]
    jobs = read("\n".join(steps)).trace.jobs
    assert [(job.id, job.gpus, job.duration_s) for job in jobs] == [("10", 8, 3_600)]


def test_sacct_with_another_delimiter_or_without_a_header(read) -> None:
    want = read(SACCT).trace.jobs
    rows = [row.replace("h100|a100", "h100") for row in SACCT.splitlines()]
    assert read("\n".join(row.replace("|", "|#") for row in rows)).trace.jobs == want
    headless = "\n".join(rows[1:])
    with pytest.raises(InvalidInput, match="no header"):
        read(headless)
    assert read(headless, columns=tuple(rows[0].split("|"))).trace.jobs == want


@pytest.mark.parametrize("column", ["account", "partition", "user"])
def test_sacct_groups_by_the_column_asked_for(column: str, read) -> None:
    found = {job.id: job.group for job in read(SACCT, group_by=column).trace.jobs}
    assert found["10"] == {"account": "vision", "partition": "gpu", "user": "ann"}[column]


def test_grouping_by_what_is_not_there_is_refused_naming_what_is(read) -> None:
    with pytest.raises(InvalidInput, match="account, partition"):
        read(SACCT, group_by="vc")


@pytest.mark.parametrize("text", ["1-00:00:10", "86410", "24:00:10"])
def test_elapsed_times_of_all_forms_are_read(text: str, read) -> None:
    row = f"1|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:00:00|{text}|gres/gpu=1"
    assert read(f"JobID|State|Submit|Start|Elapsed|AllocTRES\n{row}\n").trace.jobs[0].duration_s == 86_410


@pytest.mark.parametrize("wrapped", [True, False])
def test_sacct_json_is_read_with_plain_and_with_wrapped_numbers(wrapped: bool, read) -> None:
    reading = read(sacct_json(wrapped))
    one, task = reading.trace.jobs
    assert (one.id, one.gpus, one.gpu_types, one.group, one.started_s) == ("1", 8, ("h100",), "vision", 60)
    assert (task.id, task.gpus, task.state) == ("77_5", 4, TraceEnd.FAILED)
    assert kinds(reading) == [(3, OddKind.NEVER_STARTED)]


def test_swf_reads_processors_as_gpus_and_queues_by_name(read) -> None:
    reading = read(SWF)
    one, two = reading.trace.jobs
    assert (one.gpus, one.group, one.user, one.started_s) == (8, "long", "user5", 10)
    assert (two.gpus, two.group, two.state, two.started_s) == (2, "everyone", TraceEnd.FAILED, None)
    assert reading.trace.t0 == datetime.fromtimestamp(1_000_000_000, UTC)
    assert kinds(reading) == [(6, OddKind.NEVER_STARTED)]
    assert read(SWF, group_by="group").trace.jobs[0].group == "group2"


def test_philly_sums_attempts_and_takes_the_largest_gang(read) -> None:
    reading = read(PHILLY)
    job = reading.trace.jobs[0]
    assert (job.id, job.group, job.gpus, job.duration_s, job.started_s) == ("application_1", "vc1", 8, 3_600, 3_600)
    assert kinds(reading) == [(2, OddKind.NEVER_STARTED)]


def test_helios_leaves_out_cpu_jobs(read) -> None:
    reading = read(HELIOS)
    assert [(job.id, job.group, job.started_s) for job in reading.trace.jobs] == [("h1", "vcA", 10), ("h3", "vcB", 12)]
    assert kinds(reading) == [(3, OddKind.NO_GPUS)]


def test_alibaba_rounds_shared_gpus_up_and_says_so(read) -> None:
    reading = read(ALIBABA)
    shared, whole = reading.trace.jobs
    assert (shared.id, shared.gpus, shared.submit_s) == ("pod-2", 1, 0)
    assert (whole.gpu_types, whole.group) == (("GPU9", "TPU9"), "LS")
    assert kinds(reading) == [(3, OddKind.FRACTION), (4, OddKind.NEVER_STARTED), (5, OddKind.NO_GPUS)]


def test_gzip_is_unpacked_and_a_description_beside_the_file_dates_it(tmp_path: Path) -> None:
    path = tmp_path / "made.csv.gz"
    path.write_bytes(gzip.compress(NEUTRAL.encode()))
    assert read_trace(str(path)).trace.t0.year == 2001
    period = {"t0": "2020-04-01T00:00:00", "end": "2020-04-02T00:00:00"}
    said = {"period": period, "attribution": "somebody", "licence": "CC-BY-4.0"}
    (tmp_path / "made.json").write_text(json.dumps(said))
    trace = read_trace(str(path)).trace
    assert (trace.name, trace.t0, trace.end_s) == ("made", datetime(2020, 4, 1, tzinfo=UTC), 86_400)
    assert trace.credit == "somebody. CC-BY-4.0"


def test_bytes_that_are_no_text_do_not_stop_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(NEUTRAL.encode() + b"\xff\xfe,vision,,5,10,1,,,,,,\n")
    assert len(read_trace(str(path)).trace.jobs) == 3


@pytest.mark.parametrize(
    "text", ["", "hello\n", "{", "[1,", '{"jobs": 3}', "job_id,submit_s\n1,2\n", "JobID|State\n1|X\n"]
)
def test_what_is_no_trace_is_refused_in_a_line(text: str, read) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text)
    assert "some.txt#" in str(refused.value)


def test_an_empty_file_beside_a_trace_is_what_a_shell_opened_for_a_command_and_describes_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job_id,group,submit_s,duration_s,gpus\na,A,0,60,1\n")
    plain = read_trace(str(path)).trace
    (tmp_path / "t.json").write_text("")
    assert read_trace(str(path)).trace == plain
