"""Interval dominance: which instances can still reach an answer.

An instance p dominates q if it lives at least as long and its current score is more than the best
score that q can reach. Scores of instances only rise and best scores only fall, so it always will.
The k-dominance set are all instances that fewer than k other objects dominate; no other is ever
among the k best. In the paper p must be younger than q. Here all of a pane expire together, so one
of the same pane dominates too.

Whether k objects dominate an instance is the same as whether the k-th best score among those that
live as long is more than its best score. These scores are found in blocks of panes, the youngest
first. For a block of several panes only what is younger than the block counts, so that a few more
may be kept than need be; blocks are small where the score rises fast, among the youngest.

    expires   | 1   2   3   4   5   6   7 | 8   9  10  11 |12  13 |14 |15 |
    k-th best |            9.1            |      8.7      |  8.2  |7.5|6.0|

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
3.2.2, definition 1 and theorem 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["kth_best_as_old"]

_GROWS = 8  # a block has one pane more for so many panes that are younger


def kth_best_as_old(
    ends: Integers, keys: Integers, scores: Floats, k: int, *, pane_by_pane: bool = False
) -> Floats:
    """Return for each instance a score that at least k objects that live as long have.

    It is the largest such score in a block of one pane, and at most that otherwise; there is none
    where it is minus infinity. Instances are in the order of their ends.

    >>> ends, keys = np.array([1, 2, 2, 3]), np.array([1, 1, 2, 3])
    >>> kth_best_as_old(ends, keys, np.array([9.0, 5.0, 6.0, 7.0]), 2)
    array([  7.,   6.,   6., -inf])
    """
    found = np.empty(len(ends))
    top_keys, top_scores = np.empty(0, dtype=np.int64), np.empty(0)
    for begin, end, is_one in _blocks(ends, pane_by_pane=pane_by_pane):
        before = top_scores[k - 1] if len(top_scores) >= k else -np.inf
        near = begin + np.flatnonzero(scores[begin:end] > before)
        if len(near):
            top_keys, top_scores = _merged(
                np.concatenate((top_keys, keys[near])),
                np.concatenate((top_scores, scores[near])),
                k,
            )
        after = top_scores[k - 1] if len(top_scores) >= k else -np.inf
        found[begin:end] = after if is_one else before
    return found


def _blocks(ends: Integers, *, pane_by_pane: bool) -> Iterator[tuple[int, int, bool]]:
    """Yield where blocks begin and end, the youngest first, and whether they are of one pane."""
    starts = np.flatnonzero(np.r_[len(ends) > 0, np.diff(ends) != 0])
    end, last, done = len(ends), len(starts), 0
    while last > 0:
        size = 1 if pane_by_pane else min(1 + done // _GROWS, last)
        begin = int(starts[last - size])
        yield begin, end, size == 1
        end, last, done = begin, last - size, done + size


def _merged(keys: Integers, scores: Floats, k: int) -> tuple[Integers, Floats]:
    """Return the k best objects, each with its best score, best first."""
    if len(scores) > 4 * k + 64:
        border = np.partition(scores, len(scores) - 2 * k)[len(scores) - 2 * k]
        near = np.flatnonzero(scores >= border)
        found = _distinct(keys[near], scores[near], k)
        if len(found[0]) == k:
            return found
    return _distinct(keys, scores, k)


def _distinct(keys: Integers, scores: Floats, k: int) -> tuple[Integers, Floats]:
    order = np.argsort(-scores)
    # These are few, so that a dictionary is faster than sorting keys; the first place is kept.
    first = dict(zip(keys[order[::-1]].tolist(), order[::-1].tolist(), strict=True))
    chosen = list(first.values())[::-1]
    if len(chosen) < len(order):
        chosen.sort(key=scores.__getitem__, reverse=True)
    return keys[chosen[:k]], scores[chosen[:k]]
