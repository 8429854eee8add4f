"""Where runs run: here, in processes of this machine, or on a Ray cluster. One interface, three doors."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing.queues import Queue
from typing import Any, Protocol, TypeAlias

from evenhand_api.commands.terminal import Failure
from evenhand_api.whatif.runs import Base, Run, execute

Task: TypeAlias = tuple[str, Run]
"""A run and its key."""
Done: TypeAlias = Callable[[str, bytes], None]
"""Called with a key and its result, as runs finish."""
Going: TypeAlias = Callable[[str, float], None]
"""Called with a key and the share of it that is done."""
KNOCK_S = 10.0
"""How long a Ray cluster may take to answer at all."""


class Pool(Protocol):
    """Replays runs; results do not depend on which pool it is, nor on how many work."""

    def run(self, base: Base, tasks: Sequence[Task], done: Done, going: Going) -> None:
        """Replay all tasks; `done` and `going` are called in this process, one at a time."""


class Here:
    """One after the other in this process."""

    def run(self, base: Base, tasks: Sequence[Task], done: Done, going: Going) -> None:
        """Replay all tasks."""
        for key, run in tasks:
            done(key, execute(base, run, key, lambda share, key=key: going(key, share)))  # type: ignore[misc]


class Processes:
    """Processes of this machine; the base is put to each once.

    Parameters
    ----------
    workers : how many.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(self, base: Base, tasks: Sequence[Task], done: Done, going: Going) -> None:
        """Replay all tasks.

        Raises
        ------
        Failure
            If a process dies; what was finished has been given to `done`.
        """
        context = multiprocessing.get_context("spawn")
        lines: Queue[tuple[str, float] | None] = context.Queue()
        trouble: list[Exception] = []
        listener = threading.Thread(target=_listen, args=(lines, going, trouble), daemon=True)
        listener.start()
        workers = min(self._workers, len(tasks))
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(base, lines))
        try:
            waiting: dict[Future[bytes], str] = {pool.submit(_replay, key, run): key for key, run in tasks}
            while waiting:
                finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                if trouble:
                    raise trouble[0]
                for future in sorted(finished, key=lambda one: waiting[one]):
                    done(waiting.pop(future), future.result())
        except BrokenProcessPool:
            message = "a process died while replaying, for want of memory perhaps; finished runs are kept"
            raise Failure(f"{message}: run the same command again.") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            _end(pool)
            lines.put(None)
            listener.join(5)


def _end(pool: ProcessPoolExecutor) -> None:
    """End processes that still replay: nobody waits for them any more."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()


def _listen(lines: Queue[tuple[str, float] | None], going: Going, trouble: list[Exception]) -> None:
    """Pass on how far runs are; what goes wrong there is kept for who waits for the runs, and nothing more is passed on."""
    while (line := lines.get()) is not None:
        if trouble:
            continue
        try:
            going(*line)
        except Exception as error:  # noqa: BLE001  whoever listens may raise anything
            trouble.append(error)


_at_work: dict[str, Any] = {}
"""What a process was given when it began."""


def _begin(base: Base, lines: Queue[tuple[str, float] | None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the command's to hear
    _at_work.update(base=base, lines=lines)


def _replay(key: str, run: Run) -> bytes:
    parent = multiprocessing.parent_process()

    def going(share: float) -> None:
        if parent is not None and not parent.is_alive():
            os._exit(1)  # whoever asked was killed: nobody waits for this any more
        _at_work["lines"].put((key, share))

    return execute(_at_work["base"], run, key, going)


class Ray:
    """A Ray cluster; the base is put into its object store once, runs travel as deltas.

    Needs the extra ``ray`` here and evenhand of the same version on every node.

    Parameters
    ----------
    address : of the cluster, as ``ray.init`` takes it; ``local`` starts one on this machine.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def run(self, base: Base, tasks: Sequence[Task], done: Done, going: Going) -> None:
        """Replay all tasks; progress is told run by run.

        Raises
        ------
        Failure
            If Ray is not installed, its cluster cannot be reached, or a run is lost.
        """
        try:
            ray = import_module("ray")
        except ImportError:
            raise Failure("--ray needs the extra: pip install 'evenhand[ray]'.") from None
        _knock(self._address)
        try:
            ray.init(address=self._address, log_to_driver=False, ignore_reinit_error=True)
        except (ConnectionError, ValueError, RuntimeError) as reason:
            raise Failure(f"the Ray cluster at {self._address} cannot be reached: {reason}.") from None
        put, remote = ray.put(base), ray.remote(execute)
        waiting = {remote.remote(put, run, key): key for key, run in tasks}
        try:
            while waiting:
                finished, _ = ray.wait(list(waiting), num_returns=1)
                for one in finished:
                    done(waiting.pop(one), ray.get(one))
        except ray.exceptions.RayError as reason:
            raise Failure(f"a run was lost on the Ray cluster: {reason}. Finished runs are kept.") from None
        finally:
            ray.shutdown()


def _knock(address: str) -> None:
    """Say at once that nobody answers at host:port; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S):
            pass
    except (OSError, OverflowError) as reason:
        raise Failure(f"the Ray cluster at {address} cannot be reached: {reason}.") from None
