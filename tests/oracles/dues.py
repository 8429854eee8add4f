"""Rules D and the constants of T and O, computed the plain way: subsets, breakpoints, augmenting paths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, pairwise

from evenhand_models import ClusterState, Job, JobState, Plan
from oracles.reading import Reader
from oracles.splits import most_drawn

Target = dict[str, dict[str, float]]
"""The fair target: GPUs by type, by the group of the leaf."""
SLACK = 1e-6


@dataclass
class Due:
    """What a child of a node is owed; `group` is its id, of an own-jobs child its parent's."""

    group: str
    own: bool
    jobs: list[Job]
    weight: float
    used: float
    most: float
    """Demand cut to the limit, min(D, M)."""
    floor: float
    """Guarantee p, after scaling once entitlements are known."""
    entitled: float = 0.0
    claim: float = 1.0
    """What a GPU short weighs, height aside (O2)."""
    part: float = 0.0
    """What the shares on the way down make of the whole, 0 if it can hold nothing (O3)."""

    def rank(self, extra: float = 0.0) -> tuple[float, str]:
        """What a leaf's turn is decided by, with so many GPU-hours more (O3)."""
        return (float(f"{(self.used + extra) / self.part:.9g}") if self.part > 0 else math.inf, self.group)


class Dues:
    """Entitlements of groups (`of`) and of leaves (`leaf`, only those there are), by group id."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.jobs = [job for job in reader.jobs if reader.budgeted(job)]
        self.of: dict[str, Due] = {}
        self.leaf: dict[str, Due] = {}
        self._under: dict[str | None, list[Due]] = {}
        for group in reader.children(None):
            self._measure(group)
        self._under[None] = [self.of[g] for g in reader.children(None)]
        self._split(None, sum(reader.capacity[t] * reader.rate[t] for t in reader.types))

    def below(self, group: str | None) -> list[Job]:
        """Budgeted live jobs of a group and all below; of None: all."""
        groups = self.reader.group_of
        return [j for j in self.jobs if group is None or group in self.reader.lineage(str(groups[j.id]))]

    def flow(self, jobs: list[Job]) -> float:
        """Most charged GPUs that jobs could hold at once: the least cut over sets of types (D1)."""
        reader = self.reader
        cuts = []
        for n in range(len(reader.types) + 1):
            for types in combinations(reader.types, n):
                paid = sum(reader.capacity[t] * reader.rate[t] for t in types)
                cuts.append(paid + sum(reader.demand(j) for j in jobs if not set(reader.kinds(j)) <= set(types)))
        return min(cuts)

    def _measure(self, name: str) -> Due:
        """Compute demand, limit, guarantee and usage of a group, children first (D1 to D3)."""
        reader = self.reader
        group = next(g for g in reader.state.groups if g.id == name)
        under = [self._measure(child) for child in reader.children(name)]
        own = [j for j in self.jobs if reader.group_of[j.id] == name]
        used = sum(due.used for due in under) + reader.used_hours[name]
        if under and own:
            weight = sum(due.weight for due in under) / len(under)
            under.append(Due(name, True, own, weight, reader.used_hours[name], self.flow(own), 0.0))
        self._under[name] = under
        jobs = self.below(name)
        rates = [reader.rate[t] for j in jobs for t in reader.kinds(j)] or [1.0]
        demand = self.flow(jobs)
        if under:
            demand = min(demand, sum(due.most for due in under))
        limit = math.inf if group.max_gpus is None else group.max_gpus * max(rates)
        promised = max((group.guaranteed_gpus or 0) * min(rates), sum(due.floor for due in under))
        most = min(demand, limit)
        self.of[name] = Due(name, False, jobs, reader.share[name], used, most, min(promised, most))
        if own or not under:
            self.leaf[name] = under[-1] if under else self.of[name]
        return self.of[name]

    def _split(self, name: str | None, amount: float) -> None:
        """Divide what a node holds among its children (D4)."""
        hours = self.reader.policy.horizon_s / 3600
        takers = [due for due in self._under[name] if due.most > 0 and due.weight > 0]
        used, shares = math.fsum(due.used for due in takers), math.fsum(due.weight for due in takers)
        for due in takers:
            behind = due.weight * used / (due.used * shares) if due.used * shares > 0 else math.inf
            steep = self.reader.policy.urgency * math.log10(behind) if behind > 1 else 0.0
            due.claim = round(10 ** min(math.log10(300), steep), 3)
            due.part = due.weight / shares * (1.0 if name is None else self.of[name].part)
        promised = sum(due.floor for due in takers)
        if promised > amount:
            for due in takers:
                due.floor = due.entitled = due.floor * amount / promised
        else:
            level = self._level(takers, min(amount, sum(due.most for due in takers)), hours)
            for due in takers:
                due.entitled = min(max(level * due.weight - due.used / hours, due.floor), due.most)
        for due in self._under[name]:
            if not due.own:
                self._split(due.group, due.entitled)

    @staticmethod
    def _level(takers: list[Due], amount: float, hours: float) -> float:
        """Find the lambda at which the clipped lines sum up to the amount: exact, from bend to bend."""

        def total(level: float) -> float:
            return sum(min(max(level * d.weight - d.used / hours, d.floor), d.most) for d in takers)

        bends = sorted({(end + d.used / hours) / d.weight for d in takers for end in (d.floor, d.most)})
        for low, high in pairwise(bends):
            if total(high) >= amount:
                rise = total(high) - total(low)
                return low + (high - low) * (amount - total(low)) / rise if rise > 0 else high
        return bends[-1] if bends else 0.0

    def has_children(self, group: str) -> bool:
        """Whether a group has child groups."""
        return bool(self.reader.children(group))

    def height(self, group: str) -> int:
        """Height of a group in the tree (O2)."""
        return max((1 + self.height(child) for child in self.reader.children(group)), default=0)

    def reach(self, group: str, amount: float) -> float:
        """Largest sum of demands below a group that an amount pays for, in whole sixteenths."""
        paid = math.floor(16 * amount + SLACK) / 16
        jobs = self.below(group)
        return best_sum([sixteenths(p * self.reader.demand(j) / j.gpus) for j in jobs for p in parts(j)], paid)

    def owed_gangs(self) -> set[str]:
        """Ids of the gangs owed at some group or at the cluster (O3)."""
        reader = self.reader
        waiting: dict[str | None, dict[str, list[Job]]] = {}
        for job in self.jobs:
            group = str(reader.group_of[job.id])
            if reader.demand(job) <= self.leaf[group].entitled + SLACK:
                continue
            line = [g for g in reader.lineage(group) if g != group or self.leaf[group].own]
            at = next((g for g in line if self.of[g].entitled >= reader.demand(job) - SLACK), None)
            waiting.setdefault(at, {}).setdefault(group, []).append(job)
        owed = {
            job.id
            for job in self.jobs
            if reader.hit(job) and reader.now < reader.started(job) + reader.protection_s(job)
        }
        for at, gangs in waiting.items():
            leaves = {str(reader.group_of[j.id]) for j in self.below(at)}
            hungry = {g for g in leaves if self.leaf[g].most > self.leaf[g].entitled + SLACK}
            whole = (
                sum(reader.capacity[t] * reader.rate[t] for t in reader.types) if at is None else self.of[at].entitled
            )
            beside = whole - math.fsum(self.leaf[g].entitled for g in leaves - hungry)
            small = {g: [j for j in line if reader.demand(j) <= beside + SLACK] for g, line in gangs.items()}
            gang = self._asked(hungry, small) or self._asked(leaves, gangs)
            if gang is not None:
                owed.add(gang.id)
        return owed | self._debug_runs()

    def debug(self, job: Job) -> bool:
        """Whether a job counts as a debug run (O3)."""
        reader = self.reader
        fits = any(node.gpus >= job.gpus for node in reader.state.nodes)
        short = 0 < reader.protection_s(job) <= reader.policy.debug_contract_s
        return fits and reader.budgeted(job) and not job.contract.resumable and short

    def _debug_runs(self) -> set[str]:
        """Ids of the debug runs that are owed: groups take turns, the one with the shortest list so far first (O3)."""
        reader, owed, asked = self.reader, set[str](), dict[str, int]()
        left = [
            j
            for j in self.jobs
            if self.debug(j)
            and (
                any(reader.capacity[t] for t in reader.fitting[j.id])
                if j.state is JobState.PENDING
                else reader.hit(j) or reader.now < reader.started(j) + reader.protection_s(j)
            )
        ]
        room = sum(reader.capacity[t] for t in reader.types) * reader.policy.debug_share
        begun = {j.id for j in left if j.state is not JobState.PENDING and not reader.hit(j)}
        taken, full = sum(j.gpus for j in left if j.id in begun), False
        while left:
            heads: dict[str, Job] = {}
            for job in sorted(left, key=lambda j: (-j.priority, min(j.submitted_at, reader.state.now), j.id)):
                heads.setdefault(str(reader.group_of[job.id]), job)
            group = min(heads, key=lambda g: (asked.get(g, 0) + heads[g].gpus, g))
            job = heads[group]
            left.remove(job)
            asked[group] = asked.get(group, 0) + job.gpus
            if job.id not in begun and job.gpus <= room:
                full = full or taken + job.gpus > room
                if not full:
                    taken += job.gpus
                    owed.add(job.id)
        return owed | begun

    def gang_weight(self, job: Job) -> float:
        """What a GPU of an owed gang weighs (O3): all levels at which its group cannot pay for it."""
        if self.reader.hit(job):
            return 300.0
        group = str(self.reader.group_of[job.id])
        weight = self.leaf[group].claim
        least = 3.0 if self.debug(job) else 0.0
        for above in self.reader.lineage(group):
            if self.reader.children(above):
                if self.of[above].entitled >= self.reader.demand(job) - SLACK:
                    break
                weight += self.of[above].claim * 2 ** min(self.height(above), 10)
        return max(weight, least)

    def _asked(self, rivals: set[str], gangs: dict[str, list[Job]]) -> Job | None:
        """The first gang of the rival that stands first, if it does so with one contract of the gang charged."""
        line = sorted(self.leaf[group].rank() for group in rivals)
        mine = gangs.get(line[0][1]) if line else None
        if not mine:
            return None
        gang = min(mine, key=lambda j: (-j.priority, j.submitted_at, j.id))
        extra = self.reader.demand(gang) * self.reader.protection_s(gang) / 3600
        return gang if len(line) == 1 or self.leaf[line[0][1]].rank(extra) < line[1] else None


def stated_target(state: ClusterState, plan: Plan) -> Target:
    """Return the target a plan states for each leaf: a group's row less the rows of its child groups."""
    said = {row.group: row.target for row in plan.groups}
    target = {group: dict(bundle) for group, bundle in said.items()}
    for group in state.groups:
        if group.parent is not None:
            for kind, gpus in said[group.id].items():
                above = target[group.parent]
                above[kind] = max(0.0, above.get(kind, 0.0) - gpus)
    return target


def parts(job: Job) -> list[int]:
    """A gang in the parts it may have: its least size and every further worker (G1, few enough here for no strides)."""
    worker, low = job.worker_gpus or job.gpus_per_node or 1, job.min_gpus or job.gpus
    return [low, *[worker] * ((job.gpus - low) // worker)]


def sixteenths(gpus: float) -> float:
    """Round what is owed to a gang down to a sixteenth of a GPU (O); amounts are whole thousandths."""
    return round(1000 * gpus) * 16 // 1000 / 16


def sixteenths_held(gpus: float) -> float:
    """Round what one gang holds up to a sixteenth of a GPU (O)."""
    return math.ceil(round(1000 * gpus) * 16 / 1000) / 16


def best_sum(sizes: list[float], amount: float) -> float:
    """Return the largest sum of a subset that is not above an amount, with the slack of the rules."""
    sums = {0.0}
    for size in sizes:
        sums |= {s + size for s in sums if s + size <= amount + SLACK}
    return max(sums)


def drawn(reader: Reader, jobs: list[Job], target: dict[str, float]) -> float:
    """Return V: the most throughput that jobs could draw from a target if they could be split (T5)."""
    return most_drawn({j.id: reader.speed[j.id] for j in jobs}, {j.id: float(j.gpus) for j in jobs}, target)
