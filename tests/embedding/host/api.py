"""The host's own API: a name evenhand must not take."""

from models import Order


def orders() -> list[Order]:
    """List what is asked for."""
    return [Order("vision", 4), Order("language", 4), Order("nobody", 64)]
