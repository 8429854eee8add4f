"""Jobs that end by themselves within the restart cost, on whose GPUs others are reserved (rule O8)."""

from __future__ import annotations

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.causes import Physical
from evenhand.explain.words import gpus, instant, listed, named, reason, stamp_s
from evenhand_models import Reason, ReasonCode


class Ending:
    """Kept jobs by type and end."""

    def __init__(self, aftermath: Aftermath) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._known: dict[int, list[int]] = {}
        self._enough: dict[tuple[int, int], float | None] = {}
        self._told: dict[int, Reason] = {}

    def jobs(self, gpu_type: int) -> list[int]:
        """Kept jobs on a type that end within the restart cost; by end, then id."""
        if gpu_type not in self._known:
            s, found = self._s, []
            soon = s.running & ~s.hit & (s.left_s > 0) & (s.left_s <= s.policy.restart_cost_s)
            for j in np.flatnonzero(soon & (s.live | s.orphan)):
                d = self._a.decisions[int(j)]
                if d.places and d.gpu_type == gpu_type:
                    found.append(int(j))
            self._known[gpu_type] = sorted(found, key=lambda j: (float(s.left_s[j]), j))
        return self._known[gpu_type]

    def named(self, gpu_type: int) -> str:
        """Return `jobs a and b have ended`."""
        names = [self._s.jobs[j].id for j in self.jobs(gpu_type)]
        return f"{named('job', names)} {'has' if len(names) == 1 else 'have'} ended"

    def enough_s(self, physical: Physical, gpu_type: int) -> float | None:
        """When enough of them have ended for a gang reserved on their GPUs, seconds since 1970."""
        key = (physical.number, gpu_type)
        if key not in self._enough:
            self._enough[key] = self._enough_ended(physical, gpu_type)
        return self._enough[key]

    def _enough_ended(self, physical: Physical, gpu_type: int) -> float | None:
        s, available = self._s, physical.free.copy()
        for j in self.jobs(gpu_type):
            for n, held in self._a.decisions[j].places:
                if physical.ground.eligible[n]:
                    available[n] += held
            if physical.ground.stands(available) is not None:
                return s.now_s + float(s.left_s[j])
        return physical.earliest_s

    def reason(self, gpu_type: int) -> Reason:
        """Say on whose GPUs a waiting job is reserved."""
        if gpu_type not in self._told:
            self._told[gpu_type] = self._tell(gpu_type)
        return self._told[gpu_type]

    def _tell(self, gpu_type: int) -> Reason:
        s, jobs = self._s, self.jobs(gpu_type)
        kind = s.types[gpu_type]
        held = gpus(sum(self._a.decisions[j].gpus for j in jobs), kind)
        ends = listed([f"{s.jobs[j].id} at {stamp_s(s.now_s + float(s.left_s[j]))}" for j in jobs])
        message = (
            f"It is reserved on {held} that come free by themselves within the restart cost of "
            f"{s.policy.restart_cost_s} s, so that nothing is preempted for it: {ends or 'none is named'}."
        )
        at = instant(s.now_s + float(s.left_s[jobs[-1]])) if jobs else None
        return reason(ReasonCode.RESERVED_ENDING, message, [s.jobs[j].id for j in jobs[:10]], at=at)
