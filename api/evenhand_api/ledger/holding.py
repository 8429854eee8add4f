"""What a job holds and on which terms, as one value that compares and is written down."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holding:
    """GPUs of one type on some nodes, and who is charged for them.

    Attributes
    ----------
    gpu_type : name of the type; empty if none of the nodes was ever known.
    on : (node, GPUs) in the order of the nodes.
    group : the group that is charged; None: counted nowhere (an orphan).
    user : who submitted the job, if known.
    charged : False for unallocated use.
    rate_m : charge rate in thousandths of a charged GPU per GPU.
    """

    gpu_type: str
    on: tuple[tuple[str, int], ...]
    group: str | None
    user: str | None
    charged: bool
    rate_m: int

    def written(self) -> str:
        """Write it as JSON in one fixed form: equal holdings, equal text."""
        parts = [self.gpu_type, self.on, self.group, self.user, self.charged, self.rate_m]
        return json.dumps(parts, separators=(",", ":"))


def read_holding(text: str) -> Holding:
    """Read what `Holding.written` wrote."""
    gpu_type, on, group, user, charged, rate_m = json.loads(text)
    return Holding(gpu_type, tuple((node, gpus) for node, gpus in on), group, user, charged, rate_m)
