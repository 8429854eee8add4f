"""The rules of the replayed world, and the names of what may schedule it and of what ends a stay on GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Scheduler(StrEnum):
    """Who decides in a replay: the production engine, or a comparator in the same world."""

    EVENHAND = "evenhand"
    """The engine of `allocate`: full rounds, and an incremental path between them."""
    FIFO = "fifo"
    """First come first served; whoever does not fit blocks all behind."""
    FIRST_FIT = "first_fit"
    """In order of arrival, whoever fits starts."""
    BACKFILL = "backfill"
    """Priority with backfill: Slurm's Fair Tree order, the first that does not fit gets a reservation."""
    STATIC_QUOTA = "static_quota"
    """Every group owns its share of the GPUs and nothing more."""
    LEAST_ATTAINED = "least_attained"
    """Least attained service (Tiresias): who has had the fewest GPU-hours goes first, preempting."""
    GAVEL = "gavel"
    """Gavel's max-min fairness by rounds of fixed length, the GPUs rotating."""
    TIME_FAIR_SHARE = "time_fair_share"
    """Time-based fair share as in KAI: usage in the window moves the share, over-quota work is reclaimed."""


class NonResumable(StrEnum):
    """What becomes of a preempted job that cannot resume."""

    START_OVER = "start_over"
    """Its owner submits it again at once; all its work is to be done again."""
    GONE = "gone"
    """It is lost."""


class StayEnd(IntEnum):
    """Why a job left the GPUs it held."""

    COMPLETED = 0
    PREEMPTED = 1
    MIGRATED = 2
    NODE_LOST = 3
    REPLAY_ENDED = 4


class JobEnd(IntEnum):
    """How a job stands when the replay is over."""

    COMPLETED = 0
    RUNNING = 1
    WAITING = 2
    GONE = 3
    """Preempted and not resumable, under `NonResumable.GONE`."""
    INFEASIBLE = 4
    """Never fit the cluster, or its group was never in the tree."""


@dataclass(frozen=True, slots=True)
class WorldRules:
    """How the replayed cluster behaves.

    Attributes
    ----------
    checkpoint_interval_s : resumable jobs save their progress every so many seconds of running; 1 or more.
    checkpoints_reported : whether schedulers are told when a job saved last.
    restart_cost_s : run time lost by every start after the first (the recorded duration holds the first one's);
        None: the policy's `restart_cost_s`.
    non_resumable : what becomes of preempted jobs that cannot resume.
    full_round_s : at the latest so many seconds after the last one the engine solves a round in full; 0: every round.
    full_round_limit_s : work granted to a full round, as `time_limit_s`; a policy that grants less gets less.
    round_s : length of a round of schedulers that work by the clock (Gavel).
    """

    checkpoint_interval_s: int = 1_800
    checkpoints_reported: bool = True
    restart_cost_s: int | None = None
    non_resumable: NonResumable = NonResumable.START_OVER
    full_round_s: int = 900
    full_round_limit_s: float = 0.5
    round_s: int = 360
