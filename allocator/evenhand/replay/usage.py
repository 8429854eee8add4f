"""Charged use inside the window, by group: the exact integral, moved on from event to event (rule D3)."""

from __future__ import annotations

from collections import deque
from math import exp, expm1, log

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
_PER_GPU_HOUR = 3_600_000.0


class UsageWindow:
    """Charged GPU-hours of each group's own jobs over [now - window, now], or decaying with a half-life.

    Amounts are thousandths of a charged GPU times seconds: whole numbers below 2**53 while charges begin and end on
    whole seconds, so sums in floating point are exact.
    """

    def __init__(self, groups: int, window_s: int, half_life_s: int | None) -> None:
        self._window = window_s
        self._decay = None if half_life_s is None else log(2) / half_life_s
        self._rate = np.zeros(groups)
        self._sum = np.zeros(groups)
        self._at = 0
        self._past: deque[tuple[int, int, float]] = deque()
        self._old_rate = np.zeros(groups)

    def seed(self, group: int, start_s: int, end_s: int, charged_gpus: float, now_s: int) -> None:
        """Count use from before the beginning; call before anything else."""
        milli = 1000.0 * charged_gpus
        if self._decay is None:
            start = max(start_s, now_s - self._window)
            if start >= end_s:
                return
            self._sum[group] += milli * (end_s - start)
            if start == now_s - self._window:
                self._old_rate[group] += milli
            else:
                self._past.append((start, group, milli))
            self._past.append((end_s, group, -milli))
            self._past = deque(sorted(self._past))
        else:
            k = self._decay
            self._sum[group] += milli / k * (exp(k * (end_s - now_s)) - exp(k * (start_s - now_s)))

    def inherit(self, old: UsageWindow, place: list[int | None], now_s: int) -> None:
        """Take over another tree's use; nothing is held any more until it is charged anew.

        Parameters
        ----------
        place : group here for each group there; None: forgotten.
        """
        old._advance(now_s)
        self._at = now_s
        for there, here in enumerate(place):
            if here is not None:
                self._sum[here] += old._sum[there]
                self._old_rate[here] += old._old_rate[there]
        kept = ((at, place[g], milli) for at, g, milli in old._past)
        closing = ((now_s, here, -float(old._rate[g])) for g, here in enumerate(place))
        changes = [*kept, *(closing if self._decay is None else ())]
        self._past = deque((at, here, milli) for at, here, milli in changes if here is not None and milli)

    def change(self, group: int, now_s: int, milli: int) -> None:
        """From now on a group holds so many thousandths of a charged GPU more (or fewer)."""
        self._advance(now_s)
        self._rate[group] += milli
        if self._decay is None:
            self._past.append((now_s, group, float(milli)))

    def gpu_hours(self, now_s: int) -> FloatArray:
        """Use of each group's own jobs in the window that ends now, charged GPU-hours [G]; looking changes nothing."""
        if self._decay is not None:
            return np.maximum(self._decayed(now_s), 0.0) / _PER_GPU_HOUR
        self._advance(now_s)
        return np.maximum(self._sum, 0.0) / _PER_GPU_HOUR

    def _decayed(self, now_s: int) -> FloatArray:
        assert self._decay is not None
        gain = -expm1(-self._decay * (now_s - self._at))
        return np.asarray(self._sum * (1.0 - gain) + self._rate * (gain / self._decay))

    def _advance(self, now_s: int) -> None:
        passed = now_s - self._at
        if not passed:
            return
        if self._decay is not None:
            self._sum = self._decayed(now_s)
        else:
            self._sum += self._rate * passed
            tail, head = self._at - self._window, now_s - self._window
            while self._past and self._past[0][0] < head:
                at, group, milli = self._past.popleft()
                self._sum -= self._old_rate * (at - tail)
                self._old_rate[group] += milli
                tail = at
            self._sum -= self._old_rate * (head - tail)
        self._at = now_s
