"""Closed lists of the ledger: kinds of facts, where they came from."""

from __future__ import annotations

from enum import StrEnum


class FactKind(StrEnum):
    """What a fact says of a job."""

    HELD = "held"
    """It held these GPUs at that instant."""
    ENDED = "ended"
    """It, or one start of it, ended then."""


class Source(StrEnum):
    """Who said it."""

    EVENT = "event"
    """An event, reported for itself."""
    ROUND = "round"
    """A round's state, in which it differed from the round before."""


class EventKind(StrEnum):
    """What an event says."""

    STARTED = "started"
    """A job began to run on a placement."""
    RESIZED = "resized"
    """A running job has another placement since then, under the same start."""
    ENDED = "ended"
    """A job let its GPUs go: done, stopped or failed."""
    NODE_DOWN = "node_down"
    """A node runs nothing since then."""
    NODE_UP = "node_up"
    """A node runs again since then."""
