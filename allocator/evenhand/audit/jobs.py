"""One job as rules S1 to S11 read it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from evenhand.audit.shape import Shapes, least, parts
from evenhand.audit.tree import Tree
from evenhand_models import Job, JobState, Node, Policy, ThroughputUnit

AGE_STEPS_S = (300, 1_800, 7_200, 28_800, 86_400, 259_200, 604_800)
"""Waits, in seconds, after which a job stands one step higher (O4)."""
MILLI = 1000
"""Thousandths in a whole."""


@dataclass(slots=True)
class JobReading:
    """What one job is to this round.

    Attributes
    ----------
    job : Job
        The job as it came in.
    group : str or None
        The group it is charged to (S4); None: an orphan, or pending in an unknown group.
    fits : tuple of str
        Types it fits, by name (S5).
    full : frozenset of str
        Types it fits at size `gpus` (S5).
    rates : mapping of str to int
        Throughput of one GPU by type it fits, thousandths, at least 1 (S6); 0 elsewhere.
    paces : tuple of (str, int)
        The same by type in order: what jobs that are alike have in common.
    top_rate : int
        The largest of these; 0 if it fits no type.
    parts : tuple of int
        What it is counted in: its least size, then stride by stride (G1).
    reach : tuple of str
        Types its demand is counted on: those it fits, else the one it runs on (D).
    demand : int
        `d_j`: size times the highest charge rate in reach, thousandths of a charged GPU.
    length_s : int
        `c_j` (S2).
    live, budgeted, hit, pinned, orphan, infeasible : bool
        Rules S8, S8, S9, S10, S4, S4 and S5.
    held : mapping of str to int
        GPUs it holds now by node; empty while pending.
    held_gpus : int
        Their sum.
    held_type : str or None
        Their type; None if it holds none, or only on nodes that are gone.
    started_at : datetime or None
        Its start, at most now (S1).
    lost_s : float
        Seconds of work a stop would lose: since the last start or usable checkpoint, at most c_j, or the longest
        contract where the job cannot resume (O5).
    age_step : int
        How many of AGE_STEPS_S it has waited since it was submitted (O4).
    level : float
        `lvl_j`, 0 to 1, among the live jobs of its kind (budgeted or not) in its group (O4, O7).
    """

    job: Job
    group: str | None
    fits: tuple[str, ...]
    full: frozenset[str]
    rates: Mapping[str, int]
    paces: tuple[tuple[str, int], ...]
    top_rate: int
    parts: tuple[int, ...]
    reach: tuple[str, ...]
    demand: int
    length_s: int
    live: bool
    budgeted: bool
    hit: bool
    pinned: bool
    orphan: bool
    infeasible: bool
    held: Mapping[str, int]
    held_gpus: int
    held_type: str | None
    started_at: datetime | None
    lost_s: float
    age_step: int
    level: float = 1.0

    @property
    def pending(self) -> bool:
        """Whether it waits."""
        return self.job.state is JobState.PENDING

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self.job.state is JobState.RUNNING

    @property
    def terminating(self) -> bool:
        """Whether it is on its way out (S11)."""
        return self.job.state is JobState.TERMINATING


def nearest(group: str, tree: Tree) -> str | None:
    """Return the group, or the nearest one its id names (``a/b/c``, ``a/b``, ``a``), or None (S4)."""
    at = group
    while at not in tree.parent:
        if "/" not in at:
            return None
        at = at.rpartition("/")[0]
    return at


@dataclass(frozen=True, slots=True)
class _Types:
    """What jobs that are alike share: where they can run and how fast, their parts and dearest charge (S5, S6, G1, D)."""

    fits: tuple[str, ...]
    full: frozenset[str]
    rates: Mapping[str, int]
    paces: tuple[tuple[str, int], ...]
    top_rate: int
    parts: tuple[int, ...]
    charge: int


@dataclass(slots=True)
class JobReader:
    """What reading a job needs to know: the state around it."""

    now: datetime
    policy: Policy
    tree: Tree
    nodes: Mapping[str, Node]
    healthy: frozenset[str]
    charge: Mapping[str, int]
    shapes: Shapes
    _types: dict[tuple[object, ...], _Types] = field(default_factory=dict)
    _steps: tuple[datetime, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Note the instants at which one more of AGE_STEPS_S has passed by now, ascending."""
        self._steps = tuple(self.now - timedelta(seconds=step) for step in reversed(AGE_STEPS_S))

    def read(self, job: Job) -> JobReading:
        """Read one job."""
        pending, running = job.state is JobState.PENDING, job.state is JobState.RUNNING
        known = job.group if job.group in self.tree.parent else None
        group = known if pending else nearest(job.group, self.tree)
        types = self._types_of(job)
        fits, reach, charge = types.fits, types.fits, types.charge
        held: dict[str, int] = {}
        held_type = None
        if job.placement:
            held = {part.node: part.gpus for part in job.placement}
            held_type = next((self.nodes[name].gpu_type for name in held if name in self.nodes), None)
        if not fits and held_type is not None:
            reach, charge = (held_type,), self.charge[held_type]
        infeasible = pending and (group is None or not fits)
        orphan = not pending and group is None
        live = (pending and not infeasible) or (running and not orphan)
        budgeted = live and job.contract.min_runtime_s > 0 and group is not None and self.tree.claim[group]
        hit = running and not self.healthy.issuperset(held)
        length = min(job.contract.min_runtime_s, self.policy.max_protection_s)
        started = None if job.started_at is None else min(job.started_at, self.now)
        pinned = running and not hit and (orphan or (budgeted and self._protects(started, length)))
        return JobReading(
            job=job,
            group=group,
            fits=fits,
            full=types.full,
            rates=types.rates,
            paces=types.paces,
            top_rate=types.top_rate,
            parts=types.parts,
            reach=reach,
            demand=job.gpus * charge,
            length_s=length,
            live=live,
            budgeted=budgeted,
            hit=hit,
            pinned=pinned,
            orphan=orphan,
            infeasible=infeasible,
            held=held,
            held_gpus=sum(held.values()) if held else 0,
            held_type=held_type,
            started_at=started,
            lost_s=0.0 if started is None else self._lost(job, started, length),
            age_step=len(self._steps) - bisect_left(self._steps, job.submitted_at),
        )

    def _protects(self, started: datetime | None, length: int) -> bool:
        """Say whether a contract of this length still runs (S10)."""
        return started is not None and self.now < started + timedelta(seconds=length)

    def _types_of(self, job: Job) -> _Types:
        """Return where a job can run and how fast, found once for jobs that are alike."""
        needs = tuple(job.requires.items()) if job.requires else ()
        shape = (job.gpus, job.min_gpus, job.worker_gpus, job.gpus_per_node, job.same)
        key = (tuple(job.speedup.items()), needs, shape)
        if key not in self._types:
            usable = self._usable(job, least(job))
            fits = tuple(sorted(usable))
            full = usable if job.min_gpus is None else self._usable(job, job.gpus)
            rates = self._rates(job, fits)
            charge = max((self.charge[kind] for kind in fits), default=0)
            paces = tuple(sorted(rates.items()))
            top = max(rates.values(), default=0)
            self._types[key] = _Types(fits, full, rates, paces, top, tuple(parts(job)), charge)
        return self._types[key]

    def _usable(self, job: Job, gpus: int) -> frozenset[str]:
        """Return the types a job fits at a size (S5)."""
        standing = self.shapes.fits(job, gpus)
        return frozenset(kind for kind, speed in job.speedup.items() if speed > 0 and kind in standing)

    def _rates(self, job: Job, fits: tuple[str, ...]) -> dict[str, int]:
        """Return the throughput of one GPU by type, in thousandths (S6)."""
        if not fits:
            return {}
        speeds = [job.speedup[kind] for kind in fits]
        base = max(speeds) if self.policy.throughput_unit is ThroughputUnit.BEST else min(speeds)
        return {
            kind: max(1, round(min(1_000_000, MILLI * speed / base))) for kind, speed in zip(fits, speeds, strict=True)
        }

    def _lost(self, job: Job, started: datetime, length: int) -> float:
        """Return the seconds of work that a stop loses (O5)."""
        last = started
        if job.contract.resumable and job.checkpointed_at is not None:
            last = max(started, min(job.checkpointed_at, self.now))
        most = length if job.contract.resumable else self.policy.max_protection_s
        return min((self.now - last).total_seconds(), float(most))
