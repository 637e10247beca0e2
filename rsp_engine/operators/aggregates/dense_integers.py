"""Distinct integers, found by counting where they are dense, and else by sorting.

>>> distinct_counts(np.array([7, 5, 7]))
(array([5, 7]), array([1, 2]))
>>> distinct_places(np.array([7, 5, 7]))
(array([5, 7]), array([1, 0, 1]))
>>> are_distinct(np.array([7, 5, 7]))
False
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers

__all__ = ["are_distinct", "distinct_counts", "distinct_places"]

_SPARSE = 4
"""So many times as many integers as there are lie between the least and the largest at most."""


def distinct_counts(numbers: Integers) -> tuple[Integers, Integers]:
    """Return the distinct integers in order, and how often each occurs."""
    if (least := _least_of_dense(numbers)) is None:
        return np.unique(numbers, return_counts=True)
    counts = np.bincount(numbers - least)
    distinct = np.flatnonzero(counts)
    return distinct + least, counts[distinct]


def distinct_places(numbers: Integers) -> tuple[Integers, Integers]:
    """Return the distinct integers in order, and the place of each integer among them."""
    if (least := _least_of_dense(numbers)) is None:
        return np.unique(numbers, return_inverse=True)
    is_used = np.zeros(int(numbers.max()) - least + 1, dtype=np.bool_)
    is_used[numbers - least] = True
    places = np.cumsum(is_used) - 1
    return np.flatnonzero(is_used) + least, places[numbers - least]


def are_distinct(numbers: Integers) -> bool:
    """Return whether no integer occurs twice."""
    if (least := _least_of_dense(numbers)) is None:
        ordered = np.sort(numbers)
        return bool((ordered[1:] != ordered[:-1]).all())
    last = np.empty(int(numbers.max()) - least + 1, dtype=np.int64)
    every = np.arange(len(numbers))
    last[numbers - least] = every
    return bool((last[numbers - least] == every).all())


def _least_of_dense(numbers: Integers) -> int | None:
    """Return the least of some integers; None if they are sparse, or if there are none."""
    if not len(numbers):
        return None
    least = int(numbers.min())
    return least if int(numbers.max()) - least < _SPARSE * len(numbers) else None
