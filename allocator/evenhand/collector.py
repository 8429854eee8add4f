"""Python's cycle collector rests while a round is built: it finds nothing in millions of live objects, and costs a third."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Pause the cyclic garbage collector, if it runs, and let it go on afterwards."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
