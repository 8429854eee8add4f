"""Facts in any order, any number of times, around any rounds: the ledger says what a plain recomputation says."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from fractions import Fraction
from random import Random

import pytest
from cases.states import NOW, job
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, delete, select

from evenhand_api.ledger.amounts import PER_GPU_HOUR
from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.compose import compose_state
from evenhand_api.ledger.database import writing
from evenhand_api.ledger.events import record_events
from evenhand_api.ledger.instants import to_us
from evenhand_api.ledger.rollups import differences
from evenhand_api.ledger.sightings import observe
from evenhand_api.ledger.tables import clusters, metadata
from evenhand_api.ledger.usage import window_usage
from evenhand_api.ledger.words import ClusterConfig, Event, RoundRequest
from evenhand_models import GpuType, Group, Node, Placement
from ledger.plain import Seen, Told, World, used

NODES = ("n0", "n1", "n2")
JOBS = {"a1": ("a", 60), "a2": ("a", 0), "b1": ("b", 60), "z1": ("z", 60)}
RATE = Fraction(2_500, 1_000)
CONFIG = ClusterConfig(
    gpu_types=[GpuType(name="H100", charge_rate=2.5)],
    nodes=[Node(name=n, gpu_type="H100", gpus=64) for n in NODES],
    groups=[Group(id="a", share=1), Group(id="b", share=2), Group(id="z", share=0)],
)
CHARGED = {name: contract > 0 and group != "z" for name, (group, contract) in JOBS.items()}
MINUTES = st.integers(0, 200)
PLACES = st.sampled_from([(("n0", 2),), (("n0", 2), ("n1", 2)), (("n1", 3),), (("n1", 1), ("n2", 4))])
NAMES = st.sampled_from(sorted(JOBS))


def at(minute: int) -> object:
    return NOW + timedelta(minutes=minute)


@st.composite
def told(draw: st.DrawFn) -> Told:
    kind = draw(st.sampled_from(["started", "started", "ended", "ended", "resized", "node_down", "node_up"]))
    minute = draw(MINUTES)
    if kind.startswith("node"):
        return Told(kind, minute, node=draw(st.sampled_from(NODES)))
    name = draw(NAMES)
    if kind == "started":
        return Told(kind, minute, job=name, on=draw(PLACES))
    start = draw(st.integers(0, minute))
    if kind == "resized":
        return Told(kind, minute, job=name, start=start, on=draw(PLACES))
    return Told(kind, minute, job=name, start=draw(st.sampled_from([None, start])))


@st.composite
def seen(draw: st.DrawFn, now: int) -> Seen:
    holds = {}
    for name in draw(st.lists(NAMES, unique=True)):
        holds[name, draw(st.integers(0, now))] = draw(PLACES)
    down = {n: draw(st.integers(0, now)) for n in draw(st.lists(st.sampled_from(NODES), unique=True, max_size=1))}
    return Seen(now, holds, down)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, list[Told | Seen]]:
    """A world, and one order in which a ledger may hear of it: rounds in their order, events anywhere, some twice."""
    nows = sorted(draw(st.lists(MINUTES, max_size=5)))
    rounds = [draw(seen(now)) for now in nows]
    events = draw(st.lists(told(), max_size=10))
    world = World(events, rounds, {n: g for n, (g, _) in JOBS.items()}, CHARGED, RATE)
    twice = events + [e for e in events if draw(st.booleans())]
    rng = Random(draw(st.integers(0, 2**32)))
    heard: list[Told | Seen] = list(rounds)
    for event in rng.sample(twice, len(twice)):
        heard.insert(rng.randint(0, len(heard)), event)
    return world, heard


def tell(connection: Connection, heard: Iterable[Told | Seen]) -> None:
    for one in heard:
        cluster = find_cluster(connection, "c", lock=True)
        if isinstance(one, Told):
            record_events(connection, cluster, [event_of(one)])
            continue
        request = RoundRequest(now=at(one.now), jobs=[running(one.now, key, on) for key, on in one.holds.items()])
        request = request.model_copy(
            update={
                "nodes": tuple(
                    Node(name=n, gpu_type="H100", gpus=64, status="down", down_since_at=at(one.down[n]))
                    if n in one.down
                    else Node(name=n, gpu_type="H100", gpus=64)
                    for n in NODES
                )
            }
        )
        state = compose_state(cluster, request)
        down = observe(connection, cluster, state)
        moved = {"last_round": cluster.last_round + 1, "last_now_us": to_us(state.now)}
        connection.execute(clusters.update().values(moved | {"down": __import__("json").dumps(down)}))


def running(now: int, key: tuple[str, int], on: tuple[tuple[str, int], ...]) -> object:
    name, start = key
    group, contract = JOBS[name]
    return job(name, group, sum(g for _, g in on), c=contract, on=dict(on), ran=now - start, now=at(now))


def event_of(one: Told) -> Event:
    group, contract = JOBS.get(one.job, (None, None))
    holds = one.kind in ("started", "resized")
    return Event(
        kind=one.kind,
        at=at(one.at),
        job=one.job or None,
        node=one.node or None,
        started_at=None if one.start is None else at(one.start),
        placement=tuple(Placement(node=n, gpus=g) for n, g in one.on),
        group=group if holds else None,
        min_runtime_s=contract * 60 if holds and contract is not None else None,
    )


def check(engine: Engine, world: World, heard: list[Told | Seen], windows: list[tuple[int, int]]) -> None:
    with writing(engine) as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(delete(table))
        put_cluster(connection, "c", CONFIG)
        tell(connection, heard)
        number = connection.execute(select(clusters.c.id)).scalar_one()
        assert differences(connection, number) == []
        for begin, end in windows:
            found = window_usage(connection, number, to_us(at(begin)), to_us(at(end)))
            exact = {group: Fraction(amount, PER_GPU_HOUR) for group, amount in found.items()}
            assert exact == used(world, begin, end), (begin, end)


WINDOWS = st.lists(st.tuples(MINUTES, MINUTES).map(lambda w: (min(w), max(w))), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(worlds(), WINDOWS)
def test_any_order_of_facts_is_charged_as_a_plain_recomputation_says(
    engine: Engine, told: tuple[World, list[Told | Seen]], windows: list[tuple[int, int]]
) -> None:
    check(engine, *told, windows)


@pytest.mark.heavy
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(worlds(), WINDOWS)
def test_many_orders_of_facts_are_charged_as_a_plain_recomputation_says(
    engine: Engine, told: tuple[World, list[Told | Seen]], windows: list[tuple[int, int]]
) -> None:
    check(engine, *told, windows)
