"""Why others come first: limits, entitlement, standing, priority (rules L1, D4, D5, O4, U1)."""

from __future__ import annotations

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.crowd import Crowd
from evenhand.explain.ranks import SLACK, Ranks
from evenhand.explain.words import MOST_NAMED, gpus, listed, number, reason
from evenhand.shapes import BoolArray, IntArray
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
        first = view.first[crowd.groups]
        ahead = crowd.groups[first]
        if not ahead.size:
            return None
        rivals = view.rival[ahead]
        sides = r.order(rivals)
        named_sides = sides[:_MOST_RIVALS].tolist()
        mine = int(view.mine[ahead[int(np.argmax(rivals == sides[0]))]])
        told = "; ".join(f"{r.name(c)} {r.fares(c)}" for c in named_sides)
        rest = len(sides) - _MOST_RIVALS
        if rest > 0:
            told += f"; and {rest} more {'groups' if rest > 1 else 'group'}"
        message = (
            f"Work of groups that come first has {crowd.amounts(first)} on nodes it could use ({told}), "
            f"while {r.name(mine)} {r.fares(mine)}."
        )
        return reason(ReasonCode.LOWER_RANK, message, [r.ref(c) for c in (*named_sides, mine)])

    def _allocated(self, group: int, crowd: Crowd) -> Reason | None:
        """Rule U1: unallocated work waits for what no allocated work wants."""
        tree = self._s.tree
        if not crowd.groups.size:
            return None
        holders, told = crowd.holders
        why, refs = "Unallocated work (min_runtime_s 0)", holders
        if not tree.claim[group]:
            why = f"Work of group {tree.ids[group]}, which has no claim beside siblings with a share,"
            refs = [*holders, tree.ids[group]]
        return reason(ReasonCode.LOWER_RANK, f"{why} comes after allocated work: {told} on nodes it could use.", refs)


class Lines:
    """Who of the own group stands before a waiting job: priority, then age, then id (rule O4)."""

    def __init__(self, aftermath: Aftermath) -> None:
        s = self._s = aftermath.snapshot
        self._runs = np.zeros(len(s.jobs), dtype=bool)
        table = aftermath.table
        self._runs[table.job[table.gpus > 0]] = True
        jobs = np.flatnonzero(s.live & ~s.pinned & ~(s.running & ~self._runs))
        order = np.lexsort((jobs, s.submitted_s[jobs], -s.priority[jobs], s.budgeted[jobs], s.group[jobs]))
        jobs = jobs[order]
        lines, first = np.unique(2 * s.group[jobs] + s.budgeted[jobs], return_index=True)
        parts = np.split(jobs, first[1:]) if jobs.size else []
        self._line: dict[tuple[int, bool], IntArray] = {
            (key // 2, bool(key % 2)): part for key, part in zip(lines.tolist(), parts, strict=True)
        }
        place = np.zeros(len(s.jobs), dtype=np.int64)
        place[jobs] = np.arange(len(jobs)) - np.repeat(first, np.diff(np.append(first, len(jobs))))
        self._place: list[int] = place.tolist()
        self._seen: dict[tuple[int, bool, tuple[int, ...]], Line] = {}
        self._alike: dict[tuple[int, bool, bytes], Line] = {}
        self._sharing: dict[tuple[int, ...], BoolArray] = {}

    def _wants(self, types: tuple[int, ...]) -> BoolArray:
        """Which jobs fit one of the types, bool [J]."""
        if types not in self._sharing:
            self._sharing[types] = np.asarray(self._s.fits[:, list(types)].any(axis=1), dtype=bool)
        return self._sharing[types]

    def seen(self, group: int, budgeted: bool, types: tuple[int, ...]) -> Line:
        """The line of a group's jobs of one kind, as those that can use some types see it."""
        key = (group, budgeted, types)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._read(key)
        return found

    def _read(self, key: tuple[int, bool, tuple[int, ...]]) -> Line:
        """For each place of a line, how many before it run and how many wait, of those that share a type."""
        s, line = self._s, self._line[key[:2]]
        wants = self._wants(key[2])[line]
        same = (*key[:2], wants.tobytes())  # of many sets of types all jobs of a line can use one
        if same not in self._alike:
            runs = self._runs[line]
            counts = [np.cumsum(each) - each for each in (wants & runs, wants & ~runs)]
            names = [s.jobs[j].id for j in line[np.flatnonzero(wants)[:MOST_NAMED]].tolist()]
            self._alike[same] = Line(self._place, counts[0].tolist(), counts[1].tolist(), names, s.tree.ids[key[0]])
        return self._alike[same]


class Line:
    """One line as jobs of one set of types see it."""

    def __init__(self, place: list[int], runs: list[int], waits: list[int], names: list[str], group: str) -> None:
        """Prepare.

        Parameters
        ----------
        place : of each job in its line, int [J].
        runs, waits : how many before each place run and wait.
        names : of the first.
        """
        self._place, self._runs, self._waits, self._names = place, runs, waits, names
        self._group = group
        self._told = ", ".join(names)
        self._refs = (*names, group)

    def reason(self, job: int) -> Reason | None:
        """Name the jobs of the own group that come before a waiting one and want types it could use."""
        place = self._place[job]
        runs, waits = self._runs[place], self._waits[place]
        ahead = runs + waits
        if not ahead:
            return None
        group = self._group
        if ahead > MOST_NAMED:
            refs, told = self._refs, f"{self._told} and {ahead - MOST_NAMED} more"
        else:
            refs, told = (*self._names[:ahead], group), listed(self._names[:ahead])
        come = f"1 job of group {group} comes" if ahead == 1 else f"{ahead} jobs of group {group} come"
        message = f"{come} first by priority, then age ({runs} running, {waits} waiting): {told}."
        return reason(ReasonCode.PRIORITY, message, refs)
