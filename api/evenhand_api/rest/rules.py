"""Who may use which route. A route without a row is refused to everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand_api.access.cuts import (
    Cut,
    as_it_is,
    cut_cluster,
    cut_explanation,
    cut_groups,
    cut_occupancy,
    cut_owed,
    cut_round,
)
from evenhand_api.access.grants import Scope
from evenhand_api.rest.checks import Check, own_events, own_job


@dataclass(frozen=True, slots=True)
class Rule:
    """What a route asks of its caller.

    Attributes
    ----------
    scope : the scope it needs; None: anybody may use it, it says nothing about clusters.
    all_clusters : whether a token limited to one cluster is refused.
    cut : what a token limited to groups sees of the answer; None: such a token is refused.
    check : what must hold for such a token beforehand.
    """

    scope: Scope | None
    all_clusters: bool = False
    cut: Cut | None = None
    check: Check | None = None


ANYBODY = Rule(None)
_SUBMIT, _ADMINISTER = Rule(Scope.SUBMIT), Rule(Scope.ADMINISTER)


def _read(cut: Cut | None, check: Check | None = None) -> Rule:
    return Rule(Scope.READ, cut=cut, check=check)


_OF_ALL = Rule(Scope.READ, all_clusters=True)
"""Replays are of anybody's clusters: who may see a part only, sees none of them."""

CLUSTER_LIST = ("GET", "/v1/clusters")
"""Answered to everybody who may read, with the clusters that the token covers a part of."""

RULES: Mapping[tuple[str, str], Rule] = {
    ("GET", "/healthz"): ANYBODY,
    ("GET", "/readyz"): ANYBODY,
    ("GET", "/docs"): ANYBODY,
    ("GET", "/openapi.json"): ANYBODY,
    ("GET", "/metrics"): Rule(Scope.READ, all_clusters=True),
    ("POST", "/v1/allocate"): _SUBMIT,
    ("POST", "/v1/audit/speedups"): _SUBMIT,
    ("POST", "/v1/fairness"): _SUBMIT,
    ("POST", "/v1/whatif/start"): _SUBMIT,
    ("POST", "/v1/whatif"): _SUBMIT,
    ("GET", "/v1/whatif"): _OF_ALL,
    ("GET", "/v1/whatif/{number}"): _OF_ALL,
    ("DELETE", "/v1/whatif/{number}"): _SUBMIT,
    ("GET", "/v1/whatif/{number}/events"): _OF_ALL,
    ("GET", "/v1/whatif/{number}/result"): _OF_ALL,
    ("GET", "/v1/whatif/{number}/report"): _OF_ALL,
    CLUSTER_LIST: _read(None),
    ("PUT", "/v1/clusters/{name}"): _ADMINISTER,
    ("GET", "/v1/clusters/{name}"): _read(cut_cluster),
    ("POST", "/v1/clusters/{name}/adjustments"): _ADMINISTER,
    ("POST", "/v1/clusters/{name}/events"): Rule(Scope.SUBMIT, cut=as_it_is, check=own_events),
    ("POST", "/v1/clusters/{name}/observations"): _SUBMIT,
    ("POST", "/v1/clusters/{name}/rounds"): _SUBMIT,
    ("GET", "/v1/clusters/{name}/rounds"): _read(as_it_is),
    ("GET", "/v1/clusters/{name}/rounds/{n}"): _read(cut_round),
    ("GET", "/v1/clusters/{name}/jobs/{job:path}/explanation"): _read(cut_explanation, own_job),
    ("GET", "/v1/clusters/{name}/groups"): _read(cut_groups),
    ("GET", "/v1/clusters/{name}/speedups"): _read(None),
    ("GET", "/v1/clusters/{name}/owed-received"): _read(cut_owed),
    ("GET", "/v1/clusters/{name}/occupancy"): _read(cut_occupancy),
    ("GET", "/v1/clusters/{name}/usage"): _read(cut_groups),
}
"""By method and path. A round decides over everybody, so a token limited to groups may not submit one."""
