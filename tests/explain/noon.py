"""Small clusters at one o'clock, decided by hand or by the greedy plan, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from evenhand.entitlement import entitle
from evenhand.explain import Explanation, explain
from evenhand.fairness.target import fair_target
from evenhand.greedy import greedy
from evenhand.outcome import STOPS, WAITS, Decision, Move, Outcome
from evenhand.program.index import build_index
from evenhand.snapshot import take_snapshot
from evenhand_models import (
    ClusterState,
    Contract,
    GpuType,
    Group,
    Job,
    Node,
    Placement,
    Policy,
    Reason,
    ReasonCode,
    Usage,
)

NOW = datetime(2026, 11, 1, 13, 0, tzinfo=UTC)
Hand = tuple[Move, Mapping[str, int], str]
"""A decision by names: move, GPUs by node, type."""


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def nodes(count: int, gpus: int = 8, gpu_type: str = "h100", first: int = 1, **more) -> list[Node]:
    return [Node(name=f"n{first + i}", gpu_type=gpu_type, gpus=gpus, **more) for i in range(count)]


def job(
    id: str,
    group: str,
    gpus: int,
    *,
    c: int = 60,
    on: Mapping[str, int] | None = None,
    ran: float = 0,
    **more,
) -> Job:
    """Build a job with a contract of c minutes; `on`: where it runs, since `ran` minutes."""
    fields = {"speedup": {"h100": 1.0}, "submitted_at": ago(max(ran, 10)), **more}
    if on is not None:
        fields.setdefault("state", "running")
        fields |= {
            "started_at": ago(ran),
            "placement": tuple(Placement(node=n, gpus=g) for n, g in on.items()),
        }
    resumable = fields.pop("resumable", True)
    return Job(id=id, group=group, gpus=gpus, contract=Contract(min_runtime_s=c * 60, resumable=resumable), **fields)


def cluster(
    on: list[Node],
    groups: Mapping[str, float] | list[Group],
    jobs: list[Job],
    used: Mapping[str, float] | None = None,
) -> ClusterState:
    tree = groups if isinstance(groups, list) else [Group(id=g, share=w) for g, w in groups.items()]
    kinds = sorted({n.gpu_type for n in on})
    usage = tuple(Usage(group=g, charged_gpu_hours=h) for g, h in (used or {}).items())
    return ClusterState(
        now=NOW, gpu_types=[GpuType(name=k) for k in kinds], nodes=on, groups=tree, usage=usage, jobs=jobs
    )


def start(gpu_type: str = "h100", **on: int) -> Hand:
    return Move.START, on, gpu_type


def moved(move: Move, gpu_type: str = "h100", **on: int) -> Hand:
    return move, on, gpu_type


PREEMPT: Hand = (Move.PREEMPT, {}, "")
WAIT: Hand = (Move.WAIT, {}, "")


def reserved(gpu_type: str = "h100") -> Hand:
    return Move.WAIT, {}, gpu_type


class Told:
    """Everything said about one round: the greedy plan's decisions, those given by hand in their place."""

    def __init__(
        self,
        state: ClusterState,
        hands: Mapping[str, Hand] | None = None,
        policy: Policy | None = None,
        *,
        optimal: bool = True,
    ) -> None:
        self.snapshot = s = take_snapshot(state, policy or Policy())
        entitlement = entitle(s)
        target = fair_target(s, entitlement)
        index = build_index(s, ())
        decisions = dict(greedy(s, entitlement, index).decisions)
        for name, (move, on, kind) in (hands or {}).items():
            t = s.types.index(kind) if kind else -1
            places = tuple(sorted((s.node_index[n], g) for n, g in on.items()))
            if move is Move.PREEMPT:
                decisions[s.job_index[name]] = STOPS
            elif move is Move.WAIT:
                decisions[s.job_index[name]] = Decision(Move.WAIT, reserved_type=t) if kind else WAITS
            else:
                decisions[s.job_index[name]] = Decision(move, places, t)
        self.outcome = Outcome(decisions, optimal)
        self.words = explain(s, entitlement, target, index, self.outcome)

    def of(self, name: str) -> Explanation:
        return self.words[self.snapshot.job_index[name]]

    def codes(self, name: str) -> list[str]:
        return [str(r.code.value) for r in self.of(name).reasons]

    def reason(self, name: str, code: str) -> Reason:
        found = [r for r in self.of(name).reasons if r.code is ReasonCode(code)]
        assert len(found) == 1, (name, code, self.codes(name))
        return found[0]

    def bytes(self) -> bytes:
        """All words in the order of the jobs' ids."""
        lines = []
        for j, x in sorted(self.words.items()):
            lines += [self.snapshot.jobs[j].id, str(x.earliest_start_at), str(x.cheapest_change)]
            lines += [r.model_dump_json() for r in x.reasons]
        return "\n".join(lines).encode()
