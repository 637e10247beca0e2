"""What is known of the age of held values: one array a fact, one place a key."""

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
"""The time of what did not happen: before every instant, and safe to reckon with."""

_TIMES = ("last_refresh", "last_change", "best_before", "interval")


class FreshnessTable:
    """Grows with the keys. A key that is not known was refreshed `NEVER`, with an interval of 1.

    The change of a key that was fetched once only is when it was fetched.
    """

    def __init__(self) -> None:
        self.is_known: Booleans = np.zeros(0, dtype=np.bool_)
        self.last_refresh: Integers = np.zeros(0, dtype=np.int64)
        self.last_change: Integers = np.zeros(0, dtype=np.int64)
        self.best_before: Integers = np.zeros(0, dtype=np.int64)
        self.interval: Integers = np.zeros(0, dtype=np.int64)

    def grow(self, size: int) -> None:
        """Make room for the keys below `size`; the arrays double, so this costs little."""
        old = len(self.is_known)
        if size <= old:
            return
        more = max(size - old, old)
        self.is_known = np.pad(self.is_known, (0, more))
        for name in _TIMES:
            setattr(self, name, np.pad(getattr(self, name), (0, more)))
        self.forget(np.arange(old, old + more))

    def entries(self, numbers: Integers) -> Entries:
        """Return what policies look at."""
        return Entries(*(getattr(self, name).take(numbers) for name in _TIMES))

    def renew(self, numbers: Integers, changed: Booleans, interval: Integers, now: int) -> None:
        """Note a refresh of some keys, and what it showed."""
        first_or_changed = numbers[changed | ~self.is_known[numbers]]
        self.last_change[first_or_changed] = now
        self.is_known[numbers] = True
        self.last_refresh[numbers] = now
        self.interval[numbers] = interval
        self.best_before[numbers] = now + interval

    def doubt(self, numbers: Integers, now: int) -> None:
        """Note that some keys are not fresh any more, whatever was expected of them."""
        self.best_before[numbers] = np.minimum(self.best_before[numbers], now)

    def forget(self, numbers: Integers) -> None:
        """Know nothing of some keys any more."""
        self.is_known[numbers] = False
        self.last_refresh[numbers] = self.last_change[numbers] = NEVER
        self.best_before[numbers] = NEVER
        self.interval[numbers] = 1

    def rows(self, numbers: Integers) -> list[list[int]]:
        """Return the facts of known keys as plain data, a row for each."""
        return np.array([getattr(self, name)[numbers] for name in _TIMES]).T.tolist()  # type: ignore[no-any-return]

    def restore(self, numbers: Integers, rows: Sequence[Sequence[int]]) -> None:
        """Take up what was saved of these keys."""
        self.is_known[numbers] = True
        columns = np.array(rows, dtype=np.int64).reshape(len(numbers), len(_TIMES)).T
        for name, column in zip(_TIMES, columns, strict=True):
            getattr(self, name)[numbers] = column
