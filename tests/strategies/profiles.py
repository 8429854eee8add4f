"""How large a random cluster may be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Upper ends of what is drawn; sizes are in GPUs."""

    name: str
    types: int
    nodes: int
    node_gpus: tuple[int, ...]
    groups: int
    jobs: int
    job_gpus: tuple[int, ...]
    least_jobs: int = 0


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("tiny", 3, 4, (2, 4, 1, 3, 4, 4), 4, 5, (1, 2, 1, 4, 2, 3, 1, 2, 6, 4), 1),
        Profile("small", 3, 8, (8, 4, 2, 8, 1, 6), 7, 14, (1, 2, 4, 8, 1, 2, 3, 6, 16, 12), 2),
        Profile("medium", 4, 16, (8, 8, 4, 8, 2, 16), 12, 40, (1, 1, 2, 4, 8, 8, 3, 16, 24, 32), 8),
    )
}
"""By name: `tiny` is small enough to try everything, `small` and `medium` are not."""
