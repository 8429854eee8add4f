"""All that a replay is given, and a scenario laid over it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand.replay import WorldRules
from evenhand.scenarios.hardware import changed_hardware
from evenhand.scenarios.jobs import changed_jobs
from evenhand.scenarios.tree import changed_tree
from evenhand_models import ClusterState, Policy
from evenhand_models.scenarios import Scenario
from evenhand_models.traces import Trace, WorldChange


@dataclass(frozen=True, slots=True)
class ReplayCase:
    """What a replay is given."""

    trace: Trace
    cluster: ClusterState
    policy: Policy
    rules: WorldRules


def laid_over(case: ReplayCase, scenario: Scenario, seed: int = 0) -> ReplayCase:
    """Lay a scenario over a replay.

    Parameters
    ----------
    seed : decides which jobs are doubled or left out, and when added ones come; equal seeds, equal cases.

    Raises
    ------
    InvalidInput
        If the scenario does not fit the cluster or the tree; pointers are relative to the scenario.
    """
    types, nodes, later = changed_hardware(case.cluster, scenario.cluster)
    groups, regrouped = changed_tree(case.cluster.groups, scenario.tree)
    cluster = ClusterState(
        now=case.cluster.now, gpu_types=types, nodes=nodes, groups=groups, usage=case.cluster.usage, jobs=()
    )
    trace = case.trace
    changes = _merged([*trace.changes, *later, *regrouped])
    trace = replace(trace, jobs=changed_jobs(trace, scenario.jobs, seed), changes=changes)
    policy = Policy.model_validate(case.policy.model_dump() | scenario.policy)
    world = scenario.world.model_dump(exclude_none=True)
    return ReplayCase(trace, cluster, policy, replace(case.rules, **world))


def _merged(changes: list[WorldChange]) -> tuple[WorldChange, ...]:
    """One change for each moment, in order of time; of several trees at one moment the last holds."""
    by_time: dict[int, WorldChange] = {}
    for change in changes:
        known = by_time.get(change.at_s)
        if known is None:
            by_time[change.at_s] = change
            continue
        nodes = {node.name: node for node in (*known.nodes, *change.nodes)}
        gone = tuple(name for name in dict.fromkeys((*known.gone, *change.gone)))
        groups = known.groups if change.groups is None else change.groups
        by_time[change.at_s] = WorldChange(change.at_s, tuple(nodes.values()), gone, groups)
    return tuple(by_time[at] for at in sorted(by_time))
