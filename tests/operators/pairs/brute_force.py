"""All pairs of a window, sorted: the reference for every operator for pairs."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.operators.pairs.pairs import Pairs
    from rsp_engine.operators.pairs.skyband import PairScore

Pair = tuple[float, int, int]


def all_pairs(
    rows: Sequence[Sequence[float]], positions: Sequence[int], score: PairScore
) -> list[Pair]:
    """Return the pairs of some objects, best first; `rows` are those of all."""
    found: list[Pair] = []
    for older, newer in combinations(sorted(positions), 2):
        columns = np.array(rows[older], dtype=np.float64)[:, None]
        [value] = score(columns, np.array(rows[newer], dtype=np.float64))
        if not np.isnan(value):
            found.append((float(value), older, newer))
    return sorted(found, key=lambda pair: (pair[0], -pair[2], -pair[1]))


def skyband_of(pairs: Sequence[Pair], k: int) -> list[Pair]:
    """Return the pairs that fewer than k pairs dominate: better ones that expire no sooner."""
    return [
        pair
        for place, pair in enumerate(pairs)
        if sum(better[1] >= pair[1] for better in pairs[:place]) < k
    ]


def as_list(pairs: Pairs) -> list[Pair]:
    return list(zip(pairs.scores.tolist(), pairs.older.tolist(), pairs.newer.tolist(), strict=True))
