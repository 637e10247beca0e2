"""The whole body of an answer, within a bound.

The bound holds for what comes over the wire and for what it unpacks to: a few kilobytes of gzip can
unpack to gigabytes. So nothing is unpacked further than the bound.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from rsp_engine.replica.sparql_client.faults import ENCODING, TOO_LARGE, TRUNCATED, FaultError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["ACCEPTED_ENCODING", "whole_body"]

ACCEPTED_ENCODING = "gzip"
_GZIP = 31  # window bits of zlib that mean gzip


def whole_body(chunks: Iterable[bytes], encoding: str, most_bytes: int) -> bytes:
    """Put a body together; one that is too large, or does not end, is a fault.

    >>> whole_body([b"ab", b"c"], "identity", 3)
    b'abc'
    """
    bounded = _bounded(chunks, most_bytes)
    match encoding.strip().lower():
        case "" | "identity":
            return b"".join(bounded)
        case "gzip" | "x-gzip":
            return b"".join(_bounded(_unzipped(bounded, most_bytes), most_bytes))
        case _:
            raise FaultError(ENCODING)


def _bounded(chunks: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most_bytes:
            raise FaultError(TOO_LARGE)
        yield chunk


def _unzipped(chunks: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """Unpack; several members may follow each other."""
    unpacker = zlib.decompressobj(_GZIP)
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if unpacker.eof:
                    unpacker = zlib.decompressobj(_GZIP)
                # One byte beyond the bound is enough to see that it is passed.
                yield unpacker.decompress(rest, most_bytes + 1)
                rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    except zlib.error:
        raise FaultError(ENCODING) from None
    if not unpacker.eof:
        raise FaultError(TRUNCATED)
