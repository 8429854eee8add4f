"""Two public layouts of columns: SenseTime's Helios (SC'21) and Alibaba's 2023 GPU trace (ATC'23)."""

from __future__ import annotations

from evenhand_api.traces.fields import EPOCH, Row, clean, csv_rows, gang, named, number, read_each, stamp
from evenhand_api.traces.neutral import SOME_MONDAY
from evenhand_api.traces.rows import BadRow, OddKind, RawJob, RawTrace
from evenhand_models.traces import TraceEnd

HELIOS_NEEDS = ("job_id", "gpu_num", "state", "submit_time", "duration")
HELIOS_ENDS = {
    "COMPLETED": TraceEnd.COMPLETED,
    "FAILED": TraceEnd.FAILED,
    "TIMEOUT": TraceEnd.FAILED,
    "NODE_FAIL": TraceEnd.FAILED,
    "CANCELLED": TraceEnd.KILLED,
}
ALIBABA_NEEDS = ("name", "num_gpu", "gpu_milli", "creation_time", "deletion_time")
ALIBABA_ENDS = {"Succeeded": TraceEnd.COMPLETED, "Failed": TraceEnd.FAILED, "Running": TraceEnd.RUNNING}


def parse_helios(text: str) -> RawTrace:
    """Read ``cluster_log.csv``: groups are virtual clusters, times are read as UTC."""
    rows, odd = csv_rows(text, HELIOS_NEEDS)
    return RawTrace(read_each(rows, _helios, odd), odd, EPOCH)


def _helios(line: int, row: Row) -> RawJob:
    start = row.get("start_time", "").strip()
    return RawJob(
        line=line,
        id=named(row, "job_id"),
        groups={"vc": clean(row.get("vc", "").strip(), "vc")},
        submit=stamp(row["submit_time"], "submit_time"),
        duration_s=number(row, "duration"),
        gpus=gang(row, "gpu_num"),
        start=stamp(start, "start_time") if start and start != "None" else None,
        user=row.get("user", "").strip() or None,
        state=HELIOS_ENDS.get(row["state"].strip(), TraceEnd.UNKNOWN),
    )


def parse_alibaba(text: str) -> RawTrace:
    """Read ``openb_pod_list_*.csv``: a pod is a job, groups are QoS classes, shared GPUs are fractions."""
    rows, odd = csv_rows(text, ALIBABA_NEEDS)
    return RawTrace(read_each(rows, _alibaba, odd), odd, SOME_MONDAY)


def _alibaba(line: int, row: Row) -> RawJob:
    pod, gpus = named(row, "name"), gang(row, "num_gpu")
    if gpus == 1:
        gpus = number(row, "gpu_milli") / 1000
        if not gpus:
            raise BadRow(OddKind.NO_GPUS, f"Pod {pod} has no part of a GPU.")
    scheduled = row.get("scheduled_time", "").strip()
    if not scheduled:
        raise BadRow(OddKind.NEVER_STARTED, f"Pod {pod} never started.")
    start, end = number(row, "scheduled_time"), number(row, "deletion_time")
    if end < start:
        raise BadRow(OddKind.UNREADABLE, f"Pod {pod} was deleted at {end:g}, before it was scheduled at {start:g}.")
    return RawJob(
        line=line,
        id=pod,
        groups={"qos": clean(row.get("qos", "").strip(), "qos")},
        submit=number(row, "creation_time"),
        duration_s=end - start,
        gpus=gpus,
        start=start,
        gpu_types=tuple(sorted({part.strip() for part in row.get("gpu_spec", "").split("|") if part.strip()})),
        state=ALIBABA_ENDS.get(row.get("pod_phase", "").strip(), TraceEnd.UNKNOWN),
    )
