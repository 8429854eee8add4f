"""What a start brings and a stop costs between full rounds, in the engine's own prices (rules O2 to O7)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from evenhand.claims import Claims, weight_below
from evenhand.program.prices import AGE_STEP, PRESENCE, PRIORITY, STOP, WEIGHT_DEBUG
from evenhand.replay.facts import JobFacts
from evenhand.replay.schedulers.engine.owed import Owed
from evenhand.replay.world import World
from evenhand.snapshot import AGE_STEPS_S

SLACK_MILLI = 1e-3


class Worth:
    """Prices for one world; entitlements are those of `owed`, what groups hold is read as it is."""

    def __init__(self, world: World) -> None:
        self._w = world
        policy = world.policy
        self._lookahead = float(policy.lookahead_s)
        self._started = 1.0 - min(1.0, policy.restart_cost_s / self._lookahead)
        total = sum(n.gpus for n in world.ground.nodes)
        self._epsilon = 1.0 / (64.0 * total) if total else 0.0
        self._lvl, self._levels = _places(world.facts)
        self.gangs: frozenset[int] = frozenset()
        """Gangs owed whole at an ancestor, as the last full round has found (rule O3)."""
        self._debug_known = ((-1, -1), 0.0)
        self._leaf: list[float] = []
        self._group: list[float] = []
        self._claims = Claims((), ())

    def use(self, owed: Owed) -> None:
        """Judge by these entitlements from now on."""
        self._leaf = [1000.0 * x + SLACK_MILLI for x in owed.leaf]
        self._group = [1000.0 * x + SLACK_MILLI for x in owed.group]
        self._claims = owed.claims

    def served(self, group: int) -> float:
        """What a group's own jobs hold over what they are owed: the least is served first."""
        return self._w.held_milli[group] / max(self._leaf[group], SLACK_MILLI)

    def order(self, job: int) -> float:
        """O4 of a GPU of a job that runs."""
        age = bisect_right(AGE_STEPS_S, self._w.now_s - self._w.facts.submit_s[job])
        return PRESENCE + PRIORITY * self._lvl[job] + AGE_STEP * age

    def start(self, job: int, gpu_type: int) -> float:
        """What a start brings beside what its group is owed (O4, O5, O7)."""
        f = self._w.facts
        speed = f.shapes[f.shape[job]].speed_milli[gpu_type] / 1000.0
        return f.size[job] * (self.order(job) + speed * self._started) * (1.0 if f.budgeted[job] else self._epsilon)

    def stop(self, job: int) -> float:
        """What stopping a running job costs beside what its group is owed (O4 to O7)."""
        w, f, run = self._w, self._w.facts, self._w.runs[job]
        speed = f.shapes[f.shape[job]].speed_milli[run.gpu_type] / 1000.0
        last = run.start_s
        if f.resumable[job]:
            last = w.checkpointed_s(job) or last
        most = f.contract_s[job] if f.resumable[job] else w.policy.max_protection_s
        lost = speed * min(w.now_s - last, most) / self._lookahead * w.policy.lost_work_weight
        if not f.resumable[job]:
            lost += speed
        change = STOP + PRIORITY * (1.0 - self._lvl[job])
        price = run.gpus * (self.order(job) + speed + lost + change)
        return price if run.milli else price * self._epsilon

    def handover(self, job: int, victims: list[int]) -> float:
        """Credit for GPUs that a higher priority takes over from lower ones of its own group (O4)."""
        f = self._w.facts
        cuts = self._levels[job] - 1
        if cuts < 1:
            return 0.0
        below = [v for v in victims if f.group[v] == f.group[job] and f.priority[v] < f.priority[job]]
        crossed = sum(self._w.runs[v].gpus * round((self._lvl[job] - self._lvl[v]) * cuts) for v in below)
        return PRIORITY / cuts * min(crossed, cuts * f.size[job])

    def due(self, job: int) -> float:
        """Weight of the levels at which a GPU of this job is owed: the job fits below what its groups are owed."""
        f = self._w.facts
        if not f.budgeted[job]:
            return 0.0
        levels = self.owed_gain([(f.group[job], f.demand_milli[job])]) / max(1, f.demand_milli[job])
        return levels + self._owed_weight(job)

    def whole(self, job: int) -> float:
        """What it is worth that a job owed whole runs (O3), in GPUs."""
        return self._owed_weight(job) * self._w.facts.size[job]

    def _owed_weight(self, job: int) -> float:
        """What a GPU of a job weighs that is owed whole: a large gang or a waiting debug run (O3)."""
        f = self._w.facts
        weight = self._gang_weight(job) if job in self.gangs else 0.0
        if f.debug[job] and job not in self._w.runs and f.size[job] <= self._debug_left():
            weight = max(weight, WEIGHT_DEBUG)
        return weight

    def _debug_left(self) -> float:
        """GPUs that debug runs may be owed beside those inside their contracts."""
        w = self._w
        now = (w.now_s, w.displacements)
        if self._debug_known[0] != now:
            inside = sum(run.gpus for j, run in w.runs.items() if w.facts.debug[j] and w.now_s < run.protected_until_s)
            self._debug_known = (now, w.policy.debug_share * sum(w.ground.capacity) - inside)
        return self._debug_known[1]

    def _gang_weight(self, job: int) -> float:
        """What a GPU of a gang owed whole weighs (O3)."""
        f = self._w.facts
        milli = f.demand_milli[job]
        return weight_below(self._w.tree, self._claims, f.group[job], milli, self._group)

    def owed_gain(self, changes: list[tuple[int, int]]) -> float:
        """By how much weighted shortfalls (O2, O3) shrink if groups' own jobs held so much more, GPUs times 1,000.

        Gains count where the whole change is within what is owed (whole gangs), losses to the last sliver.

        Parameters
        ----------
        changes : pairs (group, thousandths of a charged GPU, negative for less).
        """
        w, tree = self._w, self._w.tree
        own: dict[int, int] = defaultdict(int)
        inner: dict[int, int] = defaultdict(int)
        for g, milli in changes:
            own[g] += milli
            for c in tree.path[g]:
                inner[c] += milli
        total = 0.0
        for g, milli in own.items():
            total += self._claims.leaf[g] * _gain(self._leaf[g], w.held_milli[g], milli)
        for c, milli in inner.items():
            if tree.height[c]:
                total += self._claims.inner[c] * _gain(self._group[c], w.below_milli[c], milli)
        return total


def _gain(owed: float, held: int, more: int) -> float:
    if more > 0:
        return float(more) if held + more <= owed else 0.0
    after = owed - held - more
    if after <= 0:
        return 0.0
    before = owed - held
    return (before if before > 0 else 0.0) - after


def _places(facts: JobFacts) -> tuple[list[float], list[int]]:
    """Place of each job's priority among those of its group and kind, 0 to 1, and how many there are (rule O4)."""
    found: dict[tuple[int, bool], set[int]] = defaultdict(set)
    for g, b, p in zip(facts.group, facts.budgeted, facts.priority, strict=True):
        found[g, b].add(p)
    ordered = {key: {p: i for i, p in enumerate(sorted(values))} for key, values in found.items()}
    place, count = [], []
    for g, b, p in zip(facts.group, facts.budgeted, facts.priority, strict=True):
        ranks = ordered[g, b]
        place.append(ranks[p] / (len(ranks) - 1) if len(ranks) > 1 else 1.0)
        count.append(len(ranks))
    return place, count
