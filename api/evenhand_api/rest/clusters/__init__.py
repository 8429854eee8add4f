"""The stateful doors: clusters with their configuration, rounds, events, and what the ledger says of them."""

from evenhand_api.rest.clusters.routes import add_cluster_routes

__all__ = ["add_cluster_routes"]
