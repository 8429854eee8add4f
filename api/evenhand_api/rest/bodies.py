"""Taking a request's body off the wire: strict about its type, bounded in size before anything is parsed."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from email.message import Message as MailHeader

from starlette.requests import Request
from starlette.types import Message, Receive

from evenhand_api.rest.problems import Kind, Refusal


async def read_body(request: Request, most_bytes: int) -> bytes:
    """Read the whole body, decompressed.

    Parameters
    ----------
    request : Request
        The request, its body not read yet.
    most_bytes : int
        Largest body in bytes, compressed and decompressed alike.

    Raises
    ------
    Refusal
        415 for another media type, charset or encoding; 413 above the limit; 400 for an empty body or
        broken gzip.
    """
    _check_media_type(request.headers.get("content-type"))
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"identity", "", "gzip", "x-gzip"}:
        raise Refusal(
            Kind.UNSUPPORTED,
            f"Content-Encoding {coding[:40]!r} is not read here; gzip is.",
            {"Accept-Encoding": "gzip"},
        )
    body = await read_raw(request, most_bytes)
    if coding in {"gzip", "x-gzip"}:
        body = gunzip_at_most(body, most_bytes)
    if not body.strip():
        raise Refusal(Kind.MALFORMED, 'The body is empty; send {"state": ..., "policy": ...}.')
    return body


async def read_raw(request: Request, most_bytes: int) -> bytes:
    """Read the body as it comes, refusing it as soon as it is announced or grows larger than `most_bytes`.

    Raises
    ------
    Refusal
        413 above the limit.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > most_bytes:
        raise too_large(most_bytes)
    return await _read_at_most(request.stream(), most_bytes)


def timed(receive: Receive, within_s: float) -> Receive:
    """Return the same stream of a request's body, refused if it has not ended in time.

    Parameters
    ----------
    within_s : seconds from the first time it is read to the body's end.
    """
    end: float | None = None
    whole = False

    async def in_time() -> Message:
        nonlocal end, whole
        if whole:
            return await receive()
        now = asyncio.get_running_loop().time()
        end = now + within_s if end is None else end
        try:
            async with asyncio.timeout_at(end):
                message = await receive()
        except TimeoutError:
            said = f"The body did not come within {within_s:g} s."
            raise Refusal(Kind.TOO_SLOW, said, {"Connection": "close"}) from None
        whole = not message.get("more_body", False)
        return message

    return in_time


def gunzip_at_most(packed: bytes, most_bytes: int) -> bytes:
    """Decompress gzip, refusing what is broken or larger than `most_bytes` once unpacked."""
    parts: list[bytes] = []
    left = most_bytes
    while packed:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            part = unpacker.decompress(packed, left + 1)
        except zlib.error as reason:
            raise Refusal(Kind.MALFORMED, f"The body is not proper gzip: {reason}.") from None
        if len(part) > left:
            raise too_large(most_bytes)
        if not unpacker.eof:
            raise Refusal(Kind.MALFORMED, "The body is not proper gzip: it ends early.")
        parts.append(part)
        left -= len(part)
        packed = unpacker.unused_data
    return b"".join(parts)


def too_large(most_bytes: int) -> Refusal:
    """Say how large a body may be."""
    return Refusal(Kind.TOO_LARGE, f"The body may have at most {most_bytes:,} bytes, decompressed.")


async def _read_at_most(stream: AsyncIterator[bytes], most_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in stream:
        size += len(part)
        if size > most_bytes:
            raise too_large(most_bytes)
        parts.append(part)
    return b"".join(parts)


def _check_media_type(header: str | None) -> None:
    """Let application/json pass, in UTF-8 if it names a charset."""
    message = MailHeader()
    message["content-type"] = header or ""
    if header is None or message.get_content_type() != "application/json" or "/" not in header:
        raise Refusal(Kind.UNSUPPORTED, "The body must come with Content-Type: application/json.")
    charset = message.get_param("charset", "utf-8")
    if str(charset).lower() not in {"utf-8", "utf8"}:
        raise Refusal(Kind.UNSUPPORTED, f"The body must be in UTF-8, not {str(charset)[:40]!r}.")
