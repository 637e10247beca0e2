"""Histograms with fixed bounds, as Prometheus counts them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["AGES", "SECONDS", "Histogram"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds for durations, in seconds."""
AGES = (0.0, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
"""Bounds for ages in seconds of event time; 0 counts values that were just fetched."""


class Histogram:
    """Counts of values up to each bound and beyond the last, with sum and maximum.

    >>> histogram = Histogram((1, 10))
    >>> for value in (0.5, 1, 7, 70): histogram.add(value)
    >>> list(histogram.at_most()), histogram.count, histogram.total, histogram.largest
    ([(1, 2), (10, 3)], 4, 78.5, 70)
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.total = 0.0
        self.largest = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Add a value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        self.largest = max(self.largest, value)

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self._counts)

    def at_most(self) -> Iterator[tuple[float, int]]:
        """Yield each bound with the number of values that are at most that large."""
        return zip(self.bounds, accumulate(self._counts), strict=False)
