"""The envy a plan leaves, pair by pair, as its certificate reports it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evenhand.audit.numbers import close, slack
from evenhand.audit.reading import MILLI, Reading
from evenhand.audit.report import Finding
from evenhand.audit.target import Leaf, Target
from evenhand.audit.worth import Tally
from evenhand_models import Plan


def envy_of_pairs(reading: Reading, target: Target, counted: Tally) -> NDArray[np.float64]:
    """Return what each leaf (row) would gain from the scaled GPUs of each other (column), over its own floor.

    [v_i((e_i/e_l) X_l) - throughput of i] / floor_i, 0 where that is negative or the floor is 0.
    """
    leaves = target.leaves
    held = [[float(counted.runs[leaf.group][kind]) for kind in reading.types] for leaf in leaves]
    bundles = np.array(held).reshape(len(leaves), len(reading.types))
    envy = np.zeros((len(leaves), len(leaves)))
    for row, leaf in enumerate(leaves):
        if leaf.floor > 0:
            gain = _values(reading, leaf, bundles * (leaf.entitled / target.entitled)[:, None])
            envy[row] = (gain - counted.running[leaf.group] / MILLI) / leaf.floor
    np.fill_diagonal(envy, 0.0)
    return np.maximum(envy, 0.0)


def _values(reading: Reading, leaf: Leaf, bundles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `v_i` of many bundles at once (T1)."""
    left = np.full(len(bundles), float(leaf.cap))
    value = np.zeros(len(bundles))
    for kind in leaf.order:
        taken = np.minimum(left, bundles[:, reading.types.index(kind)])
        value += leaf.speed[kind] * taken
        left -= taken
    return value


def check_envy_report(reading: Reading, target: Target, counted: Tally, plan: Plan) -> Iterator[Finding]:
    """Check `max_envy` and the reported pairs (A4)."""
    seal = plan.certificate
    envy = envy_of_pairs(reading, target, counted)
    most = float(envy.max()) if envy.size else 0.0
    if not close(seal.max_envy, most):
        yield Finding("A4", f"max_envy says {seal.max_envy:g}, should be {most:g}.")
    place = {leaf.group: row for row, leaf in enumerate(target.leaves)}
    for pair in seal.envy:
        refs = (pair.group, pair.envied)
        if pair.group not in place or pair.envied not in place:
            yield Finding("A4", f"envy of {pair.group!r} for {pair.envied!r}, not both owed anything.", refs)
            continue
        true = float(envy[place[pair.group], place[pair.envied]])
        if not close(pair.envy, true):
            message = f"envy of {pair.group!r} for {pair.envied!r} says {pair.envy:g}, should be {true:g}."
            yield Finding("A4", message, refs)
        parts = pair.forced_by_pins + pair.ours
        if not close(parts, pair.envy) or min(pair.forced_by_pins, pair.ours) < -slack():
            yield Finding("A4", f"envy of {pair.group!r} for {pair.envied!r} is not its two parts.", refs)
    gangs = np.array([leaf.biggest / MILLI / leaf.floor if leaf.floor > 0 else np.inf for leaf in target.leaves])
    if not seal.envy and envy.size and bool((envy > gangs[:, None] + slack()).any()):
        yield Finding("A4", "somebody envies by more than one gang, but no pair is reported.")
