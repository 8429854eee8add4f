"""The REST door: requests in, plans or problems out."""

from evenhand_api.rest.app import create_app

__all__ = ["create_app"]
