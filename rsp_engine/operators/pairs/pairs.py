"""Pairs of objects, and their order.

An object is identified by its position: objects are numbered consecutively in the order of arrival.
A pair is identified by the positions of its older and its newer object. It expires with the older
object, so a pair with a larger `older` is younger: where the paper compares ages, positions are
compared the other way round.

The better pair has the smaller score. Ties go to the pair with the later newer object, and then to
the pair with the later older object. The paper breaks ties by "some criteria such as the IDs"
(section III, footnote 1); with a total order, its theorems hold unchanged.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section II.B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["Pairs", "as_pairs", "best_pairs_first", "concatenated_pairs"]


class Pairs(NamedTuple):
    """Pairs as arrays of equal length."""

    scores: Floats
    older: Integers
    newer: Integers

    def take(self, chosen: NDArray[Any] | slice) -> Pairs:
        """Return the pairs at some indices, in that order."""
        return Pairs(self.scores[chosen], self.older[chosen], self.newer[chosen])

    def since(self, first: int) -> Pairs:
        """Return the pairs of a window that starts at a position."""
        return self.take(self.older >= first)

    def moved(self, position: int) -> Pairs:
        """Return the pairs after an object is inserted at a position."""
        older, newer = (each + (each >= position) for each in (self.older, self.newer))
        return Pairs(self.scores, older, newer)

    def without(self, position: int) -> Pairs:
        """Return the pairs without those of an object."""
        return self.take((self.older != position) & (self.newer != position))


def as_pairs(scores: Any, older: Any, newer: Any) -> Pairs:  # noqa: ANN401 - array-like
    """Return array-likes as pairs."""
    return Pairs(
        np.asarray(scores, dtype=np.float64),
        np.asarray(older, dtype=np.int64),
        np.asarray(newer, dtype=np.int64),
    )


def concatenated_pairs(parts: Iterable[Pairs]) -> Pairs:
    """Return several sets of pairs as one."""
    scores, older, newer = zip(*parts, strict=True)
    return Pairs(np.concatenate(scores), np.concatenate(older), np.concatenate(newer))


def best_pairs_first(pairs: Pairs) -> Pairs:
    """Return pairs in order, best first.

    >>> pairs = best_pairs_first(as_pairs([2.0, 1.0, 1.0, 1.0], [0, 3, 0, 2], [1, 4, 5, 5]))
    >>> list(zip(pairs.older.tolist(), pairs.newer.tolist()))
    [(2, 5), (0, 5), (3, 4), (0, 1)]
    """
    order = np.argsort(pairs.scores)
    scores = pairs.scores[order]
    if (scores[1:] == scores[:-1]).any():
        order = np.lexsort((-pairs.older, -pairs.newer, pairs.scores))
    return pairs.take(order)
