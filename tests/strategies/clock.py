"""Instants of random clusters: whole seconds since 1970, written as RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime

NOW = int(datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp())
"""The instant about which random clusters are drawn."""


def stamp(seconds: int) -> str:
    """Write an instant with Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
