"""Why others come first: limits, entitlement, standing, priority (rules L1, D4, D5, U1)."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.crowd import Crowd
from evenhand.explain.ranks import SLACK, Ranks
from evenhand.explain.words import gpus, number, reason
from evenhand.shapes import IntArray
from evenhand_models import Reason, ReasonCode


class Claims:
    """Causes that lie in the tree, for one group's jobs of one shape."""

    def __init__(self, aftermath: Aftermath, ranks: Ranks) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._ranks = ranks
        self._rivals: dict[tuple[int, int, bool], Reason | None] = {}
        self._over: dict[tuple[int, float], Reason | None] = {}
        self._holds: dict[int, str] = {}
        self._capped: dict[int, list[tuple[int, int]]] = {}
        self._filled: dict[int, list[tuple[int, float, float]]] = {}

    def limits(self, group: int, size: int) -> list[tuple[int, int]]:
        """Groups whose limit forbids so many more GPUs, the lowest first, and the limit each would need."""
        capped = self._capped.get(group)
        if capped is None:
            tree = self._s.tree
            above = ((c, tree.groups[c].max_gpus) for c in reversed(tree.path[group]))
            capped = self._capped[group] = [(c, limit) for c, limit in above if limit is not None]
        found = []
        for c, limit in capped:
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
        filled = self._filled.get(group)
        if filled is None:
            filled = self._filled[group] = self._fillable(group)
        for side, held, entitled in filled:
            if held + charged > entitled + SLACK:
                message = f"{self._full(side)}, and {number(charged)} more would make {number(held + charged)}."
                return reason(ReasonCode.GROUP_OVER_ENTITLEMENT, message, (self._ranks.ref(side),))
        return None

    def _fillable(self, group: int) -> list[tuple[int, float, float]]:
        """The own jobs of a group and the groups above that are entitled to less than they want, the lowest first.

        With each what it holds and what it is entitled to, charged GPUs.
        """
        r, found = self._ranks, []
        for side in (r.leaf(group), *reversed(self._s.tree.path[group])):
            held, entitled = float(r.held[side]), float(r.entitled[side])
            if entitled < r.wanted(side) - SLACK:
                found.append((side, held, entitled))
        return found

    def _full(self, side: int) -> str:
        """Return `Group A holds 8 of the 8 charged GPUs that it is entitled to`."""
        found = self._holds.get(side)
        if found is None:
            r = self._ranks
            who, verb = r.name(side), "hold" if side >= r.groups else "holds"
            amounts = f"{number(r.held[side])} of the {number(r.entitled[side])} charged GPUs"
            found = self._holds[side] = f"{who[0].upper()}{who[1:]} {verb} {amounts} that it is entitled to"
        return found

    def rivals(self, group: int, budgeted: bool, crowd: Crowd, groups: IntArray) -> Reason | None:
        """Groups that come first, with what they hold on nodes the job could use.

        Parameters
        ----------
        groups : all that will be asked about for this crowd, the group included, ascending; some are worked out at once.
        """
        key = (crowd.number, group, budgeted)
        if key not in self._rivals and not budgeted:
            self._rivals[key] = self._allocated(group, crowd)
        elif key not in self._rivals:
            if not crowd.groups.size:
                return None
            for g, found in self._ahead_of(group, groups, crowd):
                self._rivals[crowd.number, g, True] = found
        return self._rivals[key]

    def _ahead_of(self, group: int, groups: IntArray, crowd: Crowd) -> Iterator[tuple[int, Reason | None]]:
        """What a group and some others hear of those that come first."""
        some, lead = self._ranks.leaders(group, groups, crowd.groups)
        told = crowd.amounts_of(lead.first)
        for g, amounts, sides, count, mine in zip(some, told, lead.sides, lead.counts, lead.mine, strict=True):
            yield g, self._come_first(mine, amounts, sides, count) if count else None

    def _come_first(self, mine: int, amounts: str, sides: list[int], count: int) -> Reason:
        """Describe the sides that stand first, and name how many more there are."""
        r = self._ranks
        told = "; ".join([r.told(side) for side in sides])
        rest = count - len(sides)
        if rest > 0:
            told += f"; and {rest} more {'groups' if rest > 1 else 'group'}"
        message = f"Work of groups that come first has {amounts} on nodes it could use ({told}), while {r.told(mine)}."
        return reason(ReasonCode.LOWER_RANK, message, [r.ref(side) for side in (*sides, mine)])

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
