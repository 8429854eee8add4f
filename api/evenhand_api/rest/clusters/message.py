"""How a round travels to a worker process: one line of JSON before the body, marked by a byte no JSON begins with."""

from __future__ import annotations

import json

from evenhand_api.ledger.rounds import Posted

MARK = b"\x00round "


def packed(url: str, posted: Posted) -> bytes:
    """Write a round for a worker: the ledger's address, the cluster, the key, the body."""
    head = {"url": url, "cluster": posted.cluster, "key": posted.key}
    return MARK + json.dumps(head).encode() + b"\n" + posted.body


def unpacked(message: bytes) -> tuple[str, Posted]:
    """Read what `packed` wrote: the ledger's address and the round."""
    line, _, body = message.removeprefix(MARK).partition(b"\n")
    head = json.loads(line)
    return head["url"], Posted(head["cluster"], body, head["key"])
