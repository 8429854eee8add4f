"""G1, G3, G4, R2: gangs whole, in their shape, on nodes that may take them; one column for a job and a node."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.crosscheck.crews import Crew
from evenhand.crosscheck.draft import Act, Draft, Stand, Way
from evenhand.crosscheck.sheet import Terms


def may_stand(crew: Crew, kind: str, size: int, most: int | None, caps: Mapping[str, int]) -> bool:
    """Say whether a size could stand on nodes with so much room, were they empty.

    Parameters
    ----------
    most : int or None
        Nodes the size may use, None if its shape is impossible.
    caps : mapping of str to int
        GPUs it may hold at most, by node.
    """
    if most is None:
        return False
    if kind in crew.block:
        block, _, apart = crew.block[kind]
        there = sum(min(1, cap // block) if apart else cap // block for cap in caps.values())
        return there * block >= size
    return sum(sorted(caps.values(), reverse=True)[:most]) >= size


def stand(draft: Draft, ways: list[Way], caps: Mapping[str, int], kept: Mapping[str, int]) -> None:
    """Let a crew stand on nodes after one act, on one type and value, at one of several sizes.

    Parameters
    ----------
    ways : list of Way
        One for each size.
    caps : mapping of str to int
        GPUs it may hold at most, by node.
    kept : mapping of str to int
        GPUs of them that it holds now and keeps.
    """
    first = ways[0]
    kind = first.kind or ""
    build = _stand_in_blocks if kind in first.crew.block else _stand_anyhow
    made = build(draft, ways, caps, kept)
    draft.stands[first.job.job.id, first.act, first.kind, first.value] = made
    for unit, columns in made.unit.items():
        for node, column in columns.items():
            terms: Terms = [(column, float(unit))]
            if node in kept:
                draft.load(node, first.crew, [(w.column, float(kept[node])) for w in ways], arrives=False)
                terms += [(w.column, -float(kept[node])) for w in ways]
            draft.load(node, first.crew, terms, arrives=first.act is not Act.SHRINK)


def _label(way: Way) -> str:
    """Name what a way does, its size aside."""
    return f"{way.act}_{way.crew.name}_on_{way.kind}" + (f"_{way.value}" if way.value is not None else "")


def _stand_in_blocks(draft: Draft, ways: list[Way], caps: Mapping[str, int], kept: Mapping[str, int]) -> Stand:
    """Count equal blocks by node: as many as the gangs need, on different nodes where that is asked (G3)."""
    sheet, crew, label = draft.sheet, ways[0].crew, _label(ways[0])
    block, _, apart = crew.block[ways[0].kind or ""]
    most = max(way.gpus for way in ways) // block
    columns = {}
    for node, cap in caps.items():
        upper = min(cap // block, (1 if apart else most) * crew.count)
        if upper or node in kept:
            columns[node] = sheet.whole(f"blocks_{label}_{node}", upper)
    sheet.row(
        f"G3_blocks_of_{label}",
        [*((c, float(block)) for c in columns.values()), *((w.column, -float(w.gpus)) for w in ways)],
        0.0,
        0.0,
    )
    for node, column in columns.items():
        if (apart or crew.count == 1) and most > 1:
            each = 1 if apart else min(caps[node] // block, most)
            sheet.row(
                f"G3_blocks_of_{label}_{node}",
                [(column, 1.0), *((w.column, -float(min(each, w.gpus // block))) for w in ways)],
                high=0.0,
            )
        if node in kept:
            terms = [(column, float(block)), *((w.column, -float(kept[node])) for w in ways)]
            sheet.row(f"G4_{label}_stays_on_{node}", terms, low=0.0)
    return Stand({block: columns})


def _stand_anyhow(draft: Draft, ways: list[Way], caps: Mapping[str, int], kept: Mapping[str, int]) -> Stand:
    """Split a gang in any way over as few nodes as its size needs (G3)."""
    sheet, label = draft.sheet, _label(ways[0])
    facts, job = draft.facts, ways[0].job
    need = {way.column: facts.nodes_for(job, way.kind or "", way.gpus) or 0 for way in ways}
    most = max(way.gpus for way in ways)
    gpus, used = {}, {}
    for node, cap in caps.items():
        gpus[node] = sheet.whole(f"gpus_{label}_{node}", min(cap, most))
        used[node] = sheet.whole(f"uses_{label}_{node}", 1)
        sheet.row(f"G3_used_{label}_{node}", [(gpus[node], 1.0), (used[node], -float(min(cap, most)))], high=0.0)
        sheet.row(f"G3_uses_{label}_{node}", [(gpus[node], 1.0), (used[node], -1.0)], low=0.0)
        sheet.row(f"G3_only_{label}_{node}", [(used[node], 1.0), *((w.column, -1.0) for w in ways)], high=0.0)
        if node in kept:
            terms = [(gpus[node], 1.0), *((w.column, -float(kept[node])) for w in ways)]
            sheet.row(f"G4_{label}_stays_on_{node}", terms, low=0.0)
    whole = [*((c, 1.0) for c in gpus.values()), *((w.column, -float(w.gpus)) for w in ways)]
    sheet.row(f"G1_gpus_of_{label}", whole, 0.0, 0.0)
    few = [*((c, 1.0) for c in used.values()), *((c, -float(count)) for c, count in need.items())]
    sheet.row(f"G3_nodes_of_{label}", few, high=0.0)
    return Stand({1: gpus}, used)


def replace(draft: Draft, way: Way, lost: Mapping[int, int], nodes: Mapping[str, int]) -> None:
    """Replace what a hit job lost: each lost node's GPUs by one new node, or worker by worker (R2).

    Parameters
    ----------
    lost : mapping of int to int
        How many units of so many GPUs are to be replaced.
    nodes : mapping of str to int
        Room of the nodes that may take them.
    """
    sheet, label = draft.sheet, _label(way)
    single = way.job.job.worker_gpus is None
    units: dict[int, dict[str, int]] = {}
    for unit, count in lost.items():
        units[unit] = {
            node: sheet.whole(f"new_{unit}_{label}_{node}", 1 if single else min(count, room // unit))
            for node, room in nodes.items()
            if room >= unit
        }
        terms = [*((c, 1.0) for c in units[unit].values()), (way.column, -float(count))]
        sheet.row(f"R2_{label}_replaces_{unit}", terms, 0.0, 0.0)
        for node, column in units[unit].items():
            draft.load(node, way.crew, [(column, float(unit))], arrives=True)
    for node in nodes if single and len(units) > 1 else ():
        columns = [listed[node] for listed in units.values() if node in listed]
        if len(columns) > 1:
            sheet.row(f"R2_{label}_once_on_{node}", [(c, 1.0) for c in columns], high=1.0)
    draft.stands[way.job.job.id, way.act, way.kind, way.value] = Stand(units)
