"""Rounds are solved in processes of their own: a few slots, a short queue, nothing shared.

A request takes a free slot or waits for one; where too many wait already it is refused at once. A process that dies
or overruns takes only its own request with it and is replaced, and so is one that holds too much memory. Once the
service is told to stop, what waits is refused, and what is in hand is finished or, if that takes too long, given back.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from evenhand_api.logs import FACTS, request_id
from evenhand_api.metrics import Figures, Metrics
from evenhand_api.rest.problems import Answer, Kind, Refusal, problem
from evenhand_api.rest.slots import Slot, Task, Work
from evenhand_api.settings import Settings

__all__ = ["Work", "Workers"]

log = logging.getLogger(__name__)
T = TypeVar("T")

FIRST_ROUND_S = 300.0
"""Seconds a new process has for its first round, its imports included: a cold disk is no defect."""


class Workers:
    """A fixed number of processes that answer requests, each one request at a time."""

    def __init__(self, settings: Settings, work: Work, first: bytes, metrics: Metrics | None = None) -> None:
        self._settings = settings
        self._work = work
        self._first = first
        self._metrics = metrics or Metrics()
        self._metrics.watch(self._gauges)
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_house = 0
        self._in_hand = 0
        self._recent_s = 1.0
        self._complaint = "No process has solved its first round yet."
        self._anew()

    @property
    def in_house(self) -> int:
        """Requests that are solved or wait right now."""
        return self._in_house

    @property
    def complaint(self) -> str | None:
        """Why no round can be solved; None if one can."""
        if self._stopping.is_set():
            return "The service is stopping."
        return None if self._ready_slots() else self._complaint

    def start(self) -> None:
        """Start all processes, once more if they were ended; each becomes free once it has solved its first round."""
        if self._closed:
            self._anew()
        for _ in range(self._settings.max_concurrent):
            self._add_slot()

    def _anew(self) -> None:
        """Have no processes yet, and no wish to stop."""
        self._free: asyncio.Queue[Slot] = asyncio.Queue()
        self._threads = ThreadPoolExecutor(self._settings.max_concurrent + 1, thread_name_prefix="evenhand-pipe")
        self._slots: set[Slot] = set()
        self._stopping = asyncio.Event()
        self._given_up = asyncio.Event()
        self._closed = False

    def drain(self) -> None:
        """Refuse what waits and what comes; give back what is still in hand after `stop_within_s`."""
        self._stopping.set()
        asyncio.get_running_loop().call_later(self._settings.stop_within_s, self._given_up.set)

    async def close(self) -> None:
        """End all processes, busy or not."""
        self._closed = True
        self._stopping.set()
        self._given_up.set()
        for task in self._tasks:
            task.cancel()
        for slot in list(self._slots):
            await asyncio.to_thread(slot.end)
        self._threads.shutdown(wait=False)

    async def answer(self, body: bytes, work: Work | None = None) -> Answer:
        """Solve a request in the next free process.

        Parameters
        ----------
        body : bytes
            The request's body.
        work : callable, optional
            What to do with it, a module's top-level function; left out: what the processes do by default.

        Raises
        ------
        Refusal
            503 with Retry-After if as many requests wait already as may, or the service stops.
        """
        if self._stopping.is_set():
            raise _stopping()
        if self._in_house >= self._settings.max_concurrent + self._settings.max_waiting:
            self._metrics.refused()
            raise self._over_capacity()
        self._in_house += 1
        # Shielded: if the client leaves, the slot must still be read out before its next request.
        task = Task(work or self._work, body, request_id.get())
        return await asyncio.shield(asyncio.ensure_future(self._answer(task)))

    async def _answer(self, task: Task) -> Answer:
        try:
            slot = await self._unless(self._stopping, self._free.get())
        except BaseException:
            self._in_house -= 1
            raise
        began = time.monotonic()
        self._in_hand += 1
        try:
            asked = self._ask(slot, task, self._settings.give_up_after_s)
            answer = await self._unless(self._given_up, asked)
        finally:
            self._in_house -= 1
            self._in_hand -= 1
        if answer is None:
            facts = {"request_id": task.request_id, "bytes": len(task.body)}
            log.error("a process died or overran; it is replaced", extra={FACTS: facts})
            self._metrics.process_lost()
            self._replace(slot)
            return problem(Kind.INTERNAL, "The process that solved the request was lost. Others were not affected.")
        took = time.monotonic() - began
        self._recent_s += 0.3 * (took - self._recent_s)
        if answer.figures is not None:
            self._metrics.round(answer.figures, took)
            _tell(answer.figures, took, task.request_id)
        self._give_back(slot)
        return answer

    async def _unless(self, event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something unless an event comes first.

        Raises
        ------
        Refusal
            503 if the event came first.
        """
        working = asyncio.ensure_future(work)
        waiting = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise _stopping()
        finally:
            waiting.cancel()
            working.cancel()

    async def _ask(self, slot: Slot, task: Task, within_s: float) -> Answer | None:
        return await asyncio.get_running_loop().run_in_executor(self._threads, slot.ask, task, within_s)

    def _give_back(self, slot: Slot) -> None:
        """Make a slot free again, or replace it if it holds more than half of the memory it may have."""
        held, most = slot.resident_mb(), self._settings.worker_memory_mb
        if 0 < most < 2 * held:
            log.info("a process holds %.0f MB of the %.0f it may have; it is replaced", held, most)
            self._metrics.process_renewed()
            self._replace(slot)
        else:
            self._free.put_nowait(slot)

    def _replace(self, slot: Slot) -> None:
        if not self._closed:  # else whoever closed ends them all
            self._slots.discard(slot)
            self._threads.submit(slot.end)
            self._add_slot()

    def _add_slot(self) -> None:
        slot = Slot(self._settings)
        self._slots.add(slot)
        task = asyncio.ensure_future(self._warm(slot))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _warm(self, slot: Slot) -> None:
        """Let a new process import the solver and solve its first round, then hand it out."""
        answer = await self._ask(slot, Task(self._work, self._first, ""), FIRST_ROUND_S)
        if answer is not None and answer.status == 200:
            slot.ready = True
        else:
            said = "its process died" if answer is None else f"it was answered {answer.status}"
            self._complaint = f"The first round failed: {said}. The service's log has the details."
            log.error("the first round failed: %s", said)
        if answer is None:
            await asyncio.sleep(1.0)  # a process that cannot live must not make a storm of new ones
            self._replace(slot)
        else:
            self._free.put_nowait(slot)

    def _over_capacity(self) -> Refusal:
        ahead = math.ceil(self._in_house / self._settings.max_concurrent)
        wait_s = max(1, math.ceil(self._recent_s * ahead))
        said = f"{self._in_house} requests are in the house; come back in {wait_s} s."
        return Refusal(Kind.OVER_CAPACITY, said, {"Retry-After": str(wait_s)})

    def _ready_slots(self) -> list[Slot]:
        return [slot for slot in self._slots if slot.ready and slot.alive]

    def _gauges(self) -> Iterable[tuple[str, str, float]]:
        yield "processes_ready", "Processes that have solved a round and live.", len(self._ready_slots())
        yield "rounds_in_hand", "Requests being solved now.", self._in_hand
        yield "rounds_waiting", "Requests waiting for a free process now.", self._in_house - self._in_hand
        held = sum(slot.resident_mb() for slot in list(self._slots))
        yield "processes_resident_bytes", "Resident memory of all processes that solve rounds.", held * 1e6


def _stopping() -> Refusal:
    return Refusal(Kind.STOPPING, "The service is stopping; nothing was decided.", {"Retry-After": "5"})


def _tell(figures: Figures, took_s: float, request: str) -> None:
    facts: dict[str, Any] = {"request_id": request, "cluster": figures.cluster or None, "round": figures.round}
    facts |= {"status": figures.status, "gap": figures.gap, "ms": round(1_000 * took_s), "again": figures.again or None}
    facts |= {"state_hash": figures.state_hash, "plan_hash": figures.plan_hash, **figures.actions}
    log.info("round decided", extra={FACTS: {name: value for name, value in facts.items() if value is not None}})
    if figures.audit_failed:
        log.error("a plan failed its audit, the fallback was served: a defect", extra={FACTS: facts})
