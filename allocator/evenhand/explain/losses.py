"""Nodes lost under a running job (rule S9)."""

from __future__ import annotations

from evenhand.explain.words import listed
from evenhand.snapshot import Snapshot
from evenhand_models import NodeStatus


def lost_nodes(snapshot: Snapshot, job: int) -> tuple[str, list[str]]:
    """Say which nodes were lost under a hit job, and name those that are listed.

    Returns
    -------
    tuple of str and list of str
        The beginning of a sentence without its end, and names of nodes.
    """
    told, refs = [], []
    for part in snapshot.jobs[job].placement:
        n = snapshot.node_index.get(part.node)
        if n is None:
            told.append(f"node {part.node} is gone")
            continue
        node = snapshot.nodes[n]
        closing = node.available_until_at
        if node.status is NodeStatus.DOWN:
            told.append(f"node {node.name} is down")
        elif closing is not None and closing <= snapshot.now:
            told.append(f"node {node.name} is in maintenance")
        elif snapshot.overfull[n]:
            usable = max(0, node.usable_gpus)
            told.append(f"node {node.name} has {usable} usable GPUs left, fewer than jobs hold on it")
        else:
            continue
        refs.append(node.name)
    text = listed(told) if told else "GPUs were lost under it"
    return text[0].upper() + text[1:], refs[:10]
