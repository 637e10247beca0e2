"""Scoring functions of the paper (section VI.A), and others, as kernels and as global ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.operators.pairs.threshold_algorithm import GlobalScoring, LocalScore

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats


def differences(columns: Floats, row: Floats) -> Any:
    return np.abs(columns - row[:, None])


def closest(columns: Floats, row: Floats) -> Any:
    """s1: the sum of the differences."""
    return differences(columns, row).sum(axis=0)


def furthest(columns: Floats, row: Floats) -> Any:
    """s2: the most different first."""
    return -closest(columns, row)


def similar(columns: Floats, row: Floats) -> Any:
    """s3: the product of the differences."""
    return differences(columns, row).prod(axis=0)


def dissimilar(columns: Floats, row: Floats) -> Any:
    """s4: the largest product first."""
    return -similar(columns, row)


def sums(columns: Floats, row: Floats) -> Any:
    """The smallest objects together."""
    return (columns + row[:, None]).sum(axis=0)


def odd(columns: Floats, row: Floats) -> Any:
    """A function of small integers that is not global; NaN for no pair, infinity for no score."""
    total = (columns * 3 + row[:, None] * 3).sum(axis=0) % 7
    same = (columns == row[:, None]).all(axis=0)
    return np.where(same, np.nan, np.where(total == 5, np.inf, total))


def _difference(values: Floats, value: float) -> Any:
    return np.abs(values - value)


def _nearness(values: Floats, value: float) -> Any:
    return -np.abs(values - value)


def _total(values: Floats, value: float) -> Any:
    return values + value


def _summed(local: list[Floats]) -> Any:
    return np.sum(local, axis=0)


def _product(local: list[Floats]) -> Any:
    return np.prod(local, axis=0)


def _product_of_nearness(local: list[Floats]) -> Any:
    return -np.prod([-each for each in local], axis=0)


def global_scoring(name: str, width: int) -> GlobalScoring:
    """Return a scoring function of this module as a global one."""
    rising, falling = ("rises", "rises"), ("falls", "falls")
    score, (above, below), combine = {
        "closest": (_difference, rising, _summed),
        "furthest": (_nearness, falling, _summed),
        "similar": (_difference, rising, _product),
        "dissimilar": (_nearness, falling, _product_of_nearness),
        "sums": (_total, ("rises", "falls"), _summed),
    }[name]
    local = (LocalScore(column, score, above, below) for column in range(width))  # type: ignore[arg-type]
    return GlobalScoring(tuple(local), combine)


GLOBAL = {f.__name__: f for f in (closest, furthest, similar, dissimilar, sums)}
KERNELS = {**GLOBAL, "odd": odd}
