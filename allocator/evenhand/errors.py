"""What can go wrong inside the library.

EvenhandError (evenhand_models.errors)
+-- InvalidInput       the request is wrong; carries all field errors
+-- PlacementError     a solved program does not fit the nodes: a defect, answered with the greedy plan
+-- AuditFailed        no plan passes the audit: a defect, nothing is served
+-- SolverError        a solver broke its contract: a defect, answered with the greedy plan
"""

from __future__ import annotations

from evenhand_models import EvenhandError


class PlacementError(EvenhandError):
    """Workers that the program counted in a pool do not fit its nodes."""

    def __init__(self, pool: int, worker: int) -> None:
        self.pool = pool
        self.worker = worker
        super().__init__(f"workers of {worker} GPUs do not fit the nodes of pool {pool}")


class SolverError(EvenhandError):
    """A solver answered with something other than a solution or a limit."""


class AuditFailed(EvenhandError):
    """Not even the greedy plan passes the audit: nothing is served."""

    def __init__(self, rule: str, message: str) -> None:
        self.rule = rule
        super().__init__(f"no plan passes the audit; first finding: {rule}: {message}")
