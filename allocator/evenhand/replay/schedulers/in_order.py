"""What comparators share: starting whoever fits in some order, and stopping others in some order to make way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from evenhand.replay.lines import Owner, Rank
from evenhand.replay.world import World

Key = Callable[[int, Owner], Any]
"""Order of a waiting job, given its owner: the least first."""


def everyone(job: int) -> bool:
    """Anybody may start."""
    return True


def start_in_order(
    world: World, key: Key, *, allowed: Callable[[int], bool] = everyone, strictly: bool = False
) -> int | None:
    """Start waiting gangs on free GPUs, heads of lines in the order of a key.

    Parameters
    ----------
    key : order of jobs; inside a line seniority rules.
    allowed : who may start at all; who may not holds up his line, nobody else.
    strictly : stop at the first that is allowed and does not fit.

    Returns
    -------
    int or None
        The first that was allowed and did not fit, if any GPU was free at all.
    """
    if not any(world.ground.idle):
        return None
    lines = world.lines.by_shape
    fit = [s for s in lines if strictly or _may_fit(world, s)]
    heads = {(shape, owner): line[0] for shape in fit for owner, line in lines[shape].items()}
    keys = {at: key(rank[2], at[1]) for at, rank in heads.items()}
    blocked: int | None = None
    while keys:
        at = min(keys, key=keys.__getitem__)
        job = heads[at][2]
        if not allowed(job):
            del keys[at]
            continue
        found = world.place_best(job)
        if found is None:
            blocked = job if blocked is None else blocked
            if strictly:
                return blocked
            for other in [o for o in keys if o[0] == at[0] or o == at] if not world.ground.limited else [at]:
                del keys[other]
            continue
        world.start(job, *found)
        line: list[Rank] | None = lines.get(at[0], {}).get(at[1])
        if line:
            heads[at] = line[0]
        else:
            del heads[at], keys[at]
        keys.update({o: key(heads[o][2], o[1]) for o in keys if o[1][0] == at[1][0]})
    return blocked


def _may_fit(world: World, shape: int) -> bool:
    what = world.facts.shapes[shape]
    return any(world.ground.idle[t] >= what.gpus for t in what.types)


def make_way(world: World, job: int, victims: Iterable[int]) -> bool:
    """Stop running jobs in the order given until a waiting gang fits, and start it; nobody stops for nothing.

    Returns
    -------
    bool
        Whether it could start; if not, nobody was stopped.
    """
    shape = world.facts.shapes[world.facts.shape[job]]
    mask = world.ground.available(world.facts.contract_s[job], world.now_s)
    trial = world.ground.trial()
    gone: list[int] = []
    for victim in victims:
        trial.give_back(world.runs[victim].places)
        gone.append(victim)
        for t in shape.types:
            places = trial.place(shape, t, world.sites, mask)
            if places is None:
                continue
            lack = {n: g - world.ground.free[n] for n, g in places}
            for v in reversed(gone):
                here = [(n, g) for n, g in world.runs[v].places if n in lack]
                if any(lack[n] > 0 for n, _ in here):
                    for n, g in here:
                        lack[n] -= g
                    world.stop(v)
            world.start(job, t, places)
            world.displacements += 1
            return True
    return False
