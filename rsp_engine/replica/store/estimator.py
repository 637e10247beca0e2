"""The estimator of change intervals: how often the remote value of a key changes.

A refresh shows whether a value changed since the refresh before, not how often. If changes are a
Poisson process of rate r, a value is unchanged after a time t with probability exp(-rt), whatever
the times between refreshes. The maximum-likelihood rate solves

    sum over changed t of t / (exp(rt) - 1)  =  sum over unchanged t of t

(Cho, Garcia-Molina: Estimating frequency of change. ACM Transactions on Internet Technology 3(3),
2003, section on irregular accesses). Their estimator is infinite if every refresh showed a change,
and zero if none did. Here each key has a prior shared by all keys: `weight` changes at the mean
rate of all keys so far. With this prior (a gamma distribution) there is always one solution, and
the prior matters less the more observations a key has.

The times of a key are kept as a histogram, whose classes are each four times as wide as the one
before, with count and sum. All times of a class are approximated by their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = [
    "FOREVER",
    "DeclaredIntervals",
    "Estimation",
    "Estimator",
    "LearnedIntervals",
    "estimator",
    "rates",
]

FOREVER = 1 << 60
"""The longest interval in milliseconds: sums with an instant stay within 64 bits."""
_CLASSES = 16  # the last begins at 4^15 ms, some 12 days


@dataclass(frozen=True, slots=True)
class DeclaredIntervals:
    """One change interval for all keys, in milliseconds, set by the user."""

    tag: ClassVar[str] = "declared"

    interval: int

    def __post_init__(self) -> None:
        if not 1 <= self.interval <= FOREVER:
            raise ValueError("the interval between changes must be at least 1 ms")


@dataclass(frozen=True, slots=True)
class LearnedIntervals:
    """Change intervals learned from refreshes.

    `initial` is the interval in milliseconds before the first observation; it counts as one
    observed change. `weight` is the weight of the shared prior, in observed changes of a key.
    """

    tag: ClassVar[str] = "learned"

    initial: int = 60_000
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.initial <= FOREVER:
            raise ValueError("the initial interval between changes must be at least 1 ms")
        if not 0 < self.weight < float("inf"):
            raise ValueError("the weight of what is shared must be positive")


Estimation = DeclaredIntervals | LearnedIntervals


class Estimator(Protocol):
    """Estimates the change intervals of keys, which are dense numbers."""

    def observe(self, numbers: Integers, elapsed: Integers, changed: Booleans) -> None:
        """Learn from refreshes of distinct keys, each a positive time after the refresh before."""

    def intervals(self, numbers: Integers) -> Integers:
        """Return the expected time from one change to the next, in whole milliseconds."""

    def forget(self, numbers: Integers) -> None:
        """Forget the observations of these keys."""

    def rows(self, numbers: Integers) -> list[Any]:
        """Return the observations of each of these keys as plain data."""

    def shared(self) -> Any:  # noqa: ANN401 - plain data
        """Return the observations shared by all keys as plain data."""

    def restore(self, numbers: Integers, rows: Sequence[Any], shared: Any) -> None:  # noqa: ANN401
        """Restore the saved observations of these keys, and the shared ones."""


def estimator(estimation: Estimation) -> Estimator:
    """Return an estimator without observations."""
    return (
        _Constant(estimation) if isinstance(estimation, DeclaredIntervals) else _Poisson(estimation)
    )


class _Constant:
    def __init__(self, declared: DeclaredIntervals) -> None:
        self._interval = declared.interval

    def observe(self, numbers: Integers, elapsed: Integers, changed: Booleans) -> None:
        pass

    def intervals(self, numbers: Integers) -> Integers:
        return np.full(len(numbers), self._interval, dtype=np.int64)

    def forget(self, numbers: Integers) -> None:
        pass

    def rows(self, numbers: Integers) -> list[Any]:
        return [None] * len(numbers)

    def shared(self) -> None:
        return None

    def restore(self, numbers: Integers, rows: Sequence[Any], shared: None) -> None:
        pass


class _Poisson:
    def __init__(self, learned: LearnedIntervals) -> None:
        self._learned = learned
        # One row per key: count and sum of the times with a change, by class; sum of those without.
        self._counts = np.zeros((0, _CLASSES), dtype=np.int64)
        self._times = np.zeros((0, _CLASSES), dtype=np.int64)
        self._unchanged = np.zeros(0, dtype=np.int64)
        self._shared_counts = np.zeros(_CLASSES, dtype=np.int64)
        self._shared_times = np.zeros(_CLASSES, dtype=np.int64)
        self._shared_unchanged = 0
        self._mean = float(learned.initial)

    def observe(self, numbers: Integers, elapsed: Integers, changed: Booleans) -> None:
        if not len(numbers):
            return
        self._grow(int(numbers.max()) + 1)
        rows, times = numbers[changed], elapsed[changed]
        classes = _class_of(times)
        self._counts[rows, classes] += 1
        self._times[rows, classes] += times
        self._unchanged[numbers[~changed]] += elapsed[~changed]
        self._shared_counts += np.bincount(classes, minlength=_CLASSES)
        np.add.at(self._shared_times, classes, times)
        self._shared_unchanged += int(elapsed[~changed].sum())
        self._share()

    def _share(self) -> None:
        """Update the mean interval of all keys."""
        unchanged = np.array([self._shared_unchanged], dtype=np.int64)
        counts, times = self._shared_counts[None, :], self._shared_times[None, :]
        self._mean = float(1 / rates(counts, times, unchanged, 1.0, self._learned.initial)[0])

    def intervals(self, numbers: Integers) -> Integers:
        weight = self._learned.weight
        means: Floats = np.full(len(numbers), self._mean)  # for keys of which nothing is known yet
        places = np.flatnonzero(numbers < len(self._unchanged))  # others were never observed
        known = numbers[places]
        is_known = self._counts[known].any(axis=1) | (self._unchanged[known] != 0)
        known = known[is_known]
        if len(known):
            rows = self._counts[known], self._times[known], self._unchanged[known]
            means[places[is_known]] = 1 / rates(*rows, weight, weight * self._mean)
        return np.clip(np.rint(means), 1, FOREVER).astype(np.int64)

    def forget(self, numbers: Integers) -> None:
        self._grow(int(numbers.max(initial=-1)) + 1)
        self._counts[numbers] = self._times[numbers] = 0
        self._unchanged[numbers] = 0

    def _grow(self, size: int) -> None:
        missing = size - len(self._unchanged)
        if missing > 0:
            added = max(missing, len(self._unchanged))
            self._counts = np.pad(self._counts, ((0, added), (0, 0)))
            self._times = np.pad(self._times, ((0, added), (0, 0)))
            self._unchanged = np.pad(self._unchanged, (0, added))

    def rows(self, numbers: Integers) -> list[Any]:
        self._grow(int(numbers.max(initial=-1)) + 1)
        counts, times = self._counts[numbers], self._times[numbers]
        changed: list[list[list[int]]] = [[] for _ in range(len(numbers))]
        for row, place in np.argwhere(counts).tolist():
            changed[row].append([place, int(counts[row, place]), int(times[row, place])])
        unchanged = self._unchanged[numbers].tolist()
        return [[*each] for each in zip(changed, unchanged, strict=True)]

    def shared(self) -> dict[str, Any]:
        return {
            "changed": _classes(self._shared_counts, self._shared_times),
            "unchanged": self._shared_unchanged,
        }

    def restore(self, numbers: Integers, rows: Sequence[Any], shared: Any) -> None:  # noqa: ANN401
        self._grow(int(numbers.max(initial=-1)) + 1)
        self._unchanged[numbers] = [unchanged for _, unchanged in rows]
        for number, (classes, _) in zip(numbers.tolist(), rows, strict=True):
            if classes:
                _set(self._counts[number], self._times[number], classes)
        _set(self._shared_counts, self._shared_times, shared["changed"])
        self._shared_unchanged = int(shared["unchanged"])
        self._share()


def _class_of(times: Integers) -> Integers:
    """Return the class of each time: 0 below 4 ms, 1 below 16 ms, and so on.

    >>> _class_of(np.array([1, 3, 4, 15, 16, 1 << 60]))
    array([ 0,  0,  1,  1,  2, 15])
    """
    exponents: Integers = np.frexp(times.astype(np.float64))[1].astype(np.int64) - 1
    return np.minimum(exponents // 2, _CLASSES - 1)


def _classes(counts: Integers, times: Integers) -> list[list[int]]:
    """Return the classes that are not empty: index, count and sum."""
    return [[int(c), int(counts[c]), int(times[c])] for c in np.flatnonzero(counts)]


def _set(counts: Integers, times: Integers, classes: Sequence[Sequence[int]]) -> None:
    for place, count, time in classes:
        counts[place], times[place] = count, time


def rates(
    counts: Integers, times: Integers, unchanged: Integers, weight: float, exposure: float
) -> Floats:
    """Return the most likely rate of each row, in changes per millisecond.

    `counts` and `times` are the count and the sum of the times with a change, by class, and
    `unchanged` the sum of the times without; the prior is `weight` changes in `exposure`
    milliseconds. With h(x) = x/(exp(x)-1), the rate solves

        weight + sum of counts * h(rate * mean time) = rate * (unchanged + exposure)

    The left side is decreasing and convex in the rate, and 1 - x/2 is a lower bound of h(x). So
    Newton's method, started where this bound meets the right side, converges from below.
    """
    means = times / np.maximum(counts, 1)
    linear = unchanged + exposure
    result: Floats = (weight + counts.sum(axis=1)) / (linear + times.sum(axis=1) / 2)
    for _ in range(100):
        x = np.minimum(result[:, None] * means, 50.0)  # beyond 50, h is negligible
        value = weight + (counts * _h(x)).sum(axis=1) - result * linear
        slope = (times * _h_slope(x)).sum(axis=1) - linear
        step = -value / slope
        result = result + np.maximum(step, 0)
        if not (step > 1e-12 * result).any():
            break
    return result


def _h(x: Floats) -> Floats:
    """Return x/(exp(x)-1), which is 1 at 0."""
    small = x < 1e-4
    safe = np.where(small, 1.0, x)
    return np.where(small, 1 - x / 2, safe / np.expm1(safe))


def _h_slope(x: Floats) -> Floats:
    small = x < 1e-4
    safe = np.where(small, 1.0, x)
    growth = np.expm1(safe)
    return np.where(small, x / 6 - 0.5, (growth - safe * (growth + 1)) / growth**2)
