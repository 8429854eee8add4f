"""What must hold before a token limited to groups is let through: the jobs it speaks of are its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from evenhand_api.access.view import View
from evenhand_api.rest.problems import Kind, Refusal

Check = Callable[[View, Mapping[str, str], bytes], None]
"""From the view, the names in the path and the body; raises `Refusal`."""


def own_job(view: View, path: Mapping[str, str], _: bytes) -> None:
    """Let an own job through; strangers' jobs and those that are not there are refused in the same words."""
    if not _is_own(view, path["job"]):
        raise forbidden()


def own_events(view: View, _: Mapping[str, str], body: bytes) -> None:
    """Let events about own jobs through; what is no list of events is left for the route to refuse.

    Raises
    ------
    Refusal
        403 if one of them is about a node, or a job that is not all the token's.
    """
    try:
        batch = json.loads(body)
    except (ValueError, RecursionError):
        return
    events = batch.get("events") if isinstance(batch, dict) else None
    for event in events if isinstance(events, list) else ():
        if not isinstance(event, dict):
            continue
        job, group = event.get("job"), event.get("group")
        known = view.groups_of_job(job) if isinstance(job, str) else set()
        claimed = known if group is None else known | {str(group)}
        if event.get("node") is not None or not claimed or not all(map(view.covers, claimed)):
            raise forbidden()


def forbidden() -> Refusal:
    """Say no without saying whether there is anything."""
    return Refusal(Kind.FORBIDDEN, "This token does not cover what was asked for.")


def _is_own(view: View, job: str) -> bool:
    groups = view.groups_of_job(job)
    return bool(groups) and all(map(view.covers, groups))
