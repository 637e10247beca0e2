"""How many stand before each and live at least as long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Integers

__all__ = ["dominators", "dominators_among"]

_BLOCK = 128  # what is counted within a block fits into a byte
_BEFORE = np.triu(np.ones((_BLOCK, _BLOCK), dtype=bool), k=1)


def dominators(end: Integers) -> Integers:
    """Return for each place how many places before it have an end that is not smaller.

    In blocks: those of its own block are compared one by one, those of earlier blocks are counted
    by their ends. Time: O(c (b + m / b)) for c places, m different ends and blocks of b.

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
    # Of two places in a block, the upper triangle holds those where the first stands before.
    is_before = (inside[:, :, None] >= inside[:, None, :]) & _BEFORE
    within = is_before.view(np.uint8).sum(axis=1, dtype=np.uint8).ravel()[:count]
    found: Integers = within.astype(np.int64)
    if blocks > 1:
        found += _in_earlier_blocks(rank, blocks)
    return found


def dominators_among(places: NDArray[np.intp], end: Integers) -> Integers:
    """Return for each place how many of a few places before it have an end that is not smaller.

    >>> dominators_among(np.array([0, 2]), np.array([2, 1, 0, 2, 0])).tolist()
    [0, 1, 1, 1, 2]
    """
    rank = _ranks(end)
    is_before = rank[places, None] >= rank
    is_before &= places[:, None] < np.arange(len(end))
    found: Integers = np.count_nonzero(is_before, axis=0)
    return found


def _ranks(end: Integers) -> NDArray[np.signedinteger]:
    """Return small numbers in the order of the ends: they are compared faster."""
    lowest = int(end.min())
    if int(end.max()) - lowest < 1024:
        return (end - lowest).astype(np.int16)
    return np.unique(end, return_inverse=True)[1].astype(np.int32)


def _in_earlier_blocks(rank: NDArray[np.signedinteger], blocks: int) -> NDArray[np.int32]:
    ends = int(rank.max()) + 1
    places = np.arange(len(rank)) // _BLOCK * ends + rank
    tally = np.bincount(places, minlength=blocks * ends).astype(np.int32).reshape(blocks, ends)
    not_smaller = tally[:, ::-1].cumsum(axis=1, dtype=np.int32)[:, ::-1]
    before = np.zeros_like(tally)
    np.cumsum(not_smaller[:-1], axis=0, out=before[1:])
    return before.ravel()[places]
