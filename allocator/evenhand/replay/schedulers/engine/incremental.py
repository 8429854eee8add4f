"""Between full rounds: decide only what an event can change, under every hard rule (C G P R U L)."""

from __future__ import annotations

from evenhand.replay.lines import Owner
from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.schedulers.engine.displace import Displacer
from evenhand.replay.schedulers.engine.worth import Worth
from evenhand.replay.world import World

Key = tuple[bool, float, float, float, tuple[int, int, int]]

RETRY_S = 60


class Incremental:
    """Starts who fits on free GPUs, the most owed first, and makes room for who is owed it."""

    def __init__(self, world: World, worth: Worth) -> None:
        self._w, self._worth = world, worth
        self._tried_s: dict[int, int] = {}
        self._limits = [(c, g.max_gpus) for c, g in enumerate(world.tree.groups) if g.max_gpus is not None]

    def decide(self, happened: Happened) -> None:
        """Answer what happened."""
        w = self._w
        changed = {n for run in happened.ended for n, _ in run.places}
        freed = bool(changed)
        for j in (*happened.unprotected, *happened.saved):
            if j in w.runs:
                changed.update(n for n, _ in w.runs[j].places)
        if freed:
            self.fill(None, owed_only=True)
        if changed:
            freed |= self._displace_at(sorted(changed))
            freed |= self._whole_gangs()
        for job in sorted(happened.arrived, key=w.lines.rank):
            if job in w.lines.waiting:
                freed |= self._arrival(job)
        if freed:
            self.fill(None)

    def _arrival(self, job: int) -> bool:
        """Start an arrival on free GPUs or in the place of others; whether others had to go."""
        w = self._w
        if not self._within_limits(job):
            return False
        found = w.place_best(job)
        if found is not None:
            w.start(job, *found)
            return False
        return w.facts.budgeted[job] and Displacer(w, self._worth).make_room(job)

    def _displace_at(self, nodes: list[int]) -> bool:
        """Make room on these nodes for waiting gangs that are owed it; whether anybody had to go."""
        w, went = self._w, False
        most = max(w.ground.room[n] for n in nodes)
        displacer = Displacer(w, self._worth)
        heads = self._heads([s for s in w.lines.by_shape if w.facts.shapes[s].gpus <= most])
        heads = {key: job for key, job in heads.items() if self._worth.due(job) > 0}
        while heads:
            owner = min(heads, key=lambda o: self._key(heads[o]))
            job = heads.pop(owner)
            if self._within_limits(job) and displacer.make_room(job, nodes):
                went = True
                line = w.lines.by_shape.get(owner[0], {}).get(owner[1])
                if line and self._worth.due(line[0][2]) > 0:
                    heads[owner] = line[0][2]
        return went

    def _whole_gangs(self) -> bool:
        """Make room for gangs of many nodes that are owed whole, once a minute each; whether anybody had to go."""
        w, went = self._w, False
        waiting = [j for j in self._worth.gangs if j in w.lines.waiting]
        if not waiting:
            return False
        movable = sum(run.gpus for run in w.runs.values() if w.now_s >= run.protected_until_s)
        there = movable + sum(w.ground.idle)
        for job in sorted(waiting, key=w.lines.rank):
            tried = self._tried_s.get(job)
            if w.facts.size[job] > there or (tried is not None and w.now_s < tried + RETRY_S):
                continue
            self._tried_s[job] = w.now_s
            if self._within_limits(job) and Displacer(w, self._worth).make_room(job):
                went = True
        return went

    def fill(self, shapes: list[int] | None, *, owed_only: bool = False) -> None:
        """Start waiting gangs on free GPUs until none fits.

        Parameters
        ----------
        shapes : which shapes to look at; all that wait if left out.
        owed_only : only gangs that are owed their GPUs.
        """
        w = self._w
        idle = w.ground.idle
        if not any(idle):
            return
        facts = w.facts
        fit = [
            s
            for s in (w.lines.by_shape if shapes is None else shapes)
            if any(idle[t] >= facts.shapes[s].gpus for t in facts.shapes[s].types)
        ]
        fit = [s for s in fit if self._fits_somewhere(s)]
        heads = self._heads(fit)
        keys = {owner: self._key(job) for owner, job in heads.items()}
        while keys:
            owner = min(keys, key=keys.__getitem__)
            job, key = heads[owner], keys[owner]
            if owed_only and key[1] >= 0:
                return
            found = w.place_best(job) if self._within_limits(job) else None
            if found is None:
                self._give_up(keys, owner, within=self._within_limits(job))
                continue
            w.start(job, *found)
            keys.pop(owner)
            self._refresh(heads, keys, owner, facts.group[job])

    def _refresh(
        self, heads: dict[tuple[int, Owner], int], keys: dict[tuple[int, Owner], Key], owner: tuple[int, Owner],
        group: int,
    ) -> None:  # fmt: skip
        """After a start: the next of the line, and what its relatives are owed now."""
        w = self._w
        line = w.lines.by_shape.get(owner[0], {}).get(owner[1])
        if line:
            heads[owner] = line[0][2]
            keys[owner] = self._key(heads[owner])
        top = w.tree.path[group][0]
        for other in keys:
            if w.tree.path[other[1][0]][0] == top:
                keys[other] = self._key(heads[other])

    def _give_up(self, keys: dict[tuple[int, Owner], Key], owner: tuple[int, Owner], *, within: bool) -> None:
        """Who does not fit now will not fit this time, nor will his likes."""
        if within and not self._w.ground.limited:
            for other in [o for o in keys if o[0] == owner[0]]:
                del keys[other]
        else:
            del keys[owner]

    def _fits_somewhere(self, shape: int) -> bool:
        w = self._w
        what = w.facts.shapes[shape]
        return any(w.ground.place(what, t, w.sites) is not None for t in what.types)

    def _heads(self, shapes: list[int]) -> dict[tuple[int, Owner], int]:
        """The eldest of every line of these shapes."""
        lines = self._w.lines.by_shape
        return {(s, owner): line[0][2] for s in shapes for owner, line in lines[s].items()}

    def _key(self, job: int) -> Key:
        """Who goes first: budgeted, most owed, then least served, or where nothing is owed the most wanted."""
        f = self._w.facts
        due = self._worth.due(job)
        served = self._worth.served(f.group[job])
        wanted = -self._worth.order(job)
        first, second = (served, wanted) if due > 0 else (wanted, served)
        return (not f.budgeted[job], -due, first, second, self._w.lines.rank(job))

    def _within_limits(self, job: int) -> bool:
        """Rule L1 for a gang that would start."""
        if not self._limits:
            return True
        w = self._w
        path, size = w.tree.path[w.facts.group[job]], w.facts.size[job]
        return all(w.held_gpus[c] + size <= most for c, most in self._limits if c in path)
