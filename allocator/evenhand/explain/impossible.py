"""Why a job could not run even on this cluster empty and all nodes up (rules S4, S5; case 8)."""

from __future__ import annotations

import numpy as np

from evenhand.explain.words import either, gpus, listed, reason
from evenhand.shapes import Filter, filter_of
from evenhand.snapshot import NO_GROUP, Snapshot
from evenhand_models import Job, Reason, ReasonCode


class Impossible:
    """Causes of infeasible jobs."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._s = snapshot
        gpus_of = np.array([n.gpus for n in snapshot.nodes], dtype=np.int64)
        self._there = [int(t) for t in range(len(snapshot.types)) if int(gpus_of[snapshot.node_type == t].sum()) > 0]
        self._known: dict[object, tuple[Reason, ...]] = {}

    def explain(self, job: int) -> tuple[Reason, ...]:
        """All causes: the group first, then types, labels, size."""
        s, asked = self._s, self._s.jobs[job]
        unknown = s.group[job] == NO_GROUP
        key = (
            asked.group if unknown else None, filter_of(asked), asked.gpus, asked.min_gpus, asked.worker_gpus,
            asked.gpus_per_node, tuple(asked.speedup.items()),
        )  # fmt: skip
        if key not in self._known:
            found = []
            if unknown:
                message = f"Group {asked.group} is not in the tree."
                found.append(reason(ReasonCode.UNKNOWN_GROUP, message, change=f"add group {asked.group}"))
            if not s.fits[job].any():
                found += self._misfit(asked)
            self._known[key] = tuple(found)
        return self._known[key]

    def _misfit(self, job: Job) -> list[Reason]:
        s = self._s
        wanted = sorted(name for name, x in job.speedup.items() if x > 0)
        there = [s.types[t] for t in self._there]
        offer = f"the cluster has {listed(there)}" if there else "the cluster has no GPUs"
        change = f"a speedup above 0 for {either(there)}" if there else None
        if not wanted:
            message = f"It has a speedup above 0 on no type; {offer}."
            return [reason(ReasonCode.ZERO_SPEEDUP, message, change=change)]
        types = [t for t in self._there if s.types[t] in wanted]
        if not types:
            message = f"It runs on {either(wanted)} only, and {offer}."
            return [reason(ReasonCode.NO_SUCH_TYPE, message, change=change)]
        where = filter_of(job)
        bare = Filter(where.requires, None)
        labelled = [t for t in types if s.sites.domains(bare, t)]
        if not labelled:
            return [self._requires(job, types)]
        if where.same is not None:
            loose = job.model_copy(update={"same": None})
            if any(s.sites.fits(loose, t, job.min_gpus or job.gpus) for t in labelled):
                return [self._same(job, where.same, labelled)]
        return [self._too_large(job, labelled)]

    def _kinds(self, types: list[int]) -> str:
        return either([self._s.types[t] for t in types])

    def _requires(self, job: Job, types: list[int]) -> Reason:
        labels = listed([f"{key}={value}" for key, value in sorted(job.requires.items())])
        count = sum(int((self._s.node_type == t).sum()) for t in types)
        message = f"None of the {count} {self._kinds(types)} nodes carries {labels}."
        if count == 1:
            message = f"The only {self._kinds(types)} node does not carry {labels}."
        return reason(ReasonCode.REQUIRES_UNMATCHED, message, change=f"label nodes with {labels}")

    def _same(self, job: Job, key: str, types: list[int]) -> Reason:
        s, least = self._s, job.min_gpus or job.gpus
        most = max(s.sites.largest(job, t) for t in types)
        kinds = self._kinds(types)
        if not any(s.sites.domains(filter_of(job), t) for t in types):
            message = f"No {kinds} node carries the label {key} that its nodes must share."
            return reason(ReasonCode.SAME_UNMATCHED, message, change=f"label nodes with {key}")
        wants = f"Needs {gpus(least)} on {kinds} nodes that share one value of {key}"
        message = f"{wants}; the largest size that would do is {most}."
        return reason(ReasonCode.SAME_UNMATCHED, message, change=_smaller(job, most))

    def _too_large(self, job: Job, types: list[int]) -> Reason:
        s, least = self._s, job.min_gpus or job.gpus
        kinds = self._kinds(types)
        if not any(s.sites.domains(filter_of(job), t) for t in types):
            job = job.model_copy(update={"same": None})
        parts = [part for t in types for _, part in s.sites.domains(filter_of(job), t)]
        most = max(s.sites.largest(job, t) for t in types)
        piece = job.worker_gpus or job.gpus_per_node
        widest = max(int(s.nodes[n].gpus) for part in parts for n in part)
        if piece is not None and piece > widest:
            what = "a worker" if job.worker_gpus else "each node"
            message = (
                f"Needs {piece} GPUs on one node for {what}; the largest {kinds} node it could use has "
                f"{widest}, the largest size of one that would do."
            )
            field = "worker_gpus" if job.worker_gpus else "gpus_per_node"
            return reason(ReasonCode.GANG_TOO_LARGE, message, change=f"{field} of at most {widest}")
        form = ""
        if piece is not None:
            form = f" in workers of {piece}" if job.worker_gpus else f", {piece} on each node"
        message = f"Needs {gpus(least)}{form}; the largest size that {kinds} nodes could hold is {most}."
        return reason(ReasonCode.GANG_TOO_LARGE, message, change=_smaller(job, most))


def _smaller(job: Job, most: int) -> str | None:
    field = "gpus" if job.min_gpus is None else "min_gpus"
    return f"{field} of at most {most}" if most else None
