"""How long jobs really take, what a stop costs them, and the record of it all. Schedulers never see this."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import IntEnum
from math import ceil

from evenhand.replay.facts import Truth
from evenhand.replay.rules import JobEnd, NonResumable, StayEnd
from evenhand.replay.world import Run, World


class Moment(IntEnum):
    """What a moment in the queue is about."""

    END = 0
    UNPROTECTED = 1
    MAINTENANCE = 2
    SAVED = 3


COUNTED = (
    "first_start_s", "end_s", "waited_s", "end", "starts", "preemptions", "migrations", "node_losses", "lost_gpu_s",
    "priced_gpu_s", "restart_gpu_s", "done_s",
)  # fmt: skip
"""What is kept of every job, by the names of `JobTable`."""


@dataclass(slots=True)
class Record:
    """What happened to the jobs so far, by job."""

    first_start_s: list[int]
    end_s: list[int]
    waited_s: list[int]
    end: list[int]
    starts: list[int]
    preemptions: list[int]
    migrations: list[int]
    node_losses: list[int]
    lost_gpu_s: list[int]
    priced_gpu_s: list[int]
    restart_gpu_s: list[int]
    done_s: list[int]

    @classmethod
    def blank(cls, jobs: int) -> Record:
        """Nothing has happened yet."""
        r = cls(*([0] * jobs for _ in COUNTED))
        r.first_start_s, r.end_s, r.end = [-1] * jobs, [-1] * jobs, [int(JobEnd.WAITING)] * jobs
        return r


class Clockwork:
    """Makes jobs end when they do: keeps true work and speeds, the queue of moments, and the record."""

    def __init__(
        self, world: World, truth: Truth, *, tell_unprotected: bool, tell_saved: bool, saves_at_stop: bool
    ) -> None:
        self._world, self._truth = world, truth
        self._whole_s = list(truth.left_s)
        self._tell, self._saves_at_stop = tell_unprotected, saves_at_stop
        self._tell_saved = tell_saved and world.rules.checkpoints_reported
        self.queue: list[tuple[int, int, int, int]] = []
        self._serial: dict[int, int] = {}
        self._next = 0
        self._waiting_since: dict[int, int] = {}
        self.record = Record.blank(len(world.facts.ids))
        self.stays: list[tuple[int, int, int, int, int, int, bool, int]] = []
        """Rows of `StayTable`."""

    def arrives(self, job: int) -> None:
        """A job is submitted, or found never to fit."""
        world = self._world
        if world.facts.shape[job] < 0:
            self.record.end[job] = int(JobEnd.INFEASIBLE)
            return
        self._world.wants(job, 1)
        self._waits(job)

    def _waits(self, job: int) -> None:
        self._waiting_since[job] = self._world.now_s
        self._world.lines.join(job)

    def due(self, entry: tuple[int, int, int, int]) -> bool:
        """Whether a moment of the queue is still about the run it was made for."""
        return entry[1] == Moment.MAINTENANCE or self._serial.get(entry[2]) == entry[3]

    def started(self, run: Run) -> None:
        """Note a start, and when it will be over."""
        r, job, now = self.record, run.job, self._world.now_s
        r.waited_s[job] += now - self._waiting_since.pop(job)
        if r.first_start_s[job] < 0:
            r.first_start_s[job] = now
        r.starts[job] += 1
        self._next += 1
        self._serial[job] = self._next
        speed = self._truth.speed[job][run.gpu_type]
        if speed > 0:
            takes = run.cost_s + ceil(self._truth.left_s[job] / speed - 1e-9)
            heapq.heappush(self.queue, (now + takes, int(Moment.END), job, self._next))
        if self._tell and run.protected_until_s > now:
            heapq.heappush(self.queue, (run.protected_until_s, int(Moment.UNPROTECTED), job, self._next))
        if self._tell_saved and self._world.facts.resumable[job]:
            self.saves_next(run)

    def saves_next(self, run: Run) -> None:
        """Note when a run saves its progress next; before the end of its contract nobody needs to know."""
        at_s = self._world.next_save_s(run, max(self._world.now_s + 1, run.protected_until_s))
        heapq.heappush(self.queue, (at_s, int(Moment.SAVED), run.job, self._serial[run.job]))

    def stopped(self, run: Run, why: StayEnd) -> None:
        """Note a stop: what it did, what of it is lost, whether it waits again."""
        r, job, now = self.record, run.job, self._world.now_s
        self._serial.pop(job, None)
        group = self._world.facts.group[job]
        self.stays.append((job, run.start_s, now, run.gpus, run.gpu_type, group, run.milli > 0, int(why)))
        ran = max(0, now - run.start_s - run.cost_s)
        r.restart_gpu_s[job] += run.gpus * (now - run.start_s - ran)
        if why is StayEnd.COMPLETED:
            r.end[job], r.end_s[job] = int(JobEnd.COMPLETED), now
            self._truth.left_s[job] = 0.0
            self._world.wants(job, -1)
            return
        if why is StayEnd.REPLAY_ENDED:
            r.end[job] = int(JobEnd.RUNNING)
            self._truth.left_s[job] -= ran * self._truth.speed[job][run.gpu_type]
            return
        self._interrupted(run, why, ran)

    def _interrupted(self, run: Run, why: StayEnd, ran: int) -> None:
        r, job, facts = self.record, run.job, self._world.facts
        counts = {StayEnd.MIGRATED: r.migrations, StayEnd.NODE_LOST: r.node_losses}.get(why, r.preemptions)
        counts[job] += 1
        resumable = facts.resumable[job]
        every = self._world.rules.checkpoint_interval_s
        saved = ran // every * every if resumable else 0
        if resumable and self._saves_at_stop and why is not StayEnd.NODE_LOST:
            saved = ran
        r.lost_gpu_s[job] += run.gpus * (ran - saved)
        r.priced_gpu_s[job] += run.gpus * min(ran - saved, facts.contract_s[job])
        self._truth.left_s[job] -= saved * self._truth.speed[job][run.gpu_type]
        if not resumable and why is StayEnd.PREEMPTED:
            if self._world.rules.non_resumable is NonResumable.GONE:
                r.end[job], r.end_s[job] = int(JobEnd.GONE), self._world.now_s
                self._world.wants(job, -1)
                return
            facts.submit_s[job] = self._world.now_s
        self._waits(job)

    def finish(self) -> None:
        """The replay is over: cut what runs, count what still waits."""
        now = self._world.now_s
        for job in sorted(self._world.runs):
            self._world.stop(job, StayEnd.REPLAY_ENDED)
        for job, since in sorted(self._waiting_since.items()):
            self.record.waited_s[job] += now - since
        self.record.done_s = [
            round(whole - left) for whole, left in zip(self._whole_s, self._truth.left_s, strict=True)
        ]
