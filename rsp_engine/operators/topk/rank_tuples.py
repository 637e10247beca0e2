"""Objects one by one, as tuples that compare like their ranks: the larger, the better."""

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
"""A score, a position, a key, and the last window that holds the object."""

_SCORE, _KEY = itemgetter(0), itemgetter(2)


def entries_of(arrivals: Arrivals, end: int) -> list[Entry]:
    """Return arrivals of one pane as entries, in the order given."""
    keys, positions, scores = arrivals
    return list(zip(scores.tolist(), positions.tolist(), keys.tolist(), repeat(end)))


def best_entries(
    keys: Integers, positions: Integers, scores: Floats, ends: Integers, count: int
) -> list[Entry]:
    """Return the best of many objects, the worst of them first.

    >>> some = np.array([3, 1, 2])
    >>> best_entries(some, some, some / 1, some, 2)
    [(2.0, 2, 2, 2), (3.0, 3, 3, 3)]
    """
    if len(scores) > count:
        border = np.partition(scores, len(scores) - count)[len(scores) - count]
        near = np.flatnonzero(scores >= border)
        keys, positions, scores, ends = keys[near], positions[near], scores[near], ends[near]
    columns = (column.tolist() for column in (scores, positions, keys, ends))
    found: list[Entry] = sorted(zip(*columns, strict=True))
    return found[-count:]


def keys_and_scores(entries: Sequence[Entry]) -> tuple[Integers, Floats]:
    """Return keys and scores, best first, of entries whose worst comes first."""
    keys = np.fromiter(map(_KEY, reversed(entries)), np.int64, len(entries))
    scores = np.fromiter(map(_SCORE, reversed(entries)), np.float64, len(entries))
    return keys, scores
