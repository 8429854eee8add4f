"""When how many GPUs come out of protection."""

from __future__ import annotations

from datetime import timedelta

from explain.noon import NOW, Told, cluster, job, moved, nodes

from evenhand.explain import unlocks
from evenhand.outcome import Move


def test_gpus_are_summed_by_type_and_instant_with_what_starts_now() -> None:
    jobs = [
        job("a", "A", 2, on={"n1": 2}, ran=20),
        job("b", "A", 2, on={"n1": 2}, ran=20),
        job("past", "A", 4, on={"n1": 4}, ran=61),
        job("free", "A", 4, c=0, on={"n2": 4}, ran=5),
        job("new", "A", 4, c=30),
    ]
    told = Told(cluster(nodes(2), {"A": 1}, jobs))
    found = [(u.gpu_type, u.at - NOW, u.gpus) for u in unlocks(told.snapshot, told.outcome)]
    assert found == [("h100", timedelta(minutes=30), 4), ("h100", timedelta(minutes=40), 4)]


def test_what_a_protected_job_grows_by_is_not_protected() -> None:
    small = job("e", "A", 8, min_gpus=4, on={"n1": 4}, ran=10)
    told = Told(cluster(nodes(1), {"A": 1}, [small]), {"e": moved(Move.RESIZE, n1=8)})
    assert [(u.gpus, u.at - NOW) for u in unlocks(told.snapshot, told.outcome)] == [(4, timedelta(minutes=50))]
