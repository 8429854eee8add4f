"""A gang of the whole cluster beside a stream of single GPUs: case 6, as far as contracts alone carry it.

There is no calendar yet: GPUs that get free by themselves are not held for the gang. What is shown is the bound that
contracts give where nobody takes such GPUs with a contract of his own; docs/replay-world.md says what happens else.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from evenhand import ClusterState, Policy
from evenhand.replay import Scheduler
from evenhand.whatif import what_if_start
from evenhand_models import Job, Usage
from evenhand_models.traces import Trace, UsageSpan
from replay.build import HOUR, T0, cluster, job, run, starts, trace

MINUTE = 60
LAST_S = HOUR
"""When the last contract ends."""


def contract_s(i: int) -> int:
    """32 contracts that end between 5 and 60 minutes after the beginning."""
    return 5 * MINUTE + i * 55 * MINUTE // 31


def crowded(*, stay: bool, stream: tuple[str, int, int] | None) -> Trace:
    """32 jobs of B, who had everything for days; a minute later A's gang of 32; then a single GPU every minute.

    Parameters
    ----------
    stay : whether B's jobs run on after their contracts; else they end with them.
    stream : group, contract and run time in seconds of the jobs that come every minute.
    """
    ones = [
        job(f"b{i:02}", "B", 1, 0, 99 * HOUR if stay else contract_s(i), min_runtime_s=contract_s(i)) for i in range(32)
    ]
    gang = job("g", "A", 32, MINUTE, 2 * HOUR, min_runtime_s=HOUR)
    more = []
    if stream is not None:
        group, contract, length = stream
        more = [job(f"s{k:03}", group, 1, (k + 1) * MINUTE + 1, length, min_runtime_s=contract) for k in range(150)]
    return trace(*ones, gang, *more, end_s=4 * HOUR, history=(UsageSpan("B", -100 * HOUR, 0, 32.0),))


@pytest.mark.parametrize(
    ("stay", "stream"),
    [
        (True, None),
        (True, ("B", HOUR, 99 * HOUR)),
        (True, ("B", 10 * MINUTE, 10 * MINUTE)),
        (True, ("A", 0, 99 * HOUR)),
        (False, None),
        (False, ("B", 0, 99 * HOUR)),
        (False, ("A", 0, 99 * HOUR)),
    ],
)
def test_case_06_the_gang_starts_when_the_last_contract_ends_with_or_without_the_stream(
    stay: bool, stream: tuple[str, int, int] | None
) -> None:
    result = run(crowded(stay=stay, stream=stream), cluster(4, groups={"A": 1, "B": 1}), Scheduler.EVENHAND)
    assert starts(result)["g"] == LAST_S
    assert result.jobs.waited_s[result.jobs.ids.index("g")] == LAST_S - MINUTE


def test_case_06_unallocated_work_fills_in_until_then() -> None:
    result = run(
        crowded(stay=False, stream=("A", 0, 99 * HOUR)), cluster(4, groups={"A": 1, "B": 1}), Scheduler.EVENHAND
    )
    filled = [at for name, at in starts(result).items() if name.startswith("s") and 0 <= at < LAST_S]
    assert len(filled) > 20


def test_case_06_the_latest_start_that_contracts_give_is_stated() -> None:
    on: ClusterState = cluster(4, groups={"A": 1, "B": 1})
    held = [
        Job.model_validate(
            {
                "id": f"b{i:02}", "group": "B", "gpus": 1, "speedup": {"h100": 1.0}, "submitted_at": T0, "state": "running",
                "started_at": T0, "placement": [{"node": on.nodes[i // 8].name, "gpus": 1}],
                "contract": {"min_runtime_s": contract_s(i), "resumable": True},
            }
        )
        for i in range(32)
    ]  # fmt: skip
    gang = Job.model_validate(
        {
            "id": "g", "group": "A", "gpus": 32, "speedup": {"h100": 1.0}, "submitted_at": T0 + timedelta(minutes=1),
            "contract": {"min_runtime_s": HOUR, "resumable": True},
        }
    )  # fmt: skip
    now = T0 + timedelta(minutes=1)
    used = (Usage(group="B", charged_gpu_hours=3_200.0),)
    state = on.model_copy(update={"now": now, "jobs": tuple(held), "usage": used})
    (answer,) = what_if_start(state, [gang], Policy(time_limit_s=0.5)).jobs
    assert answer.action == "wait"
    assert answer.basis == "contracts"
    assert answer.earliest_start_at == answer.latest_start_at == T0 + timedelta(seconds=LAST_S)
    assert len(answer.would_go) == 32
