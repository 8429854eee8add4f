"""The replays in the house: a few at a time, the next ones waiting, the last finished ones kept.

Each is a process of its own: taking one back ends it at once, and a process that dies takes only its replay with
it. Nothing is written: a service that ends forgets its replays.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import secrets
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from evenhand_api.rest.problems import Kind, Refusal
from evenhand_api.rest.replays.process import replay_in_background
from evenhand_models.replays import ReplayState, ReplayStatus

log = logging.getLogger(__name__)
OVER = {ReplayState.DONE, ReplayState.FAILED, ReplayState.CANCELLED}
POLL_S = 0.25


class Replay:
    """One replay and where it stands."""

    def __init__(self, number: str, body: bytes, runs: int) -> None:
        self.number = number
        self.body = body
        self.runs = runs
        self.state = ReplayState.WAITING
        self.share = 0.0
        self.finished = 0
        self.detail = ""
        self.outcome: bytes | None = None
        self.page: str | None = None
        self.process: BaseProcess | None = None
        self.changed = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in OVER

    def status(self) -> ReplayStatus:
        """How far it is."""
        return ReplayStatus(
            id=self.number,
            state=self.state,
            share=min(1.0, self.share),
            runs=self.runs,
            runs_finished=self.finished,
            detail=self.detail,
        )

    def become(self, state: ReplayState, detail: str = "") -> None:
        """Go to another state, unless it is over."""
        if not self.over:
            self.state, self.detail = state, detail
            self.tell()

    def tell(self) -> None:
        """Wake all that watch it."""
        self.changed.set()
        self.changed = asyncio.Event()


class House:
    """All replays of a service.

    Parameters
    ----------
    at_once, waiting, kept : replays that run at the same time, that may wait, and finished ones that are remembered.
    """

    def __init__(self, at_once: int, waiting: int, kept: int) -> None:
        self._at_once, self._waiting, self._kept = at_once, waiting, kept
        self._replays: dict[str, Replay] = {}

    def start(self) -> None:
        """Begin, after a close too."""
        self._replays = {}
        self._turn = asyncio.Semaphore(self._at_once)
        self._threads = ThreadPoolExecutor(self._at_once, thread_name_prefix="evenhand-replay")
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End all replays."""
        for replay in list(self._replays.values()):
            self._end(replay)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False)

    def check_room(self) -> None:
        """Refuse what there is no room for.

        Raises
        ------
        Refusal
            503 with Retry-After if as many replays wait already as may.
        """
        inside = sum(not replay.over for replay in self._replays.values())
        if inside >= self._at_once + self._waiting:
            raise Refusal(Kind.OVER_CAPACITY, f"{inside} replays run or wait; come back later.", {"Retry-After": "60"})

    def take(self, body: bytes, runs: int) -> Replay:
        """Take a checked replay in.

        Raises
        ------
        Refusal
            503 if there is no room.
        """
        self.check_room()
        replay = Replay(secrets.token_hex(8), body, runs)
        self._replays[replay.number] = replay
        task = asyncio.ensure_future(self._run(replay))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._forget()
        return replay

    def all(self) -> list[Replay]:
        """All replays, those asked last first."""
        return list(reversed(self._replays.values()))

    def find(self, number: str) -> Replay:
        """One replay.

        Raises
        ------
        Refusal
            404 if there is none of that id.
        """
        if number not in self._replays:
            raise Refusal(Kind.NOT_FOUND, f"There is no replay {number!r}; finished ones are forgotten after a while.")
        return self._replays[number]

    def cancel(self, replay: Replay) -> None:
        """Take a replay back; one that is over stays as it is."""
        replay.become(ReplayState.CANCELLED)
        self._end(replay)

    def _end(self, replay: Replay) -> None:
        if replay.process is not None and replay.process.is_alive():
            replay.process.kill()

    def _forget(self) -> None:
        """Keep the last finished ones only."""
        over = [number for number, replay in self._replays.items() if replay.over]
        for number in over[: max(0, len(over) - self._kept)]:
            del self._replays[number]

    async def _run(self, replay: Replay) -> None:
        async with self._turn:
            if replay.over:
                return
            context = multiprocessing.get_context("spawn")
            pipe, far_end = context.Pipe(duplex=False)
            process = context.Process(
                target=replay_in_background,
                args=(far_end, replay.body, replay.number),
                name="evenhand-replay",
                daemon=True,
            )
            replay.process = process
            replay.become(ReplayState.RUNNING)
            try:
                process.start()
                far_end.close()  # the process holds the only other end: if it dies, reading ends
                await self._listen(replay, pipe)
            finally:
                self._end(replay)
                replay.body = b""
                pipe.close()

    async def _listen(self, replay: Replay, pipe: Connection) -> None:
        loop = asyncio.get_running_loop()
        while not replay.over:
            try:
                message = await loop.run_in_executor(self._threads, _receive, pipe)
            except (EOFError, OSError):
                if replay.over:
                    return  # it was taken back
                log.error("the process of replay %s died", replay.number)
                replay.become(ReplayState.FAILED, "Its process died, for want of memory perhaps.")
                return
            match message:
                case ("progress", share, finished):
                    replay.share, replay.finished = float(share), int(finished)
                    replay.tell()
                case ("outcome", body, page):
                    replay.outcome, replay.page = body, page
                    replay.share, replay.finished = 1.0, replay.runs
                    replay.become(ReplayState.DONE)
                case ("failed", detail):
                    replay.become(ReplayState.FAILED, detail)


def _receive(pipe: Connection) -> tuple[Any, ...] | None:
    """The next message, or None if there is none for a while. Blocks a little."""
    if not pipe.poll(POLL_S):
        return None
    message: tuple[Any, ...] = pipe.recv()
    return message
