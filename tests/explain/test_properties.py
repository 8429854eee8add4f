"""Over random states: every job is explained, names exist, order of input means nothing."""

from __future__ import annotations

from random import Random

import pytest
from explain.noon import Told, cluster, job, nodes
from strategies.clusters import random_state

from evenhand.outcome import Move
from evenhand_models import ClusterState

SEEDS = range(40)


@pytest.mark.parametrize("profile", ["tiny", "small"])
def test_every_job_has_reasons_and_every_ref_exists(profile: str) -> None:
    for seed in SEEDS:
        state = random_state(Random(seed), profile)
        told = Told(state, optimal=seed % 2 == 0)
        ids = {g.id for g in state.groups} | {n.name for n in state.nodes} | {j.id for j in state.jobs}
        assert sorted(told.words) == list(range(len(state.jobs)))
        for j, words in told.words.items():
            assert words.reasons, (seed, told.snapshot.jobs[j].id)
            for reason in words.reasons:
                assert set(reason.refs) <= ids, (seed, reason)
                assert reason.message.endswith("."), reason
                assert "  " not in reason.message, reason
            decided = told.outcome.decisions.get(j)
            if decided is None or decided.move is not Move.WAIT:
                assert words.earliest_start_at is None
                assert words.cheapest_change is None
            elif words.earliest_start_at is not None:
                assert words.earliest_start_at >= state.now


def test_the_order_of_the_input_means_nothing() -> None:
    for seed in SEEDS:
        state = random_state(Random(seed), "small")
        rng = Random(-seed)
        lists = {
            name: rng.sample(list(getattr(state, name)), len(getattr(state, name)))
            for name in ("nodes", "groups", "jobs", "gpu_types")
        }
        shuffled = ClusterState(now=state.now, usage=state.usage, **lists)
        assert Told(state).bytes() == Told(shuffled).bytes()


def test_how_many_are_worked_out_together_means_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(40)
    whole = [Told(random_state(Random(seed), "medium"), optimal=True).bytes() for seed in seeds]
    assert any(b"Stopping" in one for one in whole)
    assert any(b"come first has" in one for one in whole)
    monkeypatch.setattr("evenhand.explain.giving._AT_ONCE", 1)
    monkeypatch.setattr("evenhand.explain.ranks._AT_ONCE", 1)
    monkeypatch.setattr("evenhand.explain.yard._FIRST_ROWS", 1)
    for seed, words in zip(seeds, whole, strict=True):
        assert Told(random_state(Random(seed), "medium"), optimal=True).bytes() == words


def test_thousands_of_like_jobs_share_their_words() -> None:
    jobs = [job(f"p{i:04}", f"g{i % 5}", 1 + i % 4) for i in range(2_000)]
    told = Told(cluster(nodes(4), {f"g{i}": 1.0 for i in range(5)}, jobs))
    waiting = [x for x in told.words.values() if x.earliest_start_at is not None]
    assert len(waiting) > 1_900
    assert len({id(r) for x in waiting for r in x.reasons if r.code != "priority"}) < 60
