"""The paired block bootstrap: the interval of a mean difference between two runs.

Two policies answer the same windows, so that their measures are paired by window. The differences
of neighbouring windows are not independent: a value that one policy missed is missing for a while.
So whole blocks of windows are drawn, with replacement; a block may run past the last window into
the first. The interval is that of the percentiles of the resampled means, widened by the square
root of m / (m - 1) for m blocks, since the blocks vary less than what they are drawn from.

(Politis, Romano: A circular block-resampling procedure for stationary data, 1992. Künsch: The
jackknife and the bootstrap for general stationary observations, Annals of Statistics 1989.)
"""

from __future__ import annotations

from functools import lru_cache
from math import cbrt, ceil, inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.datasets.dfc import Dice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["LEVEL", "RESAMPLES", "PairedDifference", "block_length", "paired_difference"]

LEVEL = 0.95
RESAMPLES = 2000
_SEED = 11  # the same draws for every cell, so that a table does not depend on its order


class PairedDifference(NamedTuple):
    """A mean difference with its interval."""

    mean: float
    low: float
    high: float


def block_length(count: int) -> int:
    """Return how many neighbouring windows are drawn together: twice the cube root of all.

    There are at least four blocks, or as many as windows.

    >>> block_length(150), block_length(30), block_length(8), block_length(1)
    (11, 7, 2, 1)
    """
    return max(min(ceil(2 * cbrt(count)), count // 4), 1)


def paired_difference(differences: Sequence[Floats]) -> PairedDifference:
    """Return the mean of the differences of some datasets, by window, with its interval.

    Each dataset counts alike. Blocks are drawn within each of them. One block has no interval, so
    that its ends are infinite.

    >>> paired_difference([np.ones(20), np.zeros(9)]).mean
    0.5
    """
    resampled, drawn = np.zeros(RESAMPLES), 0
    for row, values in enumerate(differences):
        count = len(values)
        length = block_length(count)
        blocks = ceil(count / length)
        summed = np.concatenate(([0.0], np.cumsum(np.tile(values, 2))))
        starts = _starts(row, count, blocks)
        # The last block is cut, so that a resample has as many windows as there are.
        lengths = np.array([length] * (blocks - 1) + [count - (blocks - 1) * length])
        sums = summed[starts + lengths] - summed[starts]
        resampled += sums.sum(axis=1) / count / len(differences)
        drawn += blocks
    mean = float(np.mean([values.mean() for values in differences]))
    if drawn < 2:
        return PairedDifference(mean, -inf, inf)
    ends = np.quantile(resampled, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    wider = sqrt(drawn / (drawn - 1))
    low, high = (mean + wider * (ends - mean)).tolist()
    return PairedDifference(mean, low, high)


@lru_cache(maxsize=64)
def _starts(row: int, count: int, blocks: int) -> Integers:
    return Dice(_SEED, 20, row).below(count, RESAMPLES, blocks)
