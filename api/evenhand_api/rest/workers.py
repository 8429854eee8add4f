"""Rounds are solved in processes of their own: a few slots, a short queue, nothing shared.

A slot is one process and one pipe. A request takes a free slot or waits for one; where too many wait already
it is refused at once. A process that dies or overruns takes only its own request with it and is replaced. If
the service itself is killed its processes read the end of their pipes and leave.
"""

from __future__ import annotations

import asyncio
import logging
import math
import multiprocessing
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import TypeAlias

from evenhand_api.rest.problems import Answer, Kind, Refusal, problem
from evenhand_api.settings import Settings

log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[bytes, float], Answer]
"""What a process does: body and largest time limit in seconds to an answer. A module's top-level function."""
FIRST_ROUND_S = 300.0
"""Seconds a new process has for its first round, its imports included: a cold disk is no defect."""


class Workers:
    """A fixed number of processes that answer requests, each one request at a time."""

    def __init__(self, settings: Settings, work: Work, first: bytes) -> None:
        self._settings = settings
        self._work = work
        self._first = first
        self._free: asyncio.Queue[_Slot] = asyncio.Queue()
        self._threads = ThreadPoolExecutor(settings.max_concurrent + 1, thread_name_prefix="evenhand-pipe")
        self._slots: set[_Slot] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_house = 0
        self._recent_s = 1.0
        self._complaint = "No process has solved its first round yet."
        self._closed = False

    @property
    def in_house(self) -> int:
        """Requests that are solved or wait right now."""
        return self._in_house

    @property
    def complaint(self) -> str | None:
        """Why the service is not ready; None if it is."""
        return None if any(slot.ready for slot in self._slots) else self._complaint

    def start(self) -> None:
        """Start all processes, after a close too; each becomes free once it has solved its first round."""
        if self._closed:
            self._threads = ThreadPoolExecutor(self._settings.max_concurrent + 1, thread_name_prefix="evenhand-pipe")
            self._free, self._closed, self._in_house = asyncio.Queue(), False, 0
        for _ in range(self._settings.max_concurrent):
            self._add_slot()

    async def close(self) -> None:
        """End all processes, busy or not."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        for slot in list(self._slots):
            await asyncio.to_thread(slot.end)
        self._slots.clear()
        self._tasks.clear()
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
            503 with Retry-After if as many requests wait already as may.
        """
        if self._in_house >= self._settings.max_concurrent + self._settings.max_waiting:
            ahead = math.ceil(self._in_house / self._settings.max_concurrent)
            wait_s = max(1, math.ceil(self._recent_s * ahead))
            raise Refusal(
                Kind.OVER_CAPACITY,
                f"{self._in_house} requests are in the house; come back in {wait_s} s.",
                {"Retry-After": str(wait_s)},
            )
        self._in_house += 1
        # Shielded: if the client leaves, the slot must still be read out before its next request.
        return await asyncio.shield(asyncio.ensure_future(self._answer(body, work or self._work)))

    async def _answer(self, body: bytes, work: Work) -> Answer:
        try:
            slot = await self._free.get()
            began = time.monotonic()
            answer = await self._ask(slot, body, work, self._settings.give_up_after_s)
            if answer is None:
                log.error("a process died or overran with a request of %d bytes; it is replaced", len(body))
                self._drop(slot)
                return problem(Kind.INTERNAL, "The process that solved the request was lost. Others were not affected.")
            self._recent_s += 0.3 * (time.monotonic() - began - self._recent_s)
            self._free.put_nowait(slot)
            return answer
        finally:
            self._in_house -= 1

    async def _ask(self, slot: _Slot, body: bytes, work: Work, within_s: float) -> Answer | None:
        return await asyncio.get_running_loop().run_in_executor(self._threads, slot.ask, body, work, within_s)

    def _drop(self, slot: _Slot) -> None:
        slot.end()
        self._slots.discard(slot)
        if not self._closed:
            self._add_slot()

    def _add_slot(self) -> None:
        slot = _Slot(self._settings)
        self._slots.add(slot)
        task = asyncio.ensure_future(self._warm(slot))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _warm(self, slot: _Slot) -> None:
        """Let a new process import the solver and solve its first round, then hand it out."""
        answer = await self._ask(slot, self._first, self._work, FIRST_ROUND_S)
        if answer is not None and answer.status == 200:
            slot.ready = True
        else:
            said = "its process died" if answer is None else f"it was answered {answer.status}"
            self._complaint = f"The first round failed: {said}. The service's log has the details."
            log.error("the first round failed: %s", said)
        if answer is None:
            await asyncio.sleep(1.0)  # a process that cannot live must not make a storm of new ones
            self._drop(slot)
        else:
            self._free.put_nowait(slot)


class _Slot:
    """One process and the pipe to it."""

    def __init__(self, settings: Settings) -> None:
        context = multiprocessing.get_context("spawn")
        self.ready = False
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(
            target=_live, args=(far_end, settings.max_time_limit_s), name="evenhand-round", daemon=True
        )
        self._process.start()
        far_end.close()  # the process holds the only other end: if it dies, reading ends

    def ask(self, body: bytes, work: Work, within_s: float) -> Answer | None:
        """Send a body and what to do with it, and wait for the answer; None if the process died or took too long. Blocks."""
        try:
            self._pipe.send(work)
            self._pipe.send_bytes(body)
            if self._pipe.poll(within_s):
                answer: Answer = self._pipe.recv()
                return answer
        except (EOFError, OSError):
            pass
        return None

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join(5)  # whoever still reads the pipe now finds its end; it closes with the slot


def _live(pipe: Connection, max_time_limit_s: float) -> None:
    """Answer one request after the other until the pipe ends: the life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the service's to hear
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    while True:
        try:
            work: Work = pipe.recv()
            body = pipe.recv_bytes()
            pipe.send(work(body, max_time_limit_s))
        except (EOFError, OSError):
            return
