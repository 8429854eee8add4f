"""A sweep on a real Ray cluster of two nodes, against the same in this process. Run by hand where Ray is installed:

PYTHONPATH=allocator:models:api:tests python tests/scenarios/two_ray_nodes.py

Ends with 0 and a line if the cluster has two nodes and the results are the same bytes.
"""

from __future__ import annotations

import sys

import ray
from ray.cluster_utils import Cluster
from scenarios.small import case

from evenhand.replay import Scheduler
from evenhand_api.whatif.pools import Here, Ray
from evenhand_api.whatif.runs import Base, Run
from evenhand_api.whatif.store import Memory
from evenhand_api.whatif.sweep import sweep
from evenhand_models.scenarios import BASE, read_scenario


def main() -> int:
    more = read_scenario({"name": "more", "cluster": {"add": [{"gpu_type": "h100", "nodes": 1}]}})
    runs = [Run(one, Scheduler.FIRST_FIT, seed) for one in (BASE, more) for seed in range(8)]
    base = Base(case(jobs=60))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        nodes = len([node for node in ray_nodes(cluster.address) if node["Alive"]])
        remote, here = Memory(), Memory()
        first = sweep(base, runs, Ray(cluster.address), remote)
        second = sweep(base, runs, Here(), here)
    finally:
        cluster.shutdown()
    same = first == second and all(remote.get(one["key"]) == here.get(one["key"]) for one in first)
    print(f"{len(runs)} runs on {nodes} nodes: {'the same bytes' if same else 'DIFFERENT'}")
    return 0 if same and nodes == 2 else 1


def ray_nodes(address: str) -> list[dict]:
    ray.init(address=address, log_to_driver=False)
    try:
        return ray.nodes()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main())
