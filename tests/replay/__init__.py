"""Replays of traces small enough to follow by hand."""
