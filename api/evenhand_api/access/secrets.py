"""Secrets of tokens: how they are made, kept and compared.

A secret is 256 random bits, so its SHA-256 is as good as any slow hash: there is nothing to guess that a dictionary could
hold, and trying all is out of reach however fast each try is. Slow, salted hashes are for passwords people choose; here they
would only make every request slow. Comparison takes the same time wherever the first difference is.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256

_written = re.compile(r"evh_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII).fullmatch
NOBODY = sha256(b"nobody").hexdigest()
"""Compared with where no token has the id, so that it takes as long."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A token as it is shown once: its id, and what nobody else knows."""

    id: str
    value: str

    @property
    def digest(self) -> str:
        """SHA-256 of the secret, 64 hexadecimal digits: all that is kept."""
        return sha256(self.value.encode()).hexdigest()

    def matches(self, digest: str) -> bool:
        """Tell whether a kept digest is this secret's, in constant time."""
        return hmac.compare_digest(self.digest, digest)

    def written(self) -> str:
        """Write it for a header."""
        return f"evh_{self.id}_{self.value}"


def new_secret() -> Secret:
    """Draw a new token: 48 bits of id, 256 bits of secret."""
    return Secret(secrets.token_hex(6), secrets.token_urlsafe(32))


def read_secret(text: str) -> Secret | None:
    """Read a token; None if it is none."""
    found = _written(text)
    return None if found is None else Secret(found[1], found[2])
