"""Replays in the background: asked for, watched, taken back, fetched."""

from evenhand_api.rest.replays.house import House
from evenhand_api.rest.replays.routes import add_replay_routes

__all__ = ["House", "add_replay_routes"]
