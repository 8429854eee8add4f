"""What a move is worth by itself, and what it adds to the sums that rules O bend: one row a move."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand_models import Job
from oracles.dues import Dues, sixteenths_held
from oracles.moves import Move
from oracles.reading import Reader

AGES_S = (300, 1_800, 7_200, 28_800, 86_400, 259_200, 604_800)
STAYS = ("resize", "keep")
Column = tuple[str, ...]
"""Name of a column: a goal, or a sum (`held`, group), (`thr`, leaf), (`has`, leaf, type) and so on."""


class Prices:
    """Prices single moves (the parts of O that are separable)."""

    def __init__(self, reader: Reader, dues: Dues) -> None:
        self.reader = reader
        self.dues = dues
        self.owed = dues.owed_gangs()
        self.limited = {group.id for group in reader.state.groups if group.max_gpus is not None}

    def row(self, job: Job, move: Move) -> dict[Column, float]:
        """Return what a move of a job adds, by column."""
        row: dict[Column, float] = {}
        for column, amount in self._entries(job, move):
            row[column] = row.get(column, 0.0) + amount
        return row

    def _entries(self, job: Job, move: Move) -> Iterator[tuple[Column, float]]:
        reader = self.reader
        if move.what == "orphan":
            return
        group = str(reader.group_of[job.id])
        if move.kind is not None and move.what != "reserve":
            for above in self.limited.intersection(reader.lineage(group)):
                yield ("limit", above), move.gpus
        if move.what in STAYS and self._ends_soon(job):
            yield ("ending", str(move.kind)), move.gpus
        if not reader.budgeted(job):
            factor = 1 / (64 * reader.all_gpus) if reader.all_gpus else 0.0
            value = self._order(job, move) + self._work(job, move) + self._change(job, move)
            yield ("unallocated_use",), factor * value
            return
        yield ("order",), self._order(job, move)
        yield ("work",), self._work(job, move)
        yield ("least_change",), self._change(job, move)
        yield from self._sums(job, move, group)

    def _sums(self, job: Job, move: Move, group: str) -> Iterator[tuple[Column, float]]:
        """What a budgeted job adds to the sums under O1, O2, O3, E1, O4's handover and O8."""
        reader = self.reader
        if move.kind is not None:
            for above in reader.lineage(group):
                yield ("held", above), sixteenths_held(move.gpus * reader.rate[move.kind])
            yield ("use", group), sixteenths_held(move.gpus * reader.speed[job.id][move.kind])
            yield ("thr", group), move.gpus * reader.speed[job.id][move.kind]
            if move.what == "reserve":
                yield ("reserved", move.kind), move.gpus
            else:
                yield ("has", group, move.kind), move.gpus
        elif job.id in self.owed:
            yield ("owed",), -self.dues.gang_weight(job) * job.gpus
        for _, high in reader.cuts(job):
            arrives = move.what == "start" or (reader.hit(job) and move.what in ("migrate", "repair"))
            if arrives and job.priority >= high:
                yield ("above", group, str(high)), move.gpus
            if move.what == "preempt" and job.priority < high and not reader.hit(job):
                yield ("below", group, str(high)), job.placed_gpus

    def _order(self, job: Job, move: Move) -> float:
        """O4, handover aside."""
        if move.kind is None or move.what == "reserve":
            return 0.0
        waited = self.reader.now - min(job.submitted_at.timestamp(), self.reader.now)
        step = sum(waited >= age for age in AGES_S)
        return move.gpus * (1 / 16 + self.reader.level(job) / 2 + step / 224)

    def _work(self, job: Job, move: Move) -> float:
        """O5."""
        reader, policy = self.reader, self.reader.policy
        value = 0.0
        if move.kind is not None and move.what != "reserve":
            rate = move.gpus * reader.speed[job.id][move.kind]
            if move.what in STAYS:
                value += rate * self._horizon(job)
            else:
                restart = min(1.0, policy.restart_cost_s / policy.lookahead_s)
                value += rate * min(self._horizon(job), 1 - restart)
        if move.what in ("preempt", "migrate") and not reader.hit(job):
            here = reader.kind_held(job)
            rate = job.placed_gpus * reader.speed[job.id][str(here)]
            last = reader.started(job)
            if job.contract.resumable and job.checkpointed_at is not None:
                last = max(last, min(job.checkpointed_at.timestamp(), reader.now))
            most = reader.protection_s(job) if job.contract.resumable else policy.max_protection_s
            value -= rate * min(reader.now - last, most) / policy.lookahead_s * policy.lost_work_weight
            if move.what == "preempt" and not job.contract.resumable:
                value -= rate
        return value

    def _horizon(self, job: Job) -> float:
        """Share h of the lookahead that a kept job will use."""
        if job.expected_end_at is None:
            return 1.0
        return min(1.0, max(0.0, job.expected_end_at.timestamp() - self.reader.now) / self.reader.policy.lookahead_s)

    def _change(self, job: Job, move: Move) -> float:
        """O6."""
        if move.what == "resize":
            return -move.changed / 256
        if move.what == "repair":
            return -move.changed / 16
        if self.reader.hit(job) and move.what in ("migrate", "preempt"):
            return -job.placed_gpus / 16  # a whole move replaces all it held, and to stop is no cheaper
        if move.what not in ("preempt", "migrate") or self.reader.hit(job):
            return 0.0
        stopped = 1 / 16 + ((1 - self.reader.level(job)) / 2 if move.what == "preempt" else 0.0)
        return -job.placed_gpus * stopped

    def _ends_soon(self, job: Job) -> bool:
        """O8: whether its GPUs come free by themselves within the restart cost."""
        reader = self.reader
        if job.expected_end_at is None or reader.started(job) >= reader.now:
            return False
        return reader.now < job.expected_end_at.timestamp() <= reader.now + reader.policy.restart_cost_s
