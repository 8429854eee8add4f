"""Names that every reader of LP and MPS files takes, one for each thing."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 100
"""Characters of a name at most."""


def plain_names(spoken: Iterable[str], first: str) -> list[str]:
    """Return a plain, unique name for each spoken one, in order.

    Only letters, digits and underscores stay; names that come out alike, or are too long, end in a number.

    Parameters
    ----------
    first : str
        What is put before a name that could be taken for a number.
    """
    taken: set[str] = set()
    found = []
    for name in spoken:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not re.match(r"[A-Za-z_]", plain):
            plain = first + plain
        plain, number = plain[:LONGEST], 1
        stem = plain
        while plain.lower() in taken or (number == 1 and len(name) > LONGEST):
            number += 1
            plain = f"{stem[: LONGEST - 7]}__{number}"
        taken.add(plain.lower())
        found.append(plain)
    return found
