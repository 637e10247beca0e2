"""Interval dominance: the instances that can still be in an answer.

An instance p dominates q if it lives at least as long and its current score exceeds the best score
that q can reach. Current scores only rise and best scores only fall, so dominance is permanent. The
k-dominance set contains all instances that fewer than k other objects dominate; no other instance
is ever among the k best. In the paper p must be younger than q. Here the instances of a pane expire
together, so an instance of the same pane dominates too.

k objects dominate an instance if and only if the k-th best score among those that live as long
exceeds its best score. These k-th scores are computed in blocks of panes, the youngest first. In a
block of several panes only younger blocks count, so a few more instances than necessary may be
kept; blocks are small where the score rises fast, among the youngest.

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

_GROWTH = 8  # a block has one more pane for every 8 panes that are younger


def kth_best_as_old(
    ends: Integers, keys: Integers, scores: Floats, k: int, *, pane_by_pane: bool = False
) -> Floats:
    """Return for each instance a score that at least k objects with as long a life reach.

    It is the largest such score in a block of one pane, and a lower bound of it otherwise; minus
    infinity if fewer than k objects live as long. Instances are sorted by their ends.

    >>> ends, keys = np.array([1, 2, 2, 3]), np.array([1, 1, 2, 3])
    >>> kth_best_as_old(ends, keys, np.array([9.0, 5.0, 6.0, 7.0]), 2)
    array([  7.,   6.,   6., -inf])
    """
    kth = np.empty(len(ends))
    top_keys, top_scores = np.empty(0, dtype=np.int64), np.empty(0)
    for begin, end, is_one in _blocks(ends, pane_by_pane=pane_by_pane):
        before = top_scores[k - 1] if len(top_scores) >= k else -np.inf
        near = begin + np.flatnonzero(scores[begin:end] > before)
        if len(near):
            top_keys, top_scores = _k_best(
                np.concatenate((top_keys, keys[near])),
                np.concatenate((top_scores, scores[near])),
                k,
            )
        after = top_scores[k - 1] if len(top_scores) >= k else -np.inf
        kth[begin:end] = after if is_one else before
    return kth


def _blocks(ends: Integers, *, pane_by_pane: bool) -> Iterator[tuple[int, int, bool]]:
    """Yield begin and end of the blocks, youngest first, and whether they have a single pane."""
    starts = np.flatnonzero(np.r_[len(ends) > 0, np.diff(ends) != 0])
    end, last, younger = len(ends), len(starts), 0
    while last > 0:
        size = 1 if pane_by_pane else min(1 + younger // _GROWTH, last)
        begin = int(starts[last - size])
        yield begin, end, size == 1
        end, last, younger = begin, last - size, younger + size


def _k_best(keys: Integers, scores: Floats, k: int) -> tuple[Integers, Floats]:
    """Return the k best objects, each with its best score, best first."""
    if len(scores) > 4 * k + 64:
        border = np.partition(scores, len(scores) - 2 * k)[len(scores) - 2 * k]
        near = np.flatnonzero(scores >= border)
        best = _k_best_distinct(keys[near], scores[near], k)
        if len(best[0]) == k:
            return best
    return _k_best_distinct(keys, scores, k)


def _k_best_distinct(keys: Integers, scores: Floats, k: int) -> tuple[Integers, Floats]:
    order = np.argsort(-scores)
    # There are few, so a dictionary is faster than sorting by key; the best place of each wins.
    first = dict(zip(keys[order[::-1]].tolist(), order[::-1].tolist(), strict=True))
    chosen = list(first.values())[::-1]
    if len(chosen) < len(order):
        chosen.sort(key=scores.__getitem__, reverse=True)
    return keys[chosen[:k]], scores[chosen[:k]]
