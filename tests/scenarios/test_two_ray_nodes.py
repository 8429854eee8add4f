"""A sweep on a real Ray cluster of two nodes. Collected where Ray is installed (`conftest.py`): evenhand[ray]."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster
from scenarios.small import case

from evenhand.replay import Scheduler
from evenhand_api.commands.terminal import Failure
from evenhand_api.whatif.pools import Here, Ray
from evenhand_api.whatif.runs import Base, Run
from evenhand_api.whatif.store import Folder, Memory
from evenhand_api.whatif.sweep import sweep
from evenhand_models.scenarios import BASE, read_scenario

ROOTS = os.pathsep.join(str(Path(__file__).parents[2] / root) for root in ("allocator", "models", "api"))
pytestmark = pytest.mark.filterwarnings("ignore")
"""Ray warns of what it will do in later versions."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Two nodes with a processor each, on which evenhand is what is here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", ROOTS)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        small = {"num_cpus": 1, "object_store_memory": 100_000_000}
        cluster = Cluster(initialize_head=True, head_node_args=small)
        try:
            cluster.add_node(**small)
            cluster.wait_for_nodes()
            yield cluster.address
        finally:
            cluster.shutdown()


def runs() -> list[Run]:
    more = read_scenario({"name": "more", "cluster": {"add": [{"gpu_type": "h100", "nodes": 1}]}})
    return [Run(one, Scheduler.FIRST_FIT, seed) for one in (BASE, more) for seed in range(4)]


def test_two_nodes_make_the_same_bytes_as_this_process(address: str) -> None:
    ray.init(address=address, log_to_driver=False)
    assert sum(node["Alive"] for node in ray.nodes()) == 2
    ray.shutdown()
    base, remote, here = Base(case(jobs=60)), Memory(), Memory()
    assert sweep(base, runs(), Ray(address), remote) == (want := sweep(base, runs(), Here(), here))
    assert all(remote.get(one["key"]) == here.get(one["key"]) for one in want)


def test_a_sweep_that_was_stopped_on_ray_goes_on_here(address: str, tmp_path: Path) -> None:
    base = Base(case(jobs=60))

    def until_two(_: float, finished: int, __: int) -> None:
        if finished == 2:
            raise Failure("enough")

    with pytest.raises(Failure, match="enough"):
        sweep(base, runs(), Ray(address), Folder(tmp_path), until_two)
    assert len(list(tmp_path.glob("*.json"))) == 2
    assert not ray.is_initialized()
    assert sweep(base, runs(), Here(), Folder(tmp_path)) == sweep(base, runs(), Here(), Memory())
