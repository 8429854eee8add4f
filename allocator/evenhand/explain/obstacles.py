"""Nodes that could help a gang and do not: cordoned, down, near maintenance, GPUs lacking (S3, C1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.explain.aftermath import Aftermath, FloatArray
from evenhand.explain.ground import Ground
from evenhand.explain.words import by_type, gpus, named, reason, stamp_s
from evenhand.shapes import BoolArray, IntArray
from evenhand.snapshot import seconds
from evenhand_models import NodeStatus, Reason, ReasonCode


class Nodes:
    """What matters of every node, once for all shapes; arrays [n].

    Attributes
    ----------
    cordoned, down : status; closing_s : start of maintenance, infinity if none is planned.
    gpus, foreign, broken : GPUs installed, held by foreign work, broken.
    spare : GPUs that would be free on the node were it open.
    """

    def __init__(self, aftermath: Aftermath) -> None:
        s = aftermath.snapshot
        count = len(s.nodes)
        status = [n.status for n in s.nodes]
        self.names = [n.name for n in s.nodes]
        self.cordoned: BoolArray = np.array([k is NodeStatus.CORDONED for k in status], dtype=bool).reshape(count)
        self.down: BoolArray = np.array([k is NodeStatus.DOWN for k in status], dtype=bool).reshape(count)
        ends = [np.inf if n.available_until_at is None else seconds(n.available_until_at) for n in s.nodes]
        self.closing_s: FloatArray = np.array(ends, dtype=np.float64).reshape(count)
        self.any_closing = bool(np.isfinite(self.closing_s).any())
        self.gpus: IntArray = np.array([n.gpus for n in s.nodes], dtype=np.int64).reshape(count)
        self.foreign: IntArray = np.array([n.foreign_gpus for n in s.nodes], dtype=np.int64).reshape(count)
        self.broken: IntArray = np.array([n.unavailable_gpus for n in s.nodes], dtype=np.int64).reshape(count)
        usable = np.maximum(self.gpus - self.foreign - self.broken, 0)
        self.spare: IntArray = np.maximum(usable - aftermath.used, 0)


@dataclass(frozen=True)
class Idle:
    """Nodes that would bring GPUs if they were open, and how many each."""

    nodes: IntArray
    brings: IntArray


class Obstacles:
    """What keeps nodes from helping one shape."""

    def __init__(self, aftermath: Aftermath, nodes: Nodes, ground: Ground) -> None:
        self._s = aftermath.snapshot
        self._n = nodes
        self.ground = ground
        parts = [d.nodes for d in ground.domains]
        found = np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
        self._near: IntArray = found[nodes.gpus[found] >= ground.unit]
        lasts = nodes.closing_s >= self._s.now_s + ground.shape.ask.stay_s
        lasts &= nodes.closing_s > self._s.now_s
        self._lasting: IntArray = self._near[lasts[self._near]]
        self._closing: IntArray = self._near[~lasts[self._near]]

    @cached_property
    def drained(self) -> Idle:
        """Cordoned nodes with free GPUs."""
        return self._idle(self._n.cordoned)

    @cached_property
    def down(self) -> Idle:
        """Nodes that are down."""
        return self._idle(self._n.down)

    def _idle(self, which: BoolArray) -> Idle:
        chosen = self._lasting[which[self._lasting] & (self._n.spare[self._lasting] > 0)]
        return Idle(chosen, self._n.spare[chosen])

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """One reason for each kind of obstacle."""
        opened = self._lasting[self._s.opened[self._lasting]]
        return (
            *self._about(ReasonCode.NODE_DRAINED, self.drained, "cordoned", "uncordon"),
            *self._about(ReasonCode.NODE_DOWN, self.down, "down", "bring up"),
            *self._maintenance(),
            *self._lacking(ReasonCode.FOREIGN_GPUS, opened, self._n.foreign, "held by work that is not ours"),
            *self._lacking(ReasonCode.BROKEN_GPUS, opened, self._n.broken, "broken"),
        )

    def _names(self, nodes: IntArray) -> list[str]:
        return [self._n.names[n] for n in nodes]

    def _about(self, code: ReasonCode, idle: Idle, what: str, change: str) -> list[Reason]:
        if not idle.nodes.size:
            return []
        s, names = self._s, self._names(idle.nodes)
        sums = np.bincount(s.node_type[idle.nodes], weights=idle.brings, minlength=len(s.types))
        amounts = by_type([(s.types[t], float(sums[t])) for t in np.flatnonzero(sums)])
        verb = "is" if len(names) == 1 else "are"
        message = f"{named('Node', names)} {verb} {what} and would bring {amounts}."
        return [reason(code, message, names[:10], change=f"{change} {named('node', names)}")]

    def _maintenance(self) -> list[Reason]:
        n, s = self._n, self._s
        closing = self._closing[~n.down[self._closing]]
        found = []
        for chosen in (closing[n.closing_s[closing] <= s.now_s], closing[n.closing_s[closing] > s.now_s]):
            if not chosen.size:
                continue
            names, at_s = self._names(chosen), float(n.closing_s[chosen].min())
            one = len(names) == 1
            who = f"{named('Node', names)} {'is' if one else 'are'}"
            when = f"{'' if one else 'the first '}{'since' if at_s <= s.now_s else 'at'} {stamp_s(at_s)}"
            if at_s <= s.now_s:
                message = f"{who} in maintenance ({when}), with {gpus(int(n.gpus[chosen].sum()))}."
            else:
                message = (
                    f"{who} open only until maintenance ({when}), sooner than its contract of "
                    f"{self.ground.shape.ask.stay_s} s would end."
                )
            found.append(reason(ReasonCode.MAINTENANCE, message, names[:10]))
        return found

    def _lacking(self, code: ReasonCode, nodes: IntArray, amount: IntArray, what: str) -> list[Reason]:
        chosen = nodes[amount[nodes] > 0]
        if not chosen.size:
            return []
        names, total = self._names(chosen), int(amount[chosen].sum())
        verb = "is" if total == 1 else "are"
        return [reason(code, f"{gpus(total)} on {named('node', names)} {verb} {what}.", names[:10])]
