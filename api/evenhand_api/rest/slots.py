"""One process and the pipe to it. If the service itself is killed, its processes read the end of their pipes and leave."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeAlias

from evenhand_api.logs import request_id, write_log
from evenhand_api.rest.limits import Limits, enforce, resident_mb
from evenhand_api.rest.problems import Answer
from evenhand_api.settings import Settings

Work: TypeAlias = Callable[[bytes, float], Answer]
"""What a process does: body and largest time limit in seconds to an answer. A module's top-level function."""
BEHIND = 5
"""How far processes that solve stand behind the service's own (nice): reads are answered while all cores solve."""


@dataclass(frozen=True, slots=True)
class Task:
    """One request for a process: what to do, with which body, for which request."""

    work: Work
    body: bytes
    request_id: str


class Slot:
    """One process and the pipe to it."""

    def __init__(self, settings: Settings) -> None:
        context = multiprocessing.get_context("spawn")
        self.ready = False
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_live, args=(far_end, settings), name="evenhand-round", daemon=True)
        self._process.start()
        far_end.close()  # the process holds the only other end: if it dies, reading ends

    @property
    def alive(self) -> bool:
        """Whether the process lives."""
        return self._process.is_alive()

    def ask(self, task: Task, within_s: float) -> Answer | None:
        """Send a request and wait for the answer; None if the process died or took too long. Blocks."""
        try:
            self._pipe.send((task.work, task.request_id))
            self._pipe.send_bytes(task.body)
            if self._pipe.poll(within_s):
                answer: Answer = self._pipe.recv()
                return answer
        except (EOFError, OSError):
            pass
        return None

    def resident_mb(self) -> float:
        """Resident memory of the process in MB."""
        return resident_mb(self._process.pid or 0)

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join(5)  # whoever still reads the pipe now finds its end; it closes with the slot


def _live(pipe: Connection, settings: Settings) -> None:
    """Answer one request after the other until the pipe ends: the life of a process."""
    for signal_of_service in (signal.SIGINT, signal.SIGTERM):  # to the whole group: the service's to hear
        signal.signal(signal_of_service, signal.SIG_IGN)
    os.nice(BEHIND)
    write_log(settings.log_format, settings.log_level)
    enforce(Limits(settings.max_jobs, settings.max_nodes, settings.worker_memory_mb))
    while True:
        try:
            work, known_as = pipe.recv()
            body = pipe.recv_bytes()
            request_id.set(known_as)
            pipe.send(work(body, settings.max_time_limit_s))
        except (EOFError, OSError):
            return
