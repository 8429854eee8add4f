"""The host's own allocator: asks evenhand, and keeps its name."""

from datetime import UTC, datetime

from evenhand import ClusterState, Plan, Policy, allocate
from evenhand_models import Contract, GpuType, Group, Job, Node

from models import Order


def decide(orders: list[Order]) -> Plan:
    """Turn orders into a plan on a cluster of one node."""
    now = datetime(2026, 11, 1, tzinfo=UTC)
    state = ClusterState(
        now=now,
        gpu_types=(GpuType(name="h100"),),
        nodes=(Node(name="n1", gpu_type="h100", gpus=8),),
        groups=(Group(id="vision", share=1), Group(id="language", share=1)),
        jobs=tuple(
            Job(
                id=f"{number}-{order.team}",
                group=order.team,
                gpus=order.gpus,
                speedup={"h100": 1.0},
                submitted_at=now,
                contract=Contract(min_runtime_s=3600),
            )
            for number, order in enumerate(orders)
        ),
    )
    return allocate(state, Policy(time_limit_s=10))
