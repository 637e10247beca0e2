"""The freshness of the values in the replica: one array per attribute, one row per key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.candidates import Entries
from rsp_engine.replica.store.estimator import FOREVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Booleans, Integers

__all__ = ["NEVER", "FreshnessTable"]

NEVER = -FOREVER
"""The time of an event that did not happen: before every instant, without overflow in sums."""

_TIMES = ("last_refresh", "last_change", "best_before", "interval")


class FreshnessTable:
    """Refresh and change times of keys, which are dense numbers.

    An unknown key has `NEVER` as its times, and a change interval of 1. The first refresh of a key
    counts as its last change.
    """

    def __init__(self) -> None:
        self.is_known: Booleans = np.zeros(0, dtype=np.bool_)
        self.last_refresh: Integers = np.zeros(0, dtype=np.int64)
        self.last_change: Integers = np.zeros(0, dtype=np.int64)
        self.best_before: Integers = np.zeros(0, dtype=np.int64)
        self.interval: Integers = np.zeros(0, dtype=np.int64)

    def grow(self, size: int) -> None:
        """Make room for the keys below `size`. Arrays double: amortised O(1) per key."""
        old = len(self.is_known)
        if size <= old:
            return
        more = max(size - old, old)
        self.is_known = np.pad(self.is_known, (0, more))
        for name in _TIMES:
            setattr(self, name, np.pad(getattr(self, name), (0, more)))
        self.forget(np.arange(old, old + more))

    def entries(self, numbers: Integers) -> Entries:
        """Return the entries of keys, the input of policies."""
        return Entries(*(getattr(self, name).take(numbers) for name in _TIMES))

    def renew(self, numbers: Integers, changed: Booleans, interval: Integers, now: int) -> None:
        """Record a refresh of keys, and whether each has changed."""
        first_or_changed = numbers[changed | ~self.is_known[numbers]]
        self.last_change[first_or_changed] = now
        self.is_known[numbers] = True
        self.last_refresh[numbers] = now
        self.interval[numbers] = interval
        self.best_before[numbers] = now + interval

    def doubt(self, numbers: Integers, now: int) -> None:
        """Mark keys as stale, whatever their best-before time was."""
        self.best_before[numbers] = np.minimum(self.best_before[numbers], now)

    def forget(self, numbers: Integers) -> None:
        """Reset keys to unknown."""
        self.is_known[numbers] = False
        self.last_refresh[numbers] = self.last_change[numbers] = NEVER
        self.best_before[numbers] = NEVER
        self.interval[numbers] = 1

    def rows(self, numbers: Integers) -> list[list[int]]:
        """Return the attributes of known keys as plain data, a row for each."""
        return np.array([getattr(self, name)[numbers] for name in _TIMES]).T.tolist()  # type: ignore[no-any-return]

    def restore(self, numbers: Integers, rows: Sequence[Sequence[int]]) -> None:
        """Restore the saved rows of these keys."""
        self.is_known[numbers] = True
        columns = np.array(rows, dtype=np.int64).reshape(len(numbers), len(_TIMES)).T
        for name, column in zip(_TIMES, columns, strict=True):
            getattr(self, name)[numbers] = column
