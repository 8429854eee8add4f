"""Why a gang does not fit: what is free, what is protected, what the nodes lack (rules C1, G3, P1)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.crowd import Crowd
from evenhand.explain.ground import Stand
from evenhand.explain.obstacles import Obstacles
from evenhand.explain.timeline import Timeline
from evenhand.explain.words import by_type, gpus, instant, named, reason, stamp_s
from evenhand.shapes import IntArray
from evenhand_models import Reason, ReasonCode


class Physical:
    """The causes that all jobs of one shape and kind share."""

    def __init__(
        self, aftermath: Aftermath, timeline: Timeline, obstacles: Obstacles, crowd: Crowd, number: int
    ) -> None:
        ground = obstacles.ground
        self.ground, self.crowd, self.number = ground, crowd, number
        self._s = aftermath.snapshot
        self._optimal = aftermath.optimal
        self._timeline = timeline
        self.obstacles = obstacles
        self.free: IntArray = ground.masked(aftermath.free)
        self.total_free = int(self.free.sum())
        self.stand: Stand | None = ground.stands(self.free)

    @cached_property
    def least_charged(self) -> float:
        """What the gang is charged at its least size and on its cheapest type, GPUs."""
        shape = self.ground.shape
        return shape.least * (min(int(self._s.rate_milli[t]) for t in shape.types) / 1000)

    @cached_property
    def earliest_s(self) -> float | None:
        """First instant at which enough GPUs are free of protection, seconds since 1970."""
        return self._timeline.earliest(self.ground)

    @cached_property
    def before(self) -> tuple[Reason, ...]:
        """Too few free GPUs, or too scattered; then protected work."""
        if self.stand is not None:
            return ()
        return (self._room(), *self._protected())

    @cached_property
    def beside(self) -> tuple[Reason, ...]:
        """What keeps nodes from helping."""
        return () if self.stand is not None else self.obstacles.reasons

    @cached_property
    def idle(self) -> Reason:
        """Free GPUs would hold it: say why they stay idle."""
        s, stand = self._s, self.stand
        assert stand is not None
        nodes = stand.domain.nodes[self.free[stand.domain.nodes] > 0]
        names = [s.nodes[n].name for n in nodes]
        free = gpus(int(self.free[nodes].sum()), s.types[stand.domain.gpu_type])
        where = f"{free} that would hold it stay free on {named('node', names)}"
        if self._optimal:
            message = f"{where}: its start there would make other groups envy more than it brings."
            return reason(ReasonCode.GROUP_OVER_ENTITLEMENT, message, names[:10])
        message = f"{where}: the search of this round ended before a plan that starts it was found."
        return reason(ReasonCode.TIME_LIMIT, message, names[:10])

    def _room(self) -> Reason:
        s, shape = self._s, self.ground.shape
        free = np.bincount(s.node_type, weights=self.free, minlength=len(s.types)).astype(np.int64)
        amounts = by_type([(s.types[t], int(free[t])) for t in shape.types])
        wants = f"Needs {shape.wanted}{self._form()}"
        if all(free[t] < shape.least for t in shape.types):
            return reason(ReasonCode.CAPACITY, f"{wants}; free on nodes it could use: {amounts}.")
        n = int(np.argmax(self.free))
        piece = f"the largest piece on one node is {gpus(int(self.free[n]))} on {s.nodes[n].name}"
        spread = int((self.free > 0).sum())
        where = f"scattered over {spread} nodes" if spread > 1 else "all on one node"
        message = f"{wants}; {amounts} are free, but {where}: {piece}"
        return reason(ReasonCode.FRAGMENTATION, f"{message}{self._pieces()}.", [s.nodes[n].name])

    def _form(self) -> str:
        """How the gang must stand: ` in workers of 2 on one node each`."""
        shape = self.ground.shape
        same = f" that share one value of {shape.ask.where.same}" if shape.ask.where.same is not None else ""
        if shape.worker is not None:
            return f" in workers of {shape.worker}, each on one node" + (f", on nodes{same}" if same else "")
        if shape.per_node is not None:
            return f", {shape.per_node} on each of {shape.least // shape.per_node} nodes{same}"
        counts = sorted({k for d in self.ground.domains for size, k in d.needs if size == shape.least})
        if counts == [1]:
            return " on one node"
        return f" on {counts[0]} nodes{same}" if counts else same

    def _pieces(self) -> str:
        """How many workers would stand, where the gang is made of workers."""
        shape = self.ground.shape
        worker = shape.worker or shape.per_node
        same = shape.ask.where.same
        if same is not None:
            most, value = max((int(self.free[d.nodes].sum()), d.value or "") for d in self.ground.domains)
            return f", the most in one {same} is {gpus(most)} in {value}"
        if worker is None or worker == shape.least:
            return ""
        parts = [self.free[d.nodes] for d in self.ground.domains]
        most = max(int((p // worker if shape.worker else p >= worker).sum()) for p in parts)
        return f", room for {most} of {shape.least // worker} such pieces"

    def _protected(self) -> list[Reason]:
        crowd, now_s, enough = self.crowd, self._s.now_s, self.earliest_s
        if not crowd.protected.size:
            return []
        message, refs = crowd.guarded
        if enough is None:
            message += "; when enough GPUs for it come out of protection is not known"
        elif enough > now_s and (len(crowd.guards) > 1 or enough != crowd.guards[0][1]):
            message += f"; enough GPUs for it are out of protection at {stamp_s(enough)}"
        at = instant(enough) if enough is not None and enough > now_s else None
        return [reason(ReasonCode.PROTECTED_WORK, message + ".", refs, at=at)]
