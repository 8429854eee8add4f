"""What a replay found out: what every job got, as arrays in the order of the trace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from evenhand.replay.rules import JobEnd, StayEnd, WorldRules
from evenhand.tree import Tree
from evenhand_models import Policy

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class JobTable:
    """One entry a job of the trace, in its order; times in whole seconds since the trace's start.

    Attributes
    ----------
    group : index of its group in the tree, -1 if unknown, int [J].
    size : GPUs of the gang, int [J].
    submit_s : when it came, int [J].
    work_s : seconds it needs, undisturbed, at a true speedup of 1, int [J].
    demand_milli : GPUs it wants times the highest charge rate it can use, in thousandths, int [J].
    speed_milli : true throughput of one GPU of each type, in thousandths; 0: cannot run there, int [J, T].
    budgeted : whether its use is charged, bool [J].
    kind : its class of work, empty if unknown, [J].
    first_start_s : -1 if it never started, int [J].
    end_s : when it completed or was gone, -1 if neither, int [J].
    waited_s : seconds it waited in all until it ended or the replay did, int [J].
    end : how it stands at the end, `JobEnd`, int [J].
    starts, preemptions, migrations, node_losses : how often, int [J].
    lost_gpu_s : GPU-seconds of work that were done and not kept, int [J].
    priced_gpu_s : of it, as rule O5 counts: at most one contract a stop, int [J].
    restart_gpu_s : GPU-seconds spent on starting again, int [J].
    done_s : of `work_s` done and kept; of who still runs, all so far, int [J].
    """

    ids: tuple[str, ...]
    group: IntArray
    size: IntArray
    submit_s: IntArray
    work_s: IntArray
    demand_milli: IntArray
    speed_milli: IntArray
    budgeted: BoolArray
    kind: tuple[str, ...]
    first_start_s: IntArray
    end_s: IntArray
    waited_s: IntArray
    end: IntArray
    starts: IntArray
    preemptions: IntArray
    migrations: IntArray
    node_losses: IntArray
    lost_gpu_s: IntArray
    priced_gpu_s: IntArray
    restart_gpu_s: IntArray
    done_s: IntArray


@dataclass(frozen=True, eq=False)
class StayTable:
    """One entry each time a job held GPUs: from when to when, how many, of which type, charged to whom.

    Attributes
    ----------
    job : index into the job table, int [S]; ordered by end, then job.
    start_s, end_s : half-open, int [S].
    gpus, gpu_type : how many of which type (index), int [S].
    group : index of the group that held them, -1 if unknown, int [S].
    charged : whether it was budgeted use, bool [S].
    end : why it ended, `StayEnd`, int [S].
    """

    job: IntArray
    start_s: IntArray
    end_s: IntArray
    gpus: IntArray
    gpu_type: IntArray
    group: IntArray
    charged: BoolArray
    end: IntArray


@dataclass(frozen=True, eq=False)
class Capacity:
    """GPUs that were there, by type: from `at_s[i]` until `at_s[i + 1]` (or the end) `gpus[i]`.

    Attributes
    ----------
    at_s : ascending, the first 0, int [K]; gpus : on nodes that take new work, int [K, T];
    rate_milli : charge of a GPU of each type in thousandths, int [T].
    """

    types: tuple[str, ...]
    at_s: IntArray
    gpus: IntArray
    rate_milli: IntArray


@dataclass(frozen=True)
class RoundCounts:
    """How often something was decided, and how."""

    events: int
    rounds: int
    full_rounds: int
    displacements: int
    decisions: int


@dataclass(frozen=True, eq=False)
class ReplayResult:
    """A whole replay: equal input and seed, equal result.

    Attributes
    ----------
    scheduler : name of who decided.
    end_s : when the replay ended, seconds since `t0`.
    tree : the organisation tree at the end; indices of groups point into it.
    """

    trace: str
    credit: str
    scheduler: str
    t0: datetime
    end_s: int
    seed: int
    policy: Policy
    rules: WorldRules
    tree: Tree
    capacity: Capacity
    jobs: JobTable
    stays: StayTable
    rounds: RoundCounts

    def summary(self) -> dict[str, int]:
        """Count jobs by how they stand at the end."""
        return {end.name.lower(): int((self.jobs.end == end).sum()) for end in JobEnd}

    def ended(self, why: StayEnd) -> int:
        """Number of stays that ended for a reason."""
        return int((self.stays.end == why).sum())
