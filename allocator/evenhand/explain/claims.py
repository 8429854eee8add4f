"""Why others come first: limits, entitlement, standing, priority (rules L1, D4, D5, O4, U1)."""

from __future__ import annotations

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.causes import Physical
from evenhand.explain.ranks import SLACK, Ranks
from evenhand.explain.words import by_type, gpus, listed, named, number, reason
from evenhand.shapes import IntArray
from evenhand_models import Reason, ReasonCode

_MOST_RIVALS = 3
"""So many groups are described with their numbers; the others are named."""


class Claims:
    """Causes that lie in the tree, for one group's jobs of one shape."""

    def __init__(self, aftermath: Aftermath, ranks: Ranks) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._ranks = ranks

    def limits(self, group: int, size: int) -> list[tuple[int, int]]:
        """Groups whose limit stands against so many more GPUs, the lowest first, and the limit each would need."""
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
            if size > limit:
                message = f"Needs {gpus(size)}, more than max_gpus {limit} of group {name} ever allows."
                change = f"raise max_gpus of {name} from {limit} to {size}"
                found.append(reason(ReasonCode.LIMIT_NEVER, message, [name], change=change))
            else:
                held = int(self._a.below[c])
                message = f"Group {name} holds {held} of at most {gpus(limit)} (max_gpus), and this job needs {size} more."
                change = f"raise max_gpus of {name} from {limit} to {needed}"
                found.append(reason(ReasonCode.GROUP_LIMIT, message, [name], change=change))
        return found

    def over(self, group: int, charged: float) -> Reason | None:
        """The lowest group that this job would take above its entitlement, in charged GPUs."""
        r = self._ranks
        for side in (r.leaf(group), *reversed(self._s.tree.path[group])):
            held, entitled = float(r.held[side]), float(r.entitled[side])
            if held + charged > entitled + SLACK:
                who = r.name(side)
                verb = "hold" if side >= r.groups else "holds"
                message = (
                    f"{who[0].upper()}{who[1:]} {verb} {number(held)} of the {number(entitled)} charged GPUs "
                    f"that it is entitled to, and {number(charged)} more would make {number(held + charged)}."
                )
                return reason(ReasonCode.GROUP_OVER_ENTITLEMENT, message, [r.ref(side)])
        return None

    def rivals(self, group: int, budgeted: bool, physical: Physical) -> Reason | None:
        """Groups that come first, with what they hold on nodes the job could use."""
        s, h, rows = self._s, self._a.holdings, physical.open_rows
        if not budgeted:
            return self._allocated(group, rows[s.budgeted[h.job[rows]]])
        rows = rows[s.budgeted[h.job[rows]]]
        view = self._ranks.view(group)
        holder = s.group[h.job[rows]]
        rows = rows[view.first[holder]]
        if not rows.size:
            return None
        r = self._ranks
        holder = s.group[h.job[rows]]
        sides = r.order(np.unique(view.rival[holder]))
        mine = int(view.mine[holder[np.argmax(view.rival[holder] == sides[0])]])
        told = ", ".join(f"{r.name(c)} {r.fares(c)}" for c in sides[:_MOST_RIVALS])
        rest = len(sides) - _MOST_RIVALS
        if rest > 0:
            told += f" and {rest} more {'groups come' if rest > 1 else 'group comes'} first"
        message = (
            f"Work of groups that come first has {self._amounts(rows)} on nodes it could use: "
            f"{told}; {r.name(mine)} {r.fares(mine)}."
        )
        return reason(ReasonCode.LOWER_RANK, message, [r.ref(c) for c in (*sides[:_MOST_RIVALS], mine)])

    def _allocated(self, group: int, rows: IntArray) -> Reason | None:
        """Rule U1: unallocated work waits for what no allocated work wants."""
        s, h = self._s, self._a.holdings
        if not rows.size:
            return None
        holders = [s.tree.ids[g] for g in np.unique(s.group[h.job[rows]])]
        why = "Unallocated work (min_runtime_s 0)"
        if not s.tree.claim[group]:
            why = f"Work of group {s.tree.ids[group]}, which has no claim beside siblings with a share,"
        message = (
            f"{why} comes after allocated work: {named('group', holders)} "
            f"{'has' if len(holders) == 1 else 'have'} {self._amounts(rows)} on nodes it could use."
        )
        refs = [*holders[:10], *([] if s.tree.claim[group] else [s.tree.ids[group]])]
        return reason(ReasonCode.LOWER_RANK, message, refs)

    def _amounts(self, rows: IntArray) -> str:
        h, s = self._a.holdings, self._s
        sums = np.bincount(s.node_type[h.node[rows]], weights=h.gpus[rows], minlength=len(s.types))
        return by_type([(s.types[t], float(sums[t])) for t in np.flatnonzero(sums)])


class Lines:
    """Who of the own group stands before a waiting job: priority, then age, then id (rule O4)."""

    def __init__(self, aftermath: Aftermath) -> None:
        self._s = aftermath.snapshot
        s = self._s
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
        self._sharing: dict[tuple[int, ...], list[bool]] = {}

    def _wants(self, types: tuple[int, ...]) -> list[bool]:
        """Which jobs fit one of the types."""
        if types not in self._sharing:
            self._sharing[types] = self._s.fits[:, list(types)].any(axis=1, keepdims=True)[:, 0].tolist()
        return self._sharing[types]

    def _read(self, key: tuple[int, bool, tuple[int, ...]]) -> dict[int, tuple[int, int]]:
        """For each job of a line, how many before it run and how many wait, counting those that share a type."""
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
        return found

    def reason(self, job: int, types: tuple[int, ...]) -> Reason | None:
        """Name the jobs of the own group that come before a waiting one and want types it could use."""
        s = self._s
        key = (int(s.group[job]), bool(s.budgeted[job]), types)
        counts = self._ahead.get(key)
        if counts is None:
            counts = self._ahead[key] = self._read(key)
        runs, waits = counts[job]
        ahead = runs + waits
        if not ahead:
            return None
        names = self._first[key]
        first = names[:10] if ahead >= 10 else names[:ahead]
        told = listed(first) if ahead <= 10 else f"{', '.join(first)} and {ahead - 10} more"
        group = s.tree.ids[s.group[job]]
        count = f"{ahead} {'job' if ahead == 1 else 'jobs'}"
        verb = "comes" if ahead == 1 else "come"
        message = f"{count} of group {group} {verb} first by priority, then age ({runs} running, {waits} waiting): {told}."
        return Reason(code=ReasonCode.PRIORITY, message=message, refs=(*first, group))
