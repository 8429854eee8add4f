"""Decide a round inside your own program: build a state, ask, read the plan, let the audit judge it."""

from datetime import UTC, datetime, timedelta

from evenhand import ClusterState, Policy, allocate, audit
from evenhand_models import Action, Contract, GpuType, Group, Job, Node, Usage

now = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
hour = timedelta(hours=1)

state = ClusterState(
    now=now,
    gpu_types=(GpuType(name="h100", charge_rate=2.0), GpuType(name="a100")),
    nodes=(
        Node(name="h1", gpu_type="h100", gpus=8),
        Node(name="a1", gpu_type="a100", gpus=8),
        Node(name="a2", gpu_type="a100", gpus=8),
    ),
    groups=(Group(id="vision", share=1), Group(id="language", share=1)),
    usage=(Usage(group="vision", charged_gpu_hours=120.0),),
    jobs=(
        Job(
            id="detector",
            group="vision",
            gpus=8,
            speedup={"h100": 1.3, "a100": 1.0},  # gains little from the faster type
            submitted_at=now - 2 * hour,
            contract=Contract(min_runtime_s=3600),
        ),
        Job(
            id="translator",
            group="language",
            gpus=8,
            speedup={"h100": 3.0, "a100": 1.0},  # gains much
            submitted_at=now - hour,
            contract=Contract(min_runtime_s=7200),
        ),
        Job(id="sweep", group="language", gpus=4, min_gpus=1, speedup={"a100": 1.0}, submitted_at=now - hour),
    ),
)

if __name__ == "__main__":
    policy = Policy(time_limit_s=2)
    plan = allocate(state, policy)
    for assignment in plan.assignments:
        where = ", ".join(f"{part.node}:{part.gpus}" for part in assignment.placement) or "nowhere"
        why = assignment.reasons[0].message if assignment.reasons else ""
        print(f"{assignment.job}: {assignment.action} on {where}. {why}")
    assert audit(state, plan, policy).ok
    assert any(assignment.action is Action.START for assignment in plan.assignments)
