"""Why others come first: limits, entitlement, standing, priority (rules L1, D4, D5, O4, U1)."""

from __future__ import annotations

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.crowd import Crowd
from evenhand.explain.ranks import SLACK, Ranks
from evenhand.explain.words import MOST_NAMED, gpus, listed, named, number, reason
from evenhand.shapes import BoolArray
from evenhand_models import Reason, ReasonCode

_MOST_RIVALS = 3
"""So many groups are described with their numbers; the others are named."""


class Claims:
    """Causes that lie in the tree, for one group's jobs of one shape."""

    def __init__(self, aftermath: Aftermath, ranks: Ranks) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._ranks = ranks
        self._rivals: dict[tuple[int, int, bool], Reason | None] = {}
        self._over: dict[tuple[int, float], Reason | None] = {}

    def limits(self, group: int, size: int) -> list[tuple[int, int]]:
        """Groups whose limit forbids so many more GPUs, the lowest first, and the limit each would need."""
        tree, found = self._s.tree, []
        for c in reversed(tree.path[group]):
            limit = tree.groups[c].max_gpus
            if limit is not None:
                held = int(self._a.below[c])
                if held + size > max(limit, int(self._a.pinned_below[c])):
                    found.append((c, held + size))
        return found

    def limit_reasons(self, blocked: list[tuple[int, int]], size: int) -> list[Reason]:
        """One reason a limit; one that the gang can never meet says so."""
        tree, found = self._s.tree, []
        for c, needed in blocked:
            limit, name = tree.groups[c].max_gpus or 0, tree.ids[c]
            change = f"raise max_gpus of {name} from {limit} to {needed}"
            if size > limit:
                code = ReasonCode.LIMIT_NEVER
                message = f"Needs {gpus(size)}, more than max_gpus {limit} of group {name} ever allows."
            else:
                code = ReasonCode.GROUP_LIMIT
                holds = f"holds {int(self._a.below[c])} of at most {gpus(limit)} (max_gpus)"
                message = f"Group {name} {holds}, and this job needs {size} more."
            found.append(reason(code, message, [name], change=change))
        return found

    def over(self, group: int, charged: float) -> Reason | None:
        """The lowest group that this job would take above its entitlement, in charged GPUs."""
        key = (group, charged)
        if key not in self._over:
            self._over[key] = self._exceeded(group, charged)
        return self._over[key]

    def _exceeded(self, group: int, charged: float) -> Reason | None:
        r = self._ranks
        for side in (r.leaf(group), *reversed(self._s.tree.path[group])):
            held, entitled = float(r.held[side]), float(r.entitled[side])
            if held + charged <= entitled + SLACK or entitled >= r.wanted(side) - SLACK:
                continue
            who, verb = r.name(side), "hold" if side >= r.groups else "holds"
            message = (
                f"{who[0].upper()}{who[1:]} {verb} {number(held)} of the {number(entitled)} charged GPUs "
                f"that it is entitled to, and {number(charged)} more would make {number(held + charged)}."
            )
            return reason(ReasonCode.GROUP_OVER_ENTITLEMENT, message, [r.ref(side)])
        return None

    def rivals(self, group: int, budgeted: bool, crowd: Crowd) -> Reason | None:
        """Groups that come first, with what they hold on nodes the job could use."""
        key = (crowd.number, group, budgeted)
        if key not in self._rivals:
            self._rivals[key] = self._ahead_of(group, crowd) if budgeted else self._allocated(group, crowd)
        return self._rivals[key]

    def _ahead_of(self, group: int, crowd: Crowd) -> Reason | None:
        view, r = self._ranks.view(group), self._ranks
        ahead = crowd.groups[view.first[crowd.groups]]
        if not ahead.size:
            return None
        rivals = view.rival[ahead]
        sides = r.order(set(rivals.tolist()))
        mine = int(view.mine[ahead[int(np.argmax(rivals == sides[0]))]])
        told = "; ".join(f"{r.name(c)} {r.fares(c)}" for c in sides[:_MOST_RIVALS])
        rest = len(sides) - _MOST_RIVALS
        if rest > 0:
            told += f"; and {rest} more {'groups' if rest > 1 else 'group'}"
        message = (
            f"Work of groups that come first has {crowd.amounts(ahead)} on nodes it could use ({told}), "
            f"while {r.name(mine)} {r.fares(mine)}."
        )
        return reason(ReasonCode.LOWER_RANK, message, [r.ref(c) for c in (*sides[:_MOST_RIVALS], mine)])

    def _allocated(self, group: int, crowd: Crowd) -> Reason | None:
        """Rule U1: unallocated work waits for what no allocated work wants."""
        tree = self._s.tree
        if not crowd.groups.size:
            return None
        holders = [tree.ids[g] for g in crowd.groups]
        why, refs = "Unallocated work (min_runtime_s 0)", holders[:10]
        if not tree.claim[group]:
            why = f"Work of group {tree.ids[group]}, which has no claim beside siblings with a share,"
            refs = [*refs, tree.ids[group]]
        message = (
            f"{why} comes after allocated work: {named('group', holders)} "
            f"{'has' if len(holders) == 1 else 'have'} {crowd.amounts(crowd.groups)} on nodes it could use."
        )
        return reason(ReasonCode.LOWER_RANK, message, refs)


class Lines:
    """Who of the own group stands before a waiting job: priority, then age, then id (rule O4)."""

    def __init__(self, aftermath: Aftermath) -> None:
        self._s = aftermath.snapshot
        s = self._s
        self._group, self._budgeted = s.group.tolist(), s.budgeted.tolist()
        self._line: dict[tuple[int, bool], list[int]] = {}
        for j in np.flatnonzero(s.live).tolist():
            d = aftermath.decisions[j]
            stays = s.pinned[j] or (s.running[j] and not d.places)
            if not stays:
                self._line.setdefault((int(s.group[j]), bool(s.budgeted[j])), []).append(j)
        for line in self._line.values():
            line.sort(key=s.seniority)
        self._runs = {j for j, d in aftermath.decisions.items() if d.places}
        self._ahead: dict[tuple[int, bool, tuple[int, ...]], dict[int, tuple[int, int]]] = {}
        self._first: dict[tuple[int, bool, tuple[int, ...]], list[str]] = {}
        self._heads: dict[tuple[int, bool, tuple[int, ...]], tuple[tuple[str, ...], str]] = {}
        self._sharing: dict[tuple[int, ...], list[bool]] = {}

    def _wants(self, types: tuple[int, ...]) -> list[bool]:
        """Which jobs fit one of the types."""
        if types not in self._sharing:
            chosen: BoolArray = self._s.fits[:, list(types)]
            self._sharing[types] = [bool(x) for x in chosen.sum(axis=1).tolist()]
        return self._sharing[types]

    def _read(self, key: tuple[int, bool, tuple[int, ...]]) -> dict[int, tuple[int, int]]:
        """For each job of a line, how many before it run and how many wait, of those that share a type."""
        s, wants = self._s, self._wants(key[2])
        runs, waits, names = 0, 0, []
        found = {}
        for j in self._line.get(key[:2], ()):
            found[j] = (runs, waits)
            if not wants[j]:
                continue
            if j in self._runs:
                runs += 1
            else:
                waits += 1
            names.append(s.jobs[j].id)
        self._first[key] = names
        head = names[:MOST_NAMED]
        self._heads[key] = ((*head, s.tree.ids[key[0]]), ", ".join(head))
        return found

    def reason(self, job: int, types: tuple[int, ...]) -> Reason | None:
        """Name the jobs of the own group that come before a waiting one and want types it could use."""
        s = self._s
        key = (self._group[job], self._budgeted[job], types)
        counts = self._ahead.get(key)
        if counts is None:
            counts = self._ahead[key] = self._read(key)
        runs, waits = counts[job]
        ahead = runs + waits
        if not ahead:
            return None
        names, group = self._first[key], s.tree.ids[key[0]]
        if ahead > MOST_NAMED:
            refs, told = self._heads[key]
            told = f"{told} and {ahead - MOST_NAMED} more"
        else:
            refs, told = (*names[:ahead], group), listed(names[:ahead])
        come = "1 job of group {} comes" if ahead == 1 else f"{ahead} jobs of group {{}} come"
        message = f"{come.format(group)} first by priority, then age ({runs} running, {waits} waiting): {told}."
        return reason(ReasonCode.PRIORITY, message, refs)
