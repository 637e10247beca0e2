"""FM sketches of a sliding window: an estimate of its number of distinct objects.

The hash of an object selects a bitmap, and the number of trailing zeros of its rest selects the bit
to set: bit r is set by one of 2^(r+1) objects. Instead of a bit, the sketch stores the last window
of the objects that set it, so that bits expire.

    bit          0   1   2   3   4   5
    until       17  16  17   9  12   -     in window 12 the first three bits are set, and bit 4
    window 12    1   1   1   0   1   0

With n objects and b bitmaps, bit r of a bitmap is not set with probability exp(-n / (b 2^(r+1))).
The estimate is the maximum-likelihood n. (The paper uses the mean of the lowest unset bits, which
overestimates small n; and the overlap of two streams is a small difference of large numbers.)

The union of two sketches, bit by bit, is the sketch of the union of their objects.

>>> sketch = FMSketch()
>>> sketch.add(np.arange(1000), 5)
>>> round(sketch.distinct(5)), round(sketch.distinct(6))
(950, 0)

Flajolet, Martin: Probabilistic counting algorithms for data base applications. JCSS 31(2), 1985;
over a window as in Haghani, Michel, Aberer (CIKM 2009, section 4); maximum likelihood as in
Clifford, Cosma: A statistical analysis of probabilistic counting algorithms (2012).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.incomplete.hashing import hash_keys

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers

__all__ = ["FMSketch"]

_BITMAPS = 256
_BITS = 24
_NEVER = -1
_SHARES = 0.5 ** np.arange(1, _BITS + 1) / _BITMAPS
"""The share of all objects that set each bit of a bitmap."""


class FMSketch:
    """The sketch of one stream. Time: O(1) per object, O(bits) to count. Memory: O(bits)."""

    def __init__(self, until: Integers | None = None) -> None:
        self._until = np.full((_BITMAPS, _BITS), _NEVER) if until is None else until

    def add(self, objects: Integers, end: int) -> None:
        """Add objects, by hashes or by numbers that are never reused, that live until `end`."""
        hashes = hash_keys(objects)
        bitmaps = (hashes % np.uint64(_BITMAPS)).astype(np.int64)
        rest = hashes // np.uint64(_BITMAPS)
        lowest = rest & (~rest + np.uint64(1))  # a power of two, or zero
        bits = np.where(rest == 0, _BITS - 1, np.log2(np.maximum(lowest, 1).astype(np.float64)))
        bits = np.minimum(bits, _BITS - 1).astype(np.int64)
        self._until[bitmaps, bits] = np.maximum(self._until[bitmaps, bits], end)

    def union(self, other: FMSketch) -> FMSketch:
        """Return the sketch of the union of the objects."""
        return FMSketch(np.maximum(self._until, other._until))

    def distinct(self, window: int) -> float:
        """Return the estimated number of distinct objects that live until a window."""
        are_set = np.count_nonzero(self._until >= window, axis=0)
        if not are_set.any():
            return 0.0
        # The likelihood has one maximum. Bisect its derivative: rising while set bits outweigh.
        unset = float(((_BITMAPS - are_set) * _SHARES).sum())
        low, high = 0.0, float(_BITMAPS << _BITS)
        for _ in range(48):
            middle = (low + high) / 2
            with np.errstate(over="ignore"):
                rises = float((are_set * _SHARES / np.expm1(middle * _SHARES)).sum()) > unset
            low, high = (middle, high) if rises else (low, middle)
        return high

    def state(self) -> list[list[int]]:
        """Return the last windows of the bits, as plain data."""
        rows: list[list[int]] = self._until.tolist()
        return rows

    def restore(self, state: list[list[int]]) -> None:
        """Restore the state."""
        self._until = np.array(state, dtype=np.int64).reshape(_BITMAPS, _BITS)
