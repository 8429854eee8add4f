"""What a token limited to groups sees of each answer: its own part, and numbers without names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenhand_api.access.view import View

Document = dict[str, Any]
Cut = Callable[[Document, View], Document]
MOST_WORDS = 20
"""Changes of a job whose reasons are kept in words; of those before only the codes are."""


def cut_cluster(document: Document, view: View) -> Document:
    """Keep the own part of the tree; types, nodes and policy name nobody."""
    groups = [group for group in document["config"]["groups"] if group["id"] in view.own]
    groups = [group if group.get("parent") in view.own else group | {"parent": None} for group in groups]
    return document | {"config": document["config"] | {"groups": groups}}


def cut_round(document: Document, view: View) -> Document:
    """Keep the own jobs and groups of a plan; what is proven of the whole stays, in numbers."""
    plan, veil = document["plan"], view.veil(document["round"])
    proof = plan["certificate"]
    pairs = [pair for pair in proof["envy"] if {pair["group"], pair["envied"]} <= veil.groups]
    return document | {
        "plan": plan
        | {
            "assignments": [veil.assignment(a) for a in plan["assignments"] if a["job"] in veil.jobs],
            "groups": [group for group in plan["groups"] if group["group"] in veil.groups],
            "certificate": proof | {"envy": pairs},
            "calendar": [entry for entry in plan["calendar"] if entry["job"] in veil.jobs],
            "warnings": [veil.spoken(w) for w in plan["warnings"] if not veil.hidden & set(w["refs"])],
        }
    }


def cut_explanation(document: Document, view: View) -> Document:
    """Take the names of strangers out of an own job's reasons."""
    changes = document["changes"]
    told = [_told(change, view) for change in changes[-MOST_WORDS:]]
    latest = document["latest"]
    return document | {
        "latest": None if latest is None else _told(latest, view),
        "changes": [_wordless(change) for change in changes[:-MOST_WORDS]] + told,
    }


def cut_groups(document: Document, view: View) -> Document:
    """Keep the own groups of a report by group."""
    groups = [group for group in document["groups"] if view.covers(group["group"])]
    for group in groups:
        if "parent" in group and group["parent"] not in view.own:
            group["parent"] = None
    return document | {"groups": groups}


def cut_owed(document: Document, view: View) -> Document:
    """Keep the own hours and groups; what all leaves together were owed and received has no names."""
    hours = [hour for hour in document["hours"] if view.covers(hour["group"])]
    return cut_groups(document, view) | {"hours": hours}


def cut_occupancy(document: Document, view: View) -> Document:
    """Keep what the own groups hold, and their idle jobs."""
    own = {key: [one for one in document[key] if view.covers(one["group"])] for key in ("groups", "idle", "held")}
    return document | own


def as_it_is(document: Document, _: View) -> Document:
    """Leave an answer that has numbers and hashes only."""
    return document


def _told(change: Document, view: View) -> Document:
    return change | {"assignment": view.veil(change["round"]).assignment(change["assignment"])}


def _wordless(change: Document) -> Document:
    assignment = {k: v for k, v in change["assignment"].items() if k not in {"after", "cheapest_change"}}
    codes = [{"code": r["code"], "message": "", "refs": []} for r in assignment.get("reasons", ())]
    return change | {"assignment": assignment | {"reasons": codes}}
