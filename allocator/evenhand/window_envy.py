"""Envy over many rounds: who would have done better with another's GPUs, what rounding left being paid back.

For groups i and l, over the rounds in which both were owed something:

    eps(i, l) = [ sum_t v_i((e_i/e_l) X_l) - sum_t throughput of i ]+  /  sum_t floor_i

With constant speeds and fair targets it falls as 1/T: a round's rounding is at most about a gang, and what
one round gave too little is owed in those that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.entitlement import entitle
from evenhand.fairness.forced import least_slack
from evenhand.fairness.group_value import FloatArray, GroupValues, group_values
from evenhand.fairness.pins import pinned_split
from evenhand.fairness.swapped import value_of_others
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand_models import ClusterState, Plan

_DUST = 1e-9


@dataclass(frozen=True)
class WindowPair:
    """One pair of groups over the window.

    Attributes
    ----------
    group, envied : who would have done better with whose GPUs, scaled to its own entitlement.
    rounds : rounds in which both were owed something.
    envy : throughput it would have gained, as a share of its floors in those rounds.
    forced_by_pins : the part that protected jobs forced on any plan, round by round; ours : the rest.
    """

    group: str
    envied: str
    rounds: int
    envy: float
    forced_by_pins: float
    ours: float


@dataclass(frozen=True)
class WindowReport:
    """Envy and sharing incentive over a series of rounds.

    Attributes
    ----------
    rounds : rounds counted; pairs : those that envy, the worst first.
    sharing_incentive : throughput over floor, both summed over the rounds, by group.
    """

    rounds: int
    pairs: tuple[WindowPair, ...]
    sharing_incentive: Mapping[str, float]

    @property
    def max_envy(self) -> float:
        """Largest envy of any pair, 0 if there is none."""
        return max((pair.envy for pair in self.pairs), default=0.0)

    @property
    def least_sharing_incentive(self) -> float | None:
        """Least sharing incentive of any group; None if no group had a floor."""
        return min(self.sharing_incentive.values(), default=None)


def window_envy(rounds: Iterable[tuple[ClusterState, Plan]]) -> WindowReport:
    """Envy over a series of rounds of equal length.

    Parameters
    ----------
    rounds : each round's state and the plan that answered it.
    """
    window = EnvyWindow()
    for state, plan in rounds:
        window.add(state, plan)
    return window.report()


class EnvyWindow:
    """Adds up rounds as they come; holds sums by pair, no states and no plans."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._rounds = 0
        self._pair = np.zeros((4, 0, 0))  # what i would have gained from l, forced, floors of i, rounds
        self._own = np.zeros((2, 0))  # throughput, floors

    def add(self, state: ClusterState, plan: Plan, weight: float = 1.0) -> None:
        """Count a round.

        Parameters
        ----------
        state, plan : the state and the plan that answered it, under the plan's policy.
        weight : how long it lasted, in any unit that all rounds share, above 0.
        """
        snapshot = take_snapshot(state, plan.policy)
        values, job_class = group_values(snapshot, entitle(snapshot))
        held, target, reached = _own_figures(snapshot, plan, values.leaves)
        forced = forced_envy(values, target, pinned_split(snapshot, values, job_class))
        self.count(snapshot.tree.ids, values, held, reached, forced, weight)

    def count(
        self, ids: Sequence[str], values: GroupValues, held: FloatArray, reached: FloatArray, forced: FloatArray,
        weight: float = 1.0,
    ) -> None:  # fmt: skip
        """Count a round by its figures; L leaves that are owed something, T types.

        Parameters
        ----------
        ids : of the groups that `values.leaves` points to.
        held : GPUs, float [L, T]; reached : throughput, float [L].
        forced : envy that pins force on any plan, throughput, float [L, L].
        """
        gained = value_of_others(values, held) - reached[:, None]
        self._rounds += 1
        at = self._places([ids[int(leaf)] for leaf in values.leaves])
        square = np.ix_(np.arange(4), at, at)
        floors = np.broadcast_to(values.floor[:, None], gained.shape)
        self._pair[square] += np.stack([weight * gained, weight * forced, weight * floors, np.ones(gained.shape)])
        self._own[:, at] += weight * np.stack([reached, values.floor])

    def report(self) -> WindowReport:
        """What the rounds counted so far come to."""
        ids = list(self._ids)
        gained, forced, floors, both = self._pair
        safe = np.where(floors > 0, floors, np.inf)
        envy, pins = np.maximum(gained, 0.0) / safe, forced / safe
        np.fill_diagonal(envy, 0.0)
        pairs = [
            WindowPair(
                group=ids[i],
                envied=ids[k],
                rounds=int(both[i, k]),
                envy=float(envy[i, k]),
                forced_by_pins=float(min(envy[i, k], pins[i, k])),
                ours=float(envy[i, k] - min(envy[i, k], pins[i, k])),
            )
            for i, k in np.argwhere(envy > _DUST).tolist()
        ]
        pairs.sort(key=lambda pair: (-pair.envy, pair.group, pair.envied))
        reached, slices = self._own
        incentive = {ids[i]: float(reached[i] / slices[i]) for i in np.flatnonzero(slices > 0).tolist()}
        return WindowReport(self._rounds, tuple(pairs), dict(sorted(incentive.items())))

    def _places(self, names: list[str]) -> IntArray:
        """Where the groups stand in the sums, which grow for those that are new."""
        for name in names:
            self._ids.setdefault(name, len(self._ids))
        more = len(self._ids) - self._own.shape[1]
        self._pair = np.pad(self._pair, ((0, 0), (0, more), (0, more)))
        self._own = np.pad(self._own, ((0, 0), (0, more)))
        return np.array([self._ids[name] for name in names], dtype=np.int64)


def _own_figures(snapshot: Snapshot, plan: Plan, leaves: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """GPUs held and targets, float [L, T], and throughput, float [L], of the leaves' own jobs.

    Reports of groups count everything below, so what the groups below report is taken off.
    """
    tree, types = snapshot.tree, snapshot.types
    reports = {report.group: report for report in plan.groups}

    def figures(name: str) -> FloatArray:
        report = reports[name]
        by_type = [[float(gpus.get(kind, 0.0)) for kind in types] for gpus in (report.allocated, report.target)]
        return np.array([*by_type[0], *by_type[1], report.throughput])

    rows = [
        figures(tree.ids[int(leaf)]) - sum((figures(tree.ids[c]) for c in tree.children[int(leaf)]), np.zeros(1))
        for leaf in leaves
    ]
    table, count = np.array(rows).reshape(len(leaves), 2 * len(types) + 1), len(types)
    return table[:, :count], table[:, count : 2 * count], table[:, -1]


def forced_envy(values: GroupValues, target: FloatArray, pinned: FloatArray) -> FloatArray:
    """Envy that pinned GPUs, float [K, T], force on any division of this round: throughput, float [L, L]."""
    if not pinned.any():
        return np.zeros((len(values.leaves), len(values.leaves)))
    return least_slack(values, target, pinned)
