"""Large documents, packed for the ledger."""

from __future__ import annotations

import zlib


def pack(document: bytes) -> bytes:
    """Pack a document."""
    return zlib.compress(document, 3)


def unpack(packed: bytes) -> bytes:
    """Unpack what `pack` packed."""
    return zlib.decompress(packed)
