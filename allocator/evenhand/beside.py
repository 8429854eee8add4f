"""Calls beside one another, in threads that end with the work; with one thread each where it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")


class Beside:
    """Runs calls that keep to themselves what they change; leaving it waits for all that were started.

    Parameters
    ----------
    threads : calls that run at once, at least 1.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def start(self, call: Callable[[], T]) -> Future[T]:
        """Start a call; what it raises is raised here or by `result()`, in the thread that asks."""
        if self._pool is not None:
            return self._pool.submit(call)
        done: Future[T] = Future()
        done.set_result(call())
        return done


def first_done(answers: Iterable[Future[T]]) -> Future[T]:
    """Wait until one of some calls has ended: the earliest started of those that have."""
    listed = list(answers)
    done = wait(listed, return_when=FIRST_COMPLETED).done
    return next(answer for answer in listed if answer in done)
