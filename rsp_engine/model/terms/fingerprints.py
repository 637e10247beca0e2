"""Fingerprints of texts: 64-bit hashes, of all texts at once, by which repeated ones are counted.

A fingerprint depends on the text alone. Among a million texts, two share one with a probability of
3 in 100 million, so fingerprints serve to count, and not to answer.

>>> first, again, other = fingerprints_of(["<urn:a> <urn:p> 1", "<urn:a> <urn:p> 1", "<urn:b> 2"])
>>> bool(first == again), bool(first == other)
(True, False)
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Integers

__all__ = ["distinct", "fingerprints", "fingerprints_of"]

_WIDTH = 8
_LONG = 512
"""Longer texts, in bytes, are hashed one by one: each word of the longest costs a pass."""
_MIX, _MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_FOLD, _FOLD_AGAIN = np.uint64(32), np.uint64(29)


def fingerprints(data: bytes, starts: Integers, ends: Integers) -> Integers:
    """Return the fingerprints of some ranges of a text, each of at least eight bytes."""
    if not len(starts):
        return np.empty(0, dtype=np.int64)
    words: NDArray[np.uint64] = np.ndarray(
        shape=(len(data) - _WIDTH + 1,), dtype="<u8", buffer=data, strides=(1,)
    )
    sizes, last = ends - starts, ends - _WIDTH
    shortest, longest = int(sizes.min()), int(sizes.max())
    hashes = sizes.astype(np.uint64)
    for offset in range(0, min(longest, _LONG), _WIDTH):
        mixed = words[np.minimum(starts + offset, last)]
        mixed ^= hashes
        mixed *= _MIX
        mixed ^= mixed >> _FOLD
        mixed *= _MIX_AGAIN
        mixed ^= mixed >> _FOLD_AGAIN
        hashes = mixed if offset < shortest else np.where(sizes > offset, mixed, hashes)
    if longest > _LONG:
        for place in np.flatnonzero(sizes > _LONG).tolist():
            digest = hashlib.blake2b(data[starts[place] : ends[place]], digest_size=_WIDTH).digest()
            hashes[place] = int.from_bytes(digest, "little")
    return hashes.view(np.int64)


def fingerprints_of(texts: Sequence[str]) -> Integers:
    """Return the fingerprints of texts of at least eight bytes."""
    encoded = [text.encode() for text in texts]
    edges = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return fingerprints(b"".join(encoded), edges[:-1], edges[1:])


def distinct(found: Integers) -> Integers:
    """Return fingerprints in order, each once."""
    ordered = np.sort(found)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered if is_first.all() else ordered[is_first]
