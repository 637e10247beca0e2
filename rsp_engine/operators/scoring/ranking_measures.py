"""Quality measures of an answer, compared with the oracle's ranking of the same window.

The answer and the oracle's ranking are lists of distinct objects, best first. Only the first k of
the answer count. The oracle's ranking must be as deep as the measure requires: k for most, `depth`
for nDCG, the whole window for accuracy. All measures are in [0, 1], and the oracle's own ranking
scores 1. If the oracle's ranking is empty, an empty answer scores 1, and any other 0.

(AcquaTop: Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving
distributed data, section 2.1.2, which defines nDCG and precision, and names accuracy and MRR;
section 6.2 cumulates them. DCG: Järvelin, Kekäläinen: IR evaluation methods for retrieving highly
relevant documents, SIGIR 2000.)
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from math import log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

__all__ = [
    "CumulatedMeasures",
    "Measures",
    "accuracy",
    "measure",
    "ndcg",
    "ndcg_by_place",
    "precision",
    "reciprocal_rank",
]


def ndcg(
    answer: Sequence[Hashable], oracle: Sequence[Hashable], k: int, depth: int | None = None
) -> float:
    """Return nDCG@k: the relevance of the answer, discounted by rank.

    An object of rank r in the oracle's ranking has the relevance depth - r + 1, and 0 below the
    depth, which is 2k by default.

    >>> round(ndcg("ADF", "ABCDEF", 3), 3), round(ndcg("FCB", "ABCDEF", 3), 3)
    (0.754, 0.288)
    """
    depth = 2 * k if depth is None else depth
    answer = _best(answer, oracle, k)
    if depth < k:
        raise ValueError(f"the depth must be at least k, {k}, not {depth}")
    ranks = {one: rank for rank, one in enumerate(oracle[:depth], 1)}
    if not ranks:
        return float(not answer)
    relevant = ((place, ranks[one]) for place, one in enumerate(answer, 1) if one in ranks)
    ideal = ((rank, rank) for rank in range(1, min(k, len(ranks)) + 1))
    return min(1.0, _dcg(relevant, depth) / _dcg(ideal, depth))  # rounding may exceed 1


def ndcg_by_place(answer: Sequence[Hashable], oracle: Sequence[Hashable], k: int) -> float:
    """Return nDCG@k as the program of AcquaTop's authors computes it.

    The relevance of an object among the oracle's k best depends on its place in the answer, not on
    its rank: k - place + 1. So the right objects score 1 in any order.

    >>> ndcg_by_place("CAB", "ABCDEF", 3)
    1.0
    """
    answer = _best(answer, oracle, k)
    right = set(oracle[:k])
    if not right:
        return float(not answer)
    relevant = ((place, place) for place, one in enumerate(answer, 1) if one in right)
    return _dcg(relevant, k) / _dcg(((place, place) for place in range(1, len(right) + 1)), k)


def precision(answer: Sequence[Hashable], oracle: Sequence[Hashable], k: int) -> float:
    """Return precision@k: the share of the oracle's k best (or fewer) that the answer contains.

    >>> round(precision("ADF", "ABCDEF", 3), 3), round(precision("FCB", "ABCDEF", 3), 3)
    (0.333, 0.667)
    """
    answer = _best(answer, oracle, k)
    right = set(oracle[:k])
    return len(right.intersection(answer)) / len(right) if right else float(not answer)


def accuracy(answer: Sequence[Hashable], oracle: Sequence[Hashable], k: int) -> float:
    """Return accuracy@k: the share of the window that is rightly included or rightly left out.

    >>> round(accuracy("ADF", "ABCDEF", 3), 3), round(accuracy("FCB", "ABCDEF", 3), 3)
    (0.333, 0.667)
    """
    answer = _best(answer, oracle, k)
    window = {*oracle, *answer}
    wrong = set(oracle[:k]).symmetric_difference(answer)
    return 1 - len(wrong) / len(window) if window else 1.0


def reciprocal_rank(answer: Sequence[Hashable], oracle: Sequence[Hashable], k: int) -> float:
    """Return 1 / the place of the oracle's best object in the answer, 0 if it is missing.

    The mean over the windows is MRR@k. (If any of the k best counted, nearly all would score 1.)

    >>> reciprocal_rank("BA", "AB", 2), reciprocal_rank("BC", "AB", 2)
    (0.5, 0.0)
    """
    answer = _best(answer, oracle, k)
    if not oracle:
        return float(not answer)
    return 1 / (list(answer).index(oracle[0]) + 1) if oracle[0] in answer else 0.0


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one window, or their sums or means over windows."""

    ndcg: float = 0.0
    ndcg_by_place: float = 0.0
    precision: float = 0.0
    accuracy: float = 0.0
    reciprocal_rank: float = 0.0


def measure(
    answer: Sequence[Hashable], oracle: Sequence[Hashable], k: int, depth: int | None = None
) -> Measures:
    """Return all measures of the answer of a window."""
    return Measures(
        ndcg(answer, oracle, k, depth),
        ndcg_by_place(answer, oracle, k),
        precision(answer, oracle, k),
        accuracy(answer, oracle, k),
        reciprocal_rank(answer, oracle, k),
    )


@dataclass(frozen=True, slots=True)
class CumulatedMeasures:
    """The measures of the windows so far, summed as in AcquaTop, section 6.2.

    >>> found = CumulatedMeasures().add(measure("ADF", "ABCDEF", 3))
    >>> found = found.add(measure("ABC", "ABCDEF", 3))
    >>> found.windows, round(found.sums.precision, 3), round(found.means.precision, 3)
    (2, 1.333, 0.667)
    """

    windows: int = 0
    sums: Measures = Measures()

    def add(self, window: Measures) -> CumulatedMeasures:
        """Return the sums with another window added."""
        pairs = zip(astuple(self.sums), astuple(window), strict=True)
        return CumulatedMeasures(self.windows + 1, Measures(*(a + b for a, b in pairs)))

    @property
    def means(self) -> Measures:
        """The mean measures, among them MRR; 0 before the first window."""
        return Measures(*(a / max(self.windows, 1) for a in astuple(self.sums)))


def _best(answer: Sequence[Hashable], oracle: Sequence[Hashable], k: int) -> Sequence[Hashable]:
    """Return the first k of the answer, or raise if it cannot be measured."""
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    for name, objects in (("answer", answer), ("oracle's ranking", oracle)):
        if len(set(objects)) < len(objects):
            raise ValueError(f"the {name} holds an object twice")
    return answer[:k]


def _dcg(ranked: Iterable[tuple[int, int]], depth: int) -> float:
    """Return the discounted gain of objects, given by place and rank, divided by 2^depth.

    The gain is 2^(depth - rank + 1) - 1. The division cancels out in nDCG and avoids overflow.
    """
    return sum((2.0 ** (1 - rank) - 2.0**-depth) / log2(place + 1) for place, rank in ranked)
