"""Dominance counts: how many better objects live at least as long as each object.

Objects come in rank order, so an object is dominated by those before it with an `end` (the last
window that contains the object) that is not smaller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Integers

__all__ = ["dominators", "dominators_among"]

_BLOCK = 128  # counts within a block fit into a byte
_BEFORE = np.triu(np.ones((_BLOCK, _BLOCK), dtype=bool), k=1)


def dominators(end: Integers) -> Integers:
    """Count for each index the earlier indices whose end is not smaller.

    Within a block all pairs are compared; earlier blocks are counted by a histogram of their ends.
    Time: O(c (b + m / b)) for c indices, m distinct ends and blocks of size b.

    >>> dominators(np.array([2, 1, 0, 2])).tolist()
    [0, 1, 2, 1]
    """
    count = len(end)
    if not count:
        return np.empty(0, dtype=np.int64)
    rank = _ranks(end)
    blocks = -(-count // _BLOCK)
    padded = np.full(blocks * _BLOCK, -1, dtype=rank.dtype)
    padded[:count] = rank
    inside = padded.reshape(blocks, _BLOCK)
    # The upper triangle has the pairs of a block whose first index is the earlier one.
    dominates = (inside[:, :, None] >= inside[:, None, :]) & _BEFORE
    within = dominates.view(np.uint8).sum(axis=1, dtype=np.uint8).ravel()[:count]
    counts: Integers = within.astype(np.int64)
    if blocks > 1:
        counts += _count_earlier_blocks(rank, blocks)
    return counts


def dominators_among(places: NDArray[np.intp], end: Integers) -> Integers:
    """Count for each index the earlier ones among `places` whose end is not smaller.

    >>> dominators_among(np.array([0, 2]), np.array([2, 1, 0, 2, 0])).tolist()
    [0, 1, 1, 1, 2]
    """
    rank = _ranks(end)
    dominates = rank[places, None] >= rank
    dominates &= places[:, None] < np.arange(len(end))
    counts: Integers = np.count_nonzero(dominates, axis=0)
    return counts


def _ranks(end: Integers) -> NDArray[np.signedinteger]:
    """Map ends to small integers in the same order, which compare faster."""
    lowest = int(end.min())
    if int(end.max()) - lowest < 1024:
        return (end - lowest).astype(np.int16)
    return np.unique(end, return_inverse=True)[1].astype(np.int32)


def _count_earlier_blocks(rank: NDArray[np.signedinteger], blocks: int) -> NDArray[np.int32]:
    ends = int(rank.max()) + 1
    places = np.arange(len(rank)) // _BLOCK * ends + rank
    tally = np.bincount(places, minlength=blocks * ends).astype(np.int32).reshape(blocks, ends)
    not_smaller = tally[:, ::-1].cumsum(axis=1, dtype=np.int32)[:, ::-1]
    before = np.zeros_like(tally)
    np.cumsum(not_smaller[:-1], axis=0, out=before[1:])
    return before.ravel()[places]
