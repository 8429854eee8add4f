"""O4's handover: a higher priority may take over from a lower one of its own group.

For each cut between adjacent priorities of a leaf: h <= GPUs started above, h <= GPUs preempted below; h is rewarded.
"""

from __future__ import annotations

from collections import defaultdict

from evenhand.outcome import ARRIVALS
from evenhand.program.prices import SCALE
from evenhand.program.variables import Program
from evenhand.solvers.linear_model import FREE


def applies(program: Program) -> bool:
    """Whether some group has jobs of several priorities."""
    s = program.snapshot
    return bool((s.level_count[s.budgeted] > 1).any())


def add_rows(program: Program) -> None:
    """Two rows per leaf and cut that has starters above and stoppable jobs below."""
    s, model = program.snapshot, program.model
    groups: dict[int, list[int]] = defaultdict(list)
    for unit in (*program.index.pending, *program.index.running):
        if s.budgeted[unit.job] and s.level_count[unit.job] > 1:
            groups[int(s.group[unit.job])].append(unit.job)
    for g, jobs in sorted(groups.items()):
        count = int(s.level_count[jobs[0]])
        for cut in range(1, count):
            starts = [
                m
                for j in jobs
                if (s.pending[j] or s.hit[j]) and s.level_rank[j] >= cut
                for m in program.columns.by_unit.get(j, ())
                if m.move in ARRIVALS
            ]
            stoppable = [j for j in jobs if s.running[j] and s.level_rank[j] < cut and not s.pinned[j] and not s.hit[j]]
            if not starts or not stoppable:
                continue
            below = sum(int(s.held[j]) for j in stoppable)
            cost = round(program.prices.handover(count) * SCALE)
            name = lambda g=g, cut=cut: f"O4[{s.tree.ids[g]} cut {cut}]"  # noqa: E731
            taken = model.column(0, below, cost, name)
            model.row([taken, *(m.column for m in starts)], [1, *(-m.gpus for m in starts)], -FREE, 0, name)
            stays = [(m.column, int(s.held[j])) for j in stoppable for m in program.columns.by_unit.get(j, ())]
            model.row([taken, *(c for c, _ in stays)], [1, *(q for _, q in stays)], -FREE, below, name)
