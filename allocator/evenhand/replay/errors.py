"""What can go wrong in a replay.

EvenhandError
+-- BrokenRule   a scheduler did what the cluster cannot do: a defect of the scheduler
"""

from __future__ import annotations

from evenhand_models import EvenhandError


class BrokenRule(EvenhandError):
    """A scheduler broke a hard rule of the model; carries its number."""

    def __init__(self, rule: str, message: str) -> None:
        self.rule = rule
        super().__init__(f"{rule}: {message}")
