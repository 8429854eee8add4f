"""The smallest change easily seen to start a waiting gang; each is tried on the nodes before it is named."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from evenhand.explain.causes import Physical
from evenhand.explain.obstacles import Idle
from evenhand.explain.words import gpus, named, stamp_s
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot

_MOST_NODES = 8
"""A change that needs more nodes opened is not called small."""


class Changes:
    """What would make room for one shape."""

    def __init__(self, snapshot: Snapshot, physical: Physical, rest: IntArray, contested: bool) -> None:
        """Prepare.

        Parameters
        ----------
        rest : GPUs that stay free after the plan on open nodes, int [n].
        contested : whether other waiting jobs want GPUs of its types.
        """
        self._s = snapshot
        self._p = physical
        self._rest = rest
        self._unless = ", unless a job ahead of it takes the GPUs" if contested else ""

    @cached_property
    def room(self) -> str | None:
        """Open nodes, another type, or more free GPUs; None if none of them helps."""
        return self.opened or self._more()

    @cached_property
    def opened(self) -> str | None:
        """The same without asking for GPUs that others hold."""
        return self._open_nodes() or self._other_type()

    def _open_nodes(self) -> str | None:
        for idle, change in ((self._p.obstacles.drained, "uncordon"), (self._p.obstacles.down, "bring up")):
            nodes = self._enough(idle)
            if nodes:
                return f"{change} {named('node', [self._s.nodes[n].name for n in nodes])}{self._unless}"
        return None

    def _enough(self, idle: Idle) -> list[int]:
        """Few of the nodes that together would make room, those that bring most first; empty if none do."""
        order = np.lexsort((idle.nodes, -idle.brings))
        available, opened = self._p.free.copy(), []
        for i in order[:_MOST_NODES]:
            node = int(idle.nodes[i])
            opened.append(node)
            available[node] += int(idle.brings[i])
            stand = self._p.ground.stands(available)
            if stand is not None:
                members = set(stand.domain.nodes.tolist())
                return sorted(n for n in opened if n in members)
        return []

    def _other_type(self) -> str | None:
        ground = self._p.ground
        for domain, nodes in ground.other_types():
            available = np.zeros_like(self._rest)
            available[nodes] = self._rest[nodes]
            if ground.size_in(domain, available) is not None:
                kind = self._s.types[domain.gpu_type]
                count = int(available.sum())
                stay = "stays" if count == 1 else "stay"
                return f"let it run on {kind} (a speedup above 0), where {gpus(count)} {stay} free"
        return None

    def _more(self) -> str | None:
        missing = self._p.ground.missing(self._p.free)
        if missing is None:
            return None
        kind = self._s.types[missing.gpu_type]
        names = [self._s.nodes[n].name for n in missing.nodes]
        more = gpus(missing.gpus, kind).replace(" ", " more free ", 1)
        return f"{more} on {named('node', names)}{self._unless}"

    def wait(self, guards: tuple[tuple[int, float], ...], until_s: float) -> str:
        """Wait for the end of protection of some jobs, given with these ends."""
        if len(guards) == 1:
            name = self._s.jobs[guards[0][0]].id
            return f"wait for the protection of {name} to end at {stamp_s(until_s)}{self._unless}"
        return f"wait until {stamp_s(until_s)}, when the protection of enough jobs has ended{self._unless}"
