"""D1 to D5: what every group is owed this round, in charged GPUs, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from math import exp, floor, fsum, inf, log
from typing import TypeVar

from evenhand.audit.amounts import TOLERANCE, largest_flow, largest_subset
from evenhand.audit.jobs import JobReading
from evenhand.audit.numbers import SIXTEEN, sixteenths
from evenhand.audit.owed import is_debug, owed_gangs
from evenhand.audit.reading import MILLI, Reading
from evenhand.audit.split import Claim, scaled_floors, split

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Dues:
    """What is owed. All mappings are by group; inner groups count everything below them.

    Attributes
    ----------
    demand, own_demand : mapping of str to int
        `D_c`, and that of its own jobs, thousandths of a charged GPU (D1).
    limit : mapping of str to int or None
        `M_c`, thousandths; None: no limit.
    guarantee : mapping of str to float
        `p_c` after D4's scaling, charged GPUs (D2).
    usage : mapping of str to float
        `u_c`, charged GPU-hours (D3).
    entitled : mapping of str to float
        `e_c`, charged GPUs (D4).
    leaf : mapping of str to float
        Entitlement of the leaf of each group: its own-jobs child, or itself if it has no child groups.
    standing : mapping of str to int
        Rank among siblings, from 1 (D5).
    within, within_guarantee : mapping of str to int
        `a_c` and `a'_c`, whole sixteenths: the largest sum of gangs below c not above e_c, and p_c (O).
    claim, leaf_claim : mapping of str to float
        What a GPU short weighs at a group and at its leaf, height aside; groups that want nothing are left out (O2).
    owed : tuple of str
        Ids of the owed gangs (O3).
    """

    demand: Mapping[str, int]
    own_demand: Mapping[str, int]
    limit: Mapping[str, int | None]
    guarantee: Mapping[str, float]
    usage: Mapping[str, float]
    entitled: Mapping[str, float]
    leaf: Mapping[str, float]
    standing: Mapping[str, int]
    within: Mapping[str, int]
    within_guarantee: Mapping[str, int]
    claim: Mapping[str, float]
    leaf_claim: Mapping[str, float]
    owed: tuple[str, ...]

    def gang_weight(self, reading: Reading, job: JobReading) -> float:
        """Return what a GPU of an owed job weighs: as one short at every level it exceeds (O3).

        3 at least for debug runs; 300 for hit jobs.
        """
        if job.hit:
            return 300.0
        group = str(job.group)
        exceeded = takewhile(
            lambda at: self.entitled[at] < job.demand / MILLI - TOLERANCE,
            reading.tree.path(group)[0 if reading.tree.below(group) else 1 :],
        )
        above = (self.claim.get(at, 1.0) * (1 << min(10, reading.tree.height[at])) for at in exceeded)
        weight = fsum([self.leaf_claim.get(group, 1.0), *above])
        return max(3.0, weight) if is_debug(reading, job) else weight


def dues(reading: Reading) -> Dues:
    """Work out what every group is owed, from the reading alone."""
    work = _Work(reading)
    work.add_up()
    work.hand_down()
    guaranteed = {group.id for group in reading.state.groups if group.guaranteed_gpus is not None}
    return Dues(
        demand=work.demand,
        own_demand=work.own_demand,
        limit=work.limit,
        guarantee=work.scaled,
        usage=work.usage,
        entitled=work.entitled,
        leaf=work.leaf,
        standing=_standings(reading, work.usage),
        within={
            group: _within(gangs, work.entitled[group])
            for group, gangs in work.gangs.items()
            if reading.tree.below(group)
        },
        within_guarantee={
            group: _within(gangs, work.scaled[group]) for group, gangs in work.gangs.items() if group in guaranteed
        },
        claim=work.claim,
        leaf_claim=work.leaf_claim,
        owed=owed_gangs(
            reading,
            work.leaf_part,
            work.entitled,
            work.leaf,
            {g: (work.own_demand[g] if reading.tree.below(g) else work.cap(g)) / MILLI for g in reading.members},
        ),
    )


def _add(counts: Mapping[K, int], to: dict[K, int]) -> None:
    """Add counts to others."""
    for what, count in counts.items():
        to[what] = to.get(what, 0) + count


def _within(gangs: Mapping[int, int], owed: float) -> int:
    """Return the largest sum of gangs not above what is owed, all in whole sixteenths (O)."""
    parts: dict[int, int] = {}
    for milli, count in gangs.items():
        part = sixteenths(milli)
        parts[part] = parts.get(part, 0) + count
    return largest_subset(parts, floor(owed * SIXTEEN + TOLERANCE))


def _standings(reading: Reading, usage: Mapping[str, float]) -> dict[str, int]:
    """Rank siblings by usage over weight, then id; weight 0 last (D5)."""
    weight = reading.tree.weight
    return {
        group: rank
        for siblings in reading.tree.children.values()
        for rank, group in enumerate(
            sorted(siblings, key=lambda g: (usage[g] / weight[g] if weight[g] > 0 else inf, g)), start=1
        )
    }


class _Work:
    """The sums on the way up the tree and the parts on the way down."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.tree = reading.tree
        self.charged = {kind: gpus * reading.charge[kind] for kind, gpus in reading.capacity.items()}
        order = self.tree.order
        self.usage = {group: max(0.0, reading.usage[group]) for group in order}
        self.gangs: dict[str, dict[int, int]] = {group: {} for group in order}
        self.wants: dict[str, dict[tuple[str, ...], int]] = {group: {} for group in order}
        self.demand: dict[str, int] = {}
        self.own_demand: dict[str, int] = {}
        self.limit: dict[str, int | None] = {}
        self.floor: dict[str, int] = {}
        self.scaled: dict[str, float] = dict.fromkeys(order, 0.0)
        self.entitled: dict[str, float] = dict.fromkeys(order, 0.0)
        self.leaf: dict[str, float] = {}
        self.claim: dict[str, float] = {}
        self.leaf_claim: dict[str, float] = {}
        self.part: dict[str, float] = {}
        self.leaf_part: dict[str, float] = {}
        self._parts: dict[str, Fraction] = {}

    def cap(self, group: str) -> int:
        """Return the least of a group's demand and limit, thousandths."""
        limit = self.limit[group]
        return self.demand[group] if limit is None else min(self.demand[group], limit)

    def add_up(self) -> None:
        """Sum usage, gangs, demands and guarantees from the bottom up (D1 to D3)."""
        for group, kinds in self.reading.kinds.items():
            gangs, wants = self.gangs[group], self.wants[group]
            for kind, count in kinds.items():
                wants[kind.reach] = wants.get(kind.reach, 0) + count * kind.demand
                charge = kind.demand // kind.gpus
                for part in kind.parts:
                    gangs[part * charge] = gangs.get(part * charge, 0) + count
        named = {group.id: group for group in self.reading.state.groups}
        for group in reversed(self.tree.order):
            self.own_demand[group] = largest_flow(self.wants[group], self.charged)
            below = self.tree.below(group)
            for child in below:
                _add(self.gangs[child], self.gangs[group])
                _add(self.wants[child], self.wants[group])
            self.usage[group] = fsum([self.usage[group], *(self.usage[child] for child in below)])
            parts = self.own_demand[group] + sum(self.cap(child) for child in below)
            flow = largest_flow(self.wants[group], self.charged) if below else self.own_demand[group]
            self.demand[group] = min(flow, parts)
            rates = [self.reading.charge[kind] for reach in self.wants[group] for kind in reach]
            most, promised = named[group].max_gpus, named[group].guaranteed_gpus
            self.limit[group] = None if most is None else most * max(rates, default=0)
            own_floor = (promised or 0) * min(rates, default=0)
            inner_floor = sum(self.floor[child] for child in below)
            self.floor[group] = min(max(own_floor, inner_floor), self.cap(group))

    def hand_down(self) -> None:
        """Divide the cluster from the top down (D4)."""
        self._divide(None, Fraction(sum(self.charged.values()), MILLI))
        for group in self.tree.order:
            if self.tree.below(group):
                self._divide(group, self._parts.get(group, Fraction(0)))
            else:
                self.leaf[group] = self.entitled[group]
                self.leaf_claim[group] = self.claim.get(group, 1.0)
                self.leaf_part[group] = self.part.get(group, 0.0)

    def _divide(self, above: str | None, amount: Fraction) -> None:
        """Divide what a group (None: the cluster) holds among its children and its own jobs."""
        active = [g for g in self.tree.below(above) if self.tree.weight[g] > 0 and self.cap(g) > 0]
        claims = [
            Claim(
                Fraction(self.tree.weight[g]),
                self._per_hour(self.usage[g]),
                Fraction(self.floor[g], MILLI),
                Fraction(self.cap(g), MILLI),
            )
            for g in active
        ]
        scaled = scaled_floors(amount, [claim.floor for claim in claims])
        if above is not None and self.own_demand[above] > 0:
            past = self._per_hour(max(0.0, self.reading.usage[above]))
            most = Fraction(self.own_demand[above], MILLI)
            claims.append(Claim(Fraction(self.tree.own_weight(above)), past, Fraction(0), most))
        self._judge(above, active)
        parts = split(amount, claims)
        if above is not None:
            self.leaf[above] = float(parts[-1]) if self.own_demand[above] > 0 else 0.0
        for group, part, promised in zip(active, parts, scaled, strict=False):
            self._parts[group] = part
            self.entitled[group] = float(part)
            self.scaled[group] = float(promised)

    def _per_hour(self, used: float) -> Fraction:
        """Return what usage comes to in GPUs over the horizon."""
        hours, parts = used.as_integer_ratio()
        return Fraction(hours * 3600, parts * self.reading.policy.horizon_s)

    def _judge(self, above: str | None, active: list[str]) -> None:
        """Weigh the claims of siblings by the usage of all for their shares, over their own (O2), and their parts (O3)."""
        rows = [(group, self.claim, self.part, self.usage[group], self.tree.weight[group]) for group in active]
        if above is not None and self.own_demand[above] > 0:
            own_used = max(0.0, self.reading.usage[above])
            rows.append((above, self.leaf_claim, self.leaf_part, own_used, self.tree.own_weight(above)))
        used, share = fsum(row[3] for row in rows), fsum(row[4] for row in rows)
        whole = 1.0 if above is None else self.part.get(above, 0.0)
        for group, claim, part, own_used, weight in rows:
            part[group] = whole * weight / share
            behind = weight * used / (own_used * share) if own_used * share > 0 else inf
            steep = self.reading.policy.urgency * log(max(1.0, behind))
            claim[group] = round(1000 * exp(min(steep, log(300)))) / 1000
