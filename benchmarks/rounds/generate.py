"""Seeded cluster states by size and contention, as the JSON that `parse_document` reads.

Three GPU types, a tree of programmes, projects and leaves, twelve kinds of work, gangs in powers of two up to
64 GPUs, part of the cluster busy and part of that protected. Nothing is stored: a size, a contention and a seed
say all, and equal ones give equal bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import Any

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
CAP_S = 28_800
"""Longest contract, the default of the policy."""
TYPES = (("h100", 0.5, 1.0), ("b200", 0.3, 1.6), ("b300", 0.2, 2.2))
"""Name, share of the nodes, charge rate."""
GANGS = (1, 2, 4, 8, 16, 32, 64)
GANG_WEIGHTS = (40.0, 16.0, 18.0, 18.0, 5.0, 2.0, 1.0)
NODE_GPUS = 8
NODES_PER_RACK = 16
LEAVES_PER_PROJECT = 4
MOST_PROGRAMMES = 15


@dataclass(frozen=True)
class Size:
    """How large a cluster is: nodes of 8 GPUs, jobs at full demand, leaf groups."""

    nodes: int
    jobs: int
    leaves: int


SIZES = {
    "S": Size(16, 60, 15),
    "M": Size(128, 1_000, 60),
    "L": Size(512, 5_000, 200),
    "XL": Size(2_000, 20_000, 500),
    "XXL": Size(12_500, 100_000, 1_000),
}


@dataclass(frozen=True)
class Contention:
    """How hard the groups compete.

    Attributes
    ----------
    demand : GPUs asked for, as a multiple of those usable; gangs are drawn larger or smaller to meet it, and where
        not even single GPUs would do there are fewer jobs.
    busy : share of the usable GPUs that jobs hold; pinned : share that protected jobs hold (at most `busy`).
    objective : of the policy; what makes targets loose (`fair_share`) or tight (`envy_free`).
    big_gang : GPUs of one more pending job of the first leaf, 0: none.
    odd : share of the gangs of 4 GPUs and more that are a quarter smaller or larger: no power of two.
    alike : whether every leaf runs the same mix of work; else each prefers a few kinds.
    kinds : distinct sets of speedups.
    deep : whether leaves stand below projects and programmes; else all stand at the top.
    same_rack : share of the gangs of 16 GPUs and more that ask for one rack.
    """

    demand: float = 6.0
    busy: float = 0.6
    pinned: float = 0.3
    objective: str = "envy_free"
    big_gang: int = 0
    odd: float = 0.0
    alike: bool = False
    kinds: int = 12
    deep: bool = True
    same_rack: float = 0.0


SLACK = Contention(objective="fair_share", deep=False)
"""Leaves side by side: their targets leave a sixth of the throughput free."""
LOOSE = Contention(objective="fair_share")
"""The same targets below projects and programmes: what these are owed, in charged GPUs, is all there is."""
TIGHT = Contention(demand=2.5)


def generate(size: Size, contention: Contention = LOOSE, seed: int = 0) -> dict[str, Any]:
    """Return an allocate request, ``{"state": ..., "policy": ...}``, ready for `json.dumps`."""
    return _Draw(size, contention, seed).request()


def document(size: Size, contention: Contention = LOOSE, seed: int = 0) -> bytes:
    """Return the same as compact JSON."""
    return json.dumps(generate(size, contention, seed), separators=(",", ":")).encode()


class _Draw:
    """One state in the making; every list is drawn in a fixed order from one stream."""

    def __init__(self, size: Size, contention: Contention, seed: int) -> None:
        self.size, self.how = size, contention
        self.random = Random(f"{asdict(size)} {asdict(contention)} {seed}")
        self.kinds = [self._kind() for _ in range(contention.kinds)]
        self.leaves: list[str] = []
        self.shares: dict[str, float] = {}

    def request(self) -> dict[str, Any]:
        nodes, groups = self._nodes(), self._groups()
        free = {n["name"]: n["gpus"] - n.get("unavailable_gpus", 0) for n in nodes if n["status"] == "up"}
        usable = sum(free.values())
        jobs = self._jobs(usable)
        self._run(jobs, nodes, free, usable)
        state = {
            "now": _stamp(NOW),
            "gpu_types": [{"name": name, "charge_rate": rate} for name, _, rate in TYPES],
            "nodes": nodes,
            "groups": groups,
            "usage": [
                {
                    "group": g,
                    "charged_gpu_hours": round(usable * 120 * self.shares[g] * self.random.uniform(0.3, 1.7), 3),
                }
                for g in self.leaves
            ],
            "jobs": jobs,
        }
        return {"state": state, "policy": {"objective": self.how.objective}}

    def _kind(self) -> dict[str, float]:
        """Speedups of one kind of work: one GPU of each type it can use, the first counting 1."""
        draw = self.random
        b200 = draw.uniform(1.1, 2.4)
        speeds = {"h100": 1.0, "b200": round(b200, 3), "b300": round(b200 * draw.uniform(1.05, 1.6), 3)}
        masks = (("h100", "b200", "b300"), ("h100", "b200", "b300"), ("h100", "b200"), ("b200", "b300"), ("h100",))
        return {name: speeds[name] for name in draw.choice(masks)}

    def _nodes(self) -> list[dict[str, Any]]:
        """Nodes: 5 % have a broken GPU or two, 1 % are down."""
        draw, nodes = self.random, []
        bounds = list(accumulate(share for _, share, _ in TYPES))
        for i in range(self.size.nodes):
            at = (i + 0.5) / self.size.nodes
            kind = next(
                name for (name, _, _), bound in zip(TYPES, bounds, strict=True) if at < bound or bound == bounds[-1]
            )
            node: dict[str, Any] = {"name": f"n{i:05d}", "gpu_type": kind, "gpus": NODE_GPUS, "status": "up"}
            node["labels"] = {"rack": f"r{i // NODES_PER_RACK:04d}"}
            luck = draw.random()
            if luck < 0.05:
                node["unavailable_gpus"] = draw.choice((1, 2))
            elif luck < 0.06:
                node["status"] = "down"
            nodes.append(node)
        return nodes

    def _groups(self) -> list[dict[str, Any]]:
        """Build the tree; leaves know their share of the whole."""
        draw, how, count = self.random, self.how, self.size.leaves
        groups: list[dict[str, Any]] = []
        projects = max(1, count // LEAVES_PER_PROJECT)
        programmes = max(1, min(MOST_PROGRAMMES, projects // 2))
        weight: dict[str, float] = {}

        def add(name: str, parent: str | None) -> None:
            share = float(draw.choice((1, 1, 2, 3, 5)))
            weight[name] = share
            groups.append({"id": name, "share": share} | ({} if parent is None else {"parent": parent}))

        above: list[str] = []
        if how.deep:
            for p in range(programmes):
                add(f"p{p:02d}", None)
            for q in range(projects):
                parent = f"p{q % programmes:02d}"
                add(f"{parent}/q{q:03d}", parent)
                above.append(f"{parent}/q{q:03d}")
        for g in range(count):
            parent = above[g % projects] if how.deep else None
            name = f"{parent}/g{g:04d}" if parent else f"g{g:04d}"
            add(name, parent)
            self.leaves.append(name)
        parents = {group["id"]: group.get("parent") for group in groups}
        together: dict[str | None, float] = {}
        for name, parent in parents.items():
            together[parent] = together.get(parent, 0.0) + weight[name]
        for leaf in self.leaves:
            part, at = 1.0, leaf
            while at is not None:
                part *= weight[at] / together[parents[at]]
                at = parents[at]
            self.shares[leaf] = part
        return groups

    def _jobs(self, usable: int) -> list[dict[str, Any]]:
        """Pending jobs, about `demand` times what is usable."""
        draw, how = self.random, self.how
        wanted = how.demand * usable
        count = self.size.jobs if wanted >= 1.3 * self.size.jobs else max(1, int(wanted / 1.3))
        weights = _tilted(max(1.3, wanted / count))
        tastes = {leaf: [draw.randrange(how.kinds) for _ in range(3)] for leaf in self.leaves}
        crowd = draw.choices(self.leaves, [0.3 / len(self.leaves) + self.shares[g] for g in self.leaves], k=count)
        gangs = _dealt(weights, count)
        draw.shuffle(gangs)
        jobs = [
            self._job(f"j{i:06d}", group, gang, tastes)
            for i, (group, gang) in enumerate(zip(crowd, gangs, strict=True))
        ]
        if how.big_gang:
            jobs.append(self._job("big", self.leaves[0], how.big_gang, tastes))
        return jobs

    def _job(self, name: str, group: str, gang: int, tastes: dict[str, list[int]]) -> dict[str, Any]:
        draw, how = self.random, self.how
        kind = draw.randrange(how.kinds) if how.alike else draw.choice(tastes[group])
        if how.odd and gang >= 4 and draw.random() < how.odd:
            gang = draw.choice((gang * 3 // 4, gang * 5 // 4))
        job: dict[str, Any] = {"id": name, "group": group, "gpus": gang, "speedup": self.kinds[kind]}
        if gang >= 16 and how.same_rack and draw.random() < how.same_rack:
            job["same"] = "rack"
        job["submitted_at"] = _stamp(NOW - timedelta(seconds=draw.randrange(60, 6 * 86_400)))
        contract = 0 if draw.random() < 0.1 else draw.choice((3_600, 7_200, 14_400, CAP_S))
        job["contract"] = {"min_runtime_s": contract, "resumable": draw.random() < 0.7}
        job["priority"] = draw.choice((0, 0, 0, 0, 10, 50))
        return job

    def _run(self, jobs: list[dict[str, Any]], nodes: list[dict[str, Any]], free: dict[str, int], usable: int) -> None:
        """Let jobs run, in a random order, until as much is held and protected as is asked for."""
        draw, how = self.random, self.how
        floor = _Floor(nodes, free)
        pinned_left, open_left = how.pinned * usable, (max(how.busy, how.pinned) - how.pinned) * usable
        for i in draw.sample(range(len(jobs)), len(jobs)):
            job, gang = jobs[i], jobs[i]["gpus"]
            contract = job["contract"]["min_runtime_s"]
            pin = contract > 0 and pinned_left >= gang and (open_left < gang or draw.random() < 0.5)
            if not pin and open_left < gang:
                if pinned_left < 1 and open_left < 1:
                    break
                continue
            if "same" in job or job["id"] == "big":
                continue
            kinds = sorted(job["speedup"], key=lambda k: (-floor.left[k], k))
            spot = next((s for k in kinds if (s := floor.take(k, gang)) is not None), None)
            if spot is None:
                continue
            age = draw.randrange(0, max(1, contract - 1)) if pin else contract + draw.randrange(600, 2 * 86_400)
            started = NOW - timedelta(seconds=age)
            job["state"] = "running"
            job["started_at"] = _stamp(started)
            job["submitted_at"] = _stamp(started - timedelta(seconds=draw.randrange(60, 3 * 86_400)))
            job["placement"] = [{"node": node, "gpus": gpus} for node, gpus in spot]
            if draw.random() < 0.3:
                job["checkpointed_at"] = _stamp(NOW - timedelta(seconds=draw.randrange(0, age + 1)))
            if pin:
                pinned_left -= gang
            else:
                open_left -= gang


class _Floor:
    """Free GPUs by type: stacks of nodes by how much is free on them, so that a gang is placed in a step or two."""

    def __init__(self, nodes: list[dict[str, Any]], free: dict[str, int]) -> None:
        self.left = {name: 0 for name, _, _ in TYPES}
        self.stacks: dict[str, list[list[str]]] = {name: [[] for _ in range(NODE_GPUS + 1)] for name, _, _ in TYPES}
        for node in nodes:
            if node["name"] in free:
                self.left[node["gpu_type"]] += free[node["name"]]
                self.stacks[node["gpu_type"]][free[node["name"]]].append(node["name"])

    def take(self, kind: str, gang: int) -> list[tuple[str, int]] | None:
        """Nodes for a gang: whole ones as far as it fills them, the fullest that holds the rest; None if none do."""
        stacks = self.stacks[kind]
        whole, rest = divmod(gang, NODE_GPUS)
        fits = next((f for f in range(rest, NODE_GPUS + 1) if len(stacks[f]) > (whole if f == NODE_GPUS else 0)), None)
        if len(stacks[NODE_GPUS]) < whole or (rest and fits is None):
            return None
        spot = [(stacks[NODE_GPUS].pop(), NODE_GPUS) for _ in range(whole)]
        stacks[0].extend(node for node, _ in spot)
        if rest and fits is not None:
            node = stacks[fits].pop()
            stacks[fits - rest].append(node)
            spot.append((node, rest))
        self.left[kind] -= gang
        return spot


def _tilted(mean: float) -> list[float]:
    """Weights of the gang sizes with a given mean: the usual ones, tilted towards small or large gangs."""
    low, high = -6.0, 6.0
    for _ in range(60):
        middle = (low + high) / 2
        weights = [w * g**middle for g, w in zip(GANGS, GANG_WEIGHTS, strict=True)]
        if sum(g * w for g, w in zip(GANGS, weights, strict=True)) < mean * sum(weights):
            low = middle
        else:
            high = middle
    return [w * g**low for g, w in zip(GANGS, GANG_WEIGHTS, strict=True)]


def _dealt(weights: list[float], count: int) -> list[int]:
    """So many gangs, of every size as many as its weight says; fractions carry over to the next larger size."""
    whole, found, due = sum(weights), [], 0.0
    for gang, weight in zip(GANGS, weights, strict=True):
        due += count * weight / whole
        found += [gang] * (round(due) - len(found))
    return found


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def main() -> None:
    """Write one request to standard output."""
    parser = argparse.ArgumentParser(description="Write the request of a made-up round to standard output.")
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--tight", action="store_true", help="envy-free targets and demand 2.5 x supply")
    parser.add_argument("--demand", type=float, help="GPUs asked for, as a multiple of those usable")
    parser.add_argument("--pinned", type=float, help="share of the usable GPUs that protected jobs hold")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    how = TIGHT if asked.tight else LOOSE
    if asked.demand is not None:
        how = replace(how, demand=asked.demand)
    if asked.pinned is not None:
        how = replace(how, pinned=asked.pinned, busy=max(how.busy, asked.pinned))
    sys.stdout.buffer.write(document(SIZES[asked.size], how, asked.seed))


if __name__ == "__main__":
    main()
