"""Objects of SAP as tuples that compare by rank: a larger tuple ranks higher."""

from __future__ import annotations

from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.topk.contract import Arrivals

__all__ = ["Entry", "best_entries", "entries_of", "keys_and_scores"]

Entry = tuple[float, int, int, int]
"""A score, a position, a key, and the end: the last window that contains the object."""

_SCORE, _KEY = itemgetter(0), itemgetter(2)


def entries_of(arrivals: Arrivals, end: int) -> list[Entry]:
    """Convert arrivals of one pane to entries, in the same order."""
    keys, positions, scores = arrivals
    return list(zip(scores.tolist(), positions.tolist(), keys.tolist(), repeat(end)))


def best_entries(
    keys: Integers, positions: Integers, scores: Floats, ends: Integers, count: int
) -> list[Entry]:
    """Return the `count` best objects in ascending rank, the worst first.

    >>> column = np.array([3, 1, 2])
    >>> best_entries(column, column, column / 1, column, 2)
    [(2.0, 2, 2, 2), (3.0, 3, 3, 3)]
    """
    if len(scores) > count:
        border = np.partition(scores, len(scores) - count)[len(scores) - count]
        near = np.flatnonzero(scores >= border)
        keys, positions, scores, ends = keys[near], positions[near], scores[near], ends[near]
    columns = (column.tolist() for column in (scores, positions, keys, ends))
    entries: list[Entry] = sorted(zip(*columns, strict=True))
    return entries[-count:]


def keys_and_scores(entries: Sequence[Entry]) -> tuple[Integers, Floats]:
    """Return the keys and scores, best first, of entries in ascending rank."""
    keys = np.fromiter(map(_KEY, reversed(entries)), np.int64, len(entries))
    scores = np.fromiter(map(_SCORE, reversed(entries)), np.float64, len(entries))
    return keys, scores
