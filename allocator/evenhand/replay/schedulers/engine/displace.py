"""Room for one gang that is owed it: the cheapest set of jobs that may be stopped (rules R1, U1, P1), or nobody."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evenhand.outcome import Places
from evenhand.replay.ground import ANYWHERE
from evenhand.replay.schedulers.engine.worth import Worth
from evenhand.replay.world import World

LEAST_GAIN = 1e-9


@dataclass(frozen=True, slots=True)
class Room:
    """Where a gang would stand, and who would have to go."""

    price: float
    places: Places
    victims: tuple[int, ...]


class Displacer:
    """Finds room in one world at one moment; prices are kept while nothing changes."""

    def __init__(self, world: World, worth: Worth) -> None:
        self._w, self._worth = world, worth
        self._price: dict[int, float] = {}

    def make_room(self, job: int, nodes: Iterable[int] | None = None) -> bool:
        """Stop whoever has to go for a budgeted waiting gang and start it, if that is worth it.

        Parameters
        ----------
        nodes : where to look; everywhere if left out. A gang of many nodes is looked for everywhere only.
        """
        w = self._w
        shape = w.facts.shapes[w.facts.shape[job]]
        for gpu_type in shape.types:
            room = self._room(job, gpu_type, nodes)
            if room is not None and self._worth_it(job, gpu_type, room := self._needed(room)):
                for v in room.victims:
                    w.stop(v)
                    self._price.pop(v, None)
                w.start(job, gpu_type, room.places)
                self._price.clear()
                w.displacements += 1
                return True
        return False

    def _room(self, job: int, gpu_type: int, nodes: Iterable[int] | None) -> Room | None:
        w = self._w
        shape = w.facts.shapes[w.facts.shape[job]]
        if shape.gpus_per_node is not None:
            need, each = shape.gpus // shape.gpus_per_node, shape.gpus_per_node
        elif shape.worker_gpus is not None:
            need, each = shape.gpus // shape.worker_gpus, shape.worker_gpus
        else:
            fewest = w.sites.nodes_needed(ANYWHERE, gpu_type, shape.gpus)
            if fewest is None:
                return None
            need, each = fewest, -(-shape.gpus // fewest)
        mask = w.ground.available(w.facts.contract_s[job], w.now_s)
        wide = range(len(w.ground.nodes)) if nodes is None else nodes
        fit = [
            n
            for n in wide
            if w.ground.opened[n] and w.ground.node_type[n] == gpu_type and w.ground.room[n] >= each and mask >> n & 1
        ]
        if need == 1:
            return self._on_one(fit, each)
        return self._on_many(fit, need, each, shape.gpus) if nodes is None and len(fit) >= need else None

    def _movable(self, node: int) -> list[int]:
        """Jobs on a node that may be stopped, the cheapest a GPU first."""
        w = self._w
        found = [j for j in w.on_node[node] if w.now_s >= w.runs[j].protected_until_s]
        return sorted(found, key=lambda j: (self._cost(j) / w.runs[j].gpus, j))

    def _cost(self, job: int) -> float:
        """Price of a stop, what its group then lacks included."""
        price = self._price.get(job)
        if price is None:
            run = self._w.runs[job]
            price = self._worth.stop(job) + self._worth.whole(job)
            if run.milli:
                price -= self._worth.owed_gain([(self._w.facts.group[job], -run.milli)]) / 1000.0
            self._price[job] = price
        return price

    def _on_one(self, nodes: list[int], gpus: int) -> Room | None:
        """The cheapest node: one victim that is enough, or the cheapest a GPU until it is."""
        w, best = self._w, None
        for n in nodes:
            lack = gpus - w.ground.free[n]
            found = self._clear(n, lack, ())
            if found is not None and (best is None or (found[0], n) < (best.price, best.places[0][0])):
                best = Room(found[0], ((n, gpus),), found[1])
        return best

    def _clear(self, node: int, lack: int, gone: tuple[int, ...]) -> tuple[float, tuple[int, ...]] | None:
        """Victims on a node that free so many GPUs, beside those already gone: price and jobs."""
        if lack <= 0:
            return 0.0, ()
        w = self._w
        here = [(j, next(g for n, g in w.runs[j].places if n == node)) for j in self._movable(node) if j not in gone]
        alone = min(((self._cost(j), j) for j, g in here if g >= lack), default=None)
        price, taken, left = 0.0, [], lack
        for j, g in here:
            if left <= 0:
                break
            price, left = price + self._cost(j), left - g
            taken.append(j)
        if left > 0:
            return None if alone is None else (alone[0], (alone[1],))
        if alone is not None and alone[0] <= price:
            return alone[0], (alone[1],)
        return price, tuple(taken)

    def _on_many(self, nodes: list[int], need: int, each: int, gpus: int) -> Room | None:
        """Node by node the cheapest next one; who is stopped anyway frees his other nodes too."""
        w = self._w
        freed = dict.fromkeys(nodes, 0)
        price = 0.0
        victims: list[int] = []
        chosen: list[int] = []
        open_nodes = list(nodes)
        offers = {n: self._clear(n, each - w.ground.free[n], ()) for n in nodes}
        while len(chosen) < need:
            ranked = [(o[0], n) for n in open_nodes if (o := offers[n]) is not None]
            if not ranked:
                return None
            cost, node = min(ranked)
            _, taken = offers[node] or (0.0, ())
            open_nodes.remove(node)
            chosen.append(node)
            price += cost
            victims.extend(taken)
            touched = set()
            for v in taken:
                for n, g in w.runs[v].places:
                    if n in freed:
                        freed[n] += g
                        touched.add(n)
            gone = tuple(victims)
            for n in sorted(touched):
                offers[n] = self._clear(n, each - w.ground.free[n] - freed[n], gone)
        parts, left = [], gpus
        for n in sorted(chosen):
            part = min(each, left)
            parts.append((n, part))
            left -= part
        return Room(price, tuple(p for p in parts if p[1]), tuple(victims))

    def _needed(self, room: Room) -> Room:
        """The same without victims that are not in the way (rule R1), the dearest spared first."""
        w = self._w
        lack = {n: g - w.ground.free[n] for n, g in room.places}
        here = {v: [(n, g) for n, g in w.runs[v].places if n in lack] for v in room.victims}
        for parts in here.values():
            for n, g in parts:
                lack[n] -= g
        victims = []
        for v in sorted(room.victims, key=lambda v: (-self._cost(v), v)):
            if all(lack[n] + g <= 0 for n, g in here[v]):
                for n, g in here[v]:
                    lack[n] += g
            else:
                victims.append(v)
        return Room(room.price, room.places, tuple(sorted(victims)))

    def _worth_it(self, job: int, gpu_type: int, room: Room) -> bool:
        """Whether what is owed and won outweighs what is lost (O2 to O7), counted for all together."""
        w, f = self._w, self._w.facts
        milli = f.size[job] * w.rates[gpu_type]
        changes = [(f.group[job], milli)] + [(f.group[v], -w.runs[v].milli) for v in room.victims if w.runs[v].milli]
        gain = self._worth.owed_gain(changes) / 1000.0 + self._worth.whole(job)
        gain -= sum(self._worth.whole(v) for v in room.victims)
        gain += self._worth.start(job, gpu_type) + self._worth.handover(job, list(room.victims))
        return gain - sum(self._worth.stop(v) for v in room.victims) > LEAST_GAIN
