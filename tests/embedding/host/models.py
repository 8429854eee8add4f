"""The host's own models: a name evenhand must not take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Order:
    """What the host's users ask for."""

    team: str
    gpus: int
