"""One job as rules S1 to S11 read it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from evenhand.audit.shape import Shapes, least, parts
from evenhand.audit.tree import Tree
from evenhand_models import Job, JobState, Node, Policy, ThroughputUnit

AGE_STEPS_S = (300, 1_800, 7_200, 28_800, 86_400, 259_200, 604_800)
"""Waits, in seconds, after which a job stands one step higher (O4)."""
MOST_STEPS = len(AGE_STEPS_S)
MILLI = 1000
"""Thousandths in a whole."""
PENDING, RUNNING = JobState.PENDING, JobState.RUNNING  # to look an enum's member up for every job takes long
NOTHING: Mapping[str, int] = MappingProxyType({})
"""What jobs hold that wait."""


@dataclass(slots=True, eq=False)
class Kind:
    """What jobs that are alike have in common; one and the same object for them.

    Attributes
    ----------
    gpus : int
        Their size.
    fits : tuple of str
        Types they fit, by name (S5).
    full : frozenset of str
        Types they fit at size `gpus` (S5).
    rates : mapping of str to int
        Throughput of one GPU by type they fit, thousandths, at least 1 (S6); 0 elsewhere.
    paces : tuple of (str, int)
        The same by type in order.
    top_rate : int
        The largest of these; 0 if they fit no type.
    parts : tuple of int
        What they are counted in: their least size, then stride by stride (G1).
    reach : tuple of str
        Types their demand is counted on: those they fit, else the one they run on (D).
    demand : int
        `d_j`: size times the highest charge rate in reach, thousandths of a charged GPU.
    """

    gpus: int
    fits: tuple[str, ...]
    full: frozenset[str]
    rates: Mapping[str, int]
    paces: tuple[tuple[str, int], ...]
    top_rate: int
    parts: tuple[int, ...]
    reach: tuple[str, ...]
    demand: int


@dataclass(slots=True)
class JobReading:
    """What one job is to this round.

    Attributes
    ----------
    job : Job
        The job as it came in.
    kind : Kind
        What it has in common with jobs that are alike.
    gpus, priority : int
        Its own: looked up often.
    group : str or None
        The group it is charged to (S4); None: an orphan, or pending in an unknown group.
    fits, full, rates, demand
        As its kind has them.
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
    ends_at : datetime or None
        When the contract of that start ends (S10); None if it is not budgeted.
    lost_s : float
        Seconds of work a stop would lose: since the last start or usable checkpoint, at most c_j, or the longest
        contract where the job cannot resume (O5).
    age_step : int
        How many of AGE_STEPS_S it has waited since it was submitted (O4).
    pending, running, terminating : bool
        Whether it waits, runs, or is on its way out (S11).
    level : float
        `lvl_j`, 0 to 1, among the live jobs of its kind (budgeted or not) in its group (O4, O7).
    """

    job: Job
    kind: Kind
    gpus: int
    priority: int
    group: str | None
    fits: tuple[str, ...]
    full: frozenset[str]
    rates: Mapping[str, int]
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
    ends_at: datetime | None
    lost_s: float
    age_step: int
    pending: bool
    running: bool
    terminating: bool
    level: float = 1.0


def nearest(group: str, tree: Tree) -> str | None:
    """Return the group, or the nearest one its id names (``a/b/c``, ``a/b``, ``a``), or None (S4)."""
    at = group
    while at not in tree.parent:
        if "/" not in at:
            return None
        at = at.rpartition("/")[0]
    return at


class JobReader:
    """Reads jobs, by the state around them.

    Attributes
    ----------
    names : set of str
        Every id that jobs read so far name: users, nodes, types, labels, and groups that are not in the tree.
    """

    def __init__(
        self,
        now: datetime,
        policy: Policy,
        tree: Tree,
        nodes: Mapping[str, Node],
        healthy: frozenset[str],
        charge: Mapping[str, int],
        shapes: Shapes,
    ) -> None:
        """Note the instants at which one more of AGE_STEPS_S has passed by now, ascending."""
        self.now, self.tree, self.nodes, self.healthy = now, tree, nodes, healthy
        self.charge, self.shapes = charge, shapes
        self._longest_s, self._best = policy.max_protection_s, policy.throughput_unit is ThroughputUnit.BEST
        self.names: set[str] = set()
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._held_kinds: dict[tuple[Kind, str], Kind] = {}
        self._standing: dict[tuple[object, ...], tuple[frozenset[str], frozenset[str], tuple[int, ...]]] = {}
        self._sets: dict[tuple[tuple[str, ...], frozenset[str]], tuple[frozenset[str], int]] = {}
        self._steps = [now - timedelta(seconds=step) for step in reversed(AGE_STEPS_S)]

    def read(self, jobs: Iterable[Job]) -> dict[str, JobReading]:
        """Read jobs, by id in their order."""
        claims, kinds, steps, longest_s, names = self.tree.claim, self._kinds, self._steps, self._longest_s, self.names
        read = {}
        for job in jobs:
            speedup, requires, named, user, lasts = (
                job.speedup, job.requires, job.group, job.user, job.contract.min_runtime_s,
            )  # fmt: skip
            needs = tuple(requires.items()) if requires else ()
            shape = (job.gpus, job.min_gpus, job.worker_gpus, job.gpus_per_node, job.same, needs)
            key = (shape, *speedup, *speedup.values())
            kind = kinds.get(key)
            if kind is None:
                kind = kinds[key] = self._found(job, speedup, shape)
            age_step = MOST_STEPS - bisect_left(steps, job.submitted_at)
            length = lasts if lasts < longest_s else longest_s
            if user is not None:
                names.add(user)
            claim = claims.get(named)
            if claim is None:
                names.add(named)
            if job.state is not PENDING:
                read[job.id] = self._placed(job, kind, length, age_step)
                continue
            fits = kind.fits
            live = claim is not None and fits != ()
            read[job.id] = JobReading(
                job, kind, kind.gpus, job.priority, None if claim is None else named, fits, kind.full, kind.rates,
                kind.demand, length, live, live and lasts > 0 and claim is True, False, False, False, not live, NOTHING, 0,
                None, None, None, 0.0, age_step, True, False, False,
            )  # fmt: skip
        return read

    def _placed(self, job: Job, kind: Kind, length: int, age_step: int) -> JobReading:
        """Read one job that holds GPUs."""
        running, group = job.state is RUNNING, nearest(job.group, self.tree)
        held = {part.node: part.gpus for part in job.placement}
        self.names.update(held)
        held_type = next((self.nodes[name].gpu_type for name in held if name in self.nodes), None)
        if not kind.fits and held_type is not None:
            kind = self._kind_held(kind, held_type)
        live = running and group is not None
        budgeted = live and job.contract.min_runtime_s > 0 and group is not None and self.tree.claim[group]
        hit = running and not self.healthy.issuperset(held)
        started = None if job.started_at is None else min(job.started_at, self.now)
        ends = started + timedelta(seconds=length) if budgeted and started is not None else None
        pinned = running and not hit and (group is None or (ends is not None and self.now < ends))
        lost_s = 0.0 if started is None else self._lost(job, started, length)
        return JobReading(
            job, kind, kind.gpus, job.priority, group, kind.fits, kind.full, kind.rates, kind.demand, length, live,
            budgeted, hit, pinned, group is None, False, held, sum(held.values()), held_type, started, ends, lost_s,
            age_step, False, running, not running,
        )  # fmt: skip

    def _found(self, job: Job, speedup: Mapping[str, float], shape: tuple[object, ...]) -> Kind:
        """Find where a job can run and how fast (S5, S6, G1, D)."""
        self.names.update(speedup, job.requires, () if job.same is None else (job.same,))
        if (standing := self._standing.get(shape)) is None:
            at_least = self.shapes.fits(job, least(job))
            at_full = at_least if job.min_gpus is None else self.shapes.fits(job, job.gpus)
            standing = self._standing[shape] = at_least, at_full, parts(job)
        at_least, at_full, parted = standing
        fits = tuple(sorted([kind for kind, speed in speedup.items() if speed > 0 and kind in at_least]))
        if (sets := self._sets.get((fits, at_full))) is None:
            charge = max((self.charge[kind] for kind in fits), default=0)
            sets = self._sets[fits, at_full] = at_full.intersection(fits), charge
        rates = self._rates(speedup, fits)
        paces, top_rate = tuple(rates.items()), max(rates.values(), default=0)
        return Kind(job.gpus, fits, sets[0], rates, paces, top_rate, parted, fits, job.gpus * sets[1])

    def _kind_held(self, kind: Kind, held_type: str) -> Kind:
        """Return the kind of jobs that fit no type and yet run on one (D)."""
        key = (kind, held_type)
        if key not in self._held_kinds:
            demand = kind.gpus * self.charge[held_type]
            self._held_kinds[key] = replace(kind, reach=(held_type,), demand=demand)
        return self._held_kinds[key]

    def _rates(self, speedup: Mapping[str, float], fits: tuple[str, ...]) -> dict[str, int]:
        """Return the throughput of one GPU by type in order, in thousandths (S6)."""
        if not fits:
            return {}
        speeds = [speedup[kind] for kind in fits]
        base = max(speeds) if self._best else min(speeds)
        rates = {}
        for kind, speed in zip(fits, speeds, strict=True):
            pace = MILLI * speed / base
            rates[kind] = (round(pace) or 1) if pace < 1_000_000 else 1_000_000
        return rates

    def _lost(self, job: Job, started: datetime, length: int) -> float:
        """Return the seconds of work that a stop loses (O5)."""
        last = started
        if job.contract.resumable and job.checkpointed_at is not None:
            last = max(started, min(job.checkpointed_at, self.now))
        most = length if job.contract.resumable else self._longest_s
        return min((self.now - last).total_seconds(), float(most))
