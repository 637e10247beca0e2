"""The evolution of dfc: noise that breaks ties, then a subset of the changes, as in AcquaTop.

In the paper, the dfc of about 80 users changes at each invocation of the remote side, which reports
up to 100 users. Datasets with fewer changes are derived from this one: at each invocation, random
users keep their previous value. Noise breaks ties between scores (section 6.1).

The stored run of the authors shows what the noise is: a whole number from 5 to 24, uniformly drawn.
This explains the 80 changes too: an invocation reports 84 users on average, and one in twenty draws
the same number again. So here

- each reported user draws a new whole number from 5 to 24, and has changed if the sum of the
  recorded dfc and this number has changed;
- of the c users of an invocation that have changed, ceil(c * CH / 80) keep their change, picked at
  random. Those of a small CH are among those of a larger one, with the same values;
- each new value gets a fraction that is unique in the dataset. So there are no ties, and every
  change is a different value.

One more round, which is not counted, reports every user before the first invocation. A user without
a change in this round starts with the recorded dfc and a fraction, without noise.

Random numbers are the raw output of PCG64, seeded by SeedSequence: NumPy guarantees that these two
are stable. Its distributions may change between versions and are not used. All draws are whole
numbers, so that they do not depend on the rounding of a processor.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.datasets.dataset import EventTable

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["ALL_CHANGES", "Dice", "Evolved", "check_whole", "evolve"]

ALL_CHANGES = 80
"""CH of the dataset that keeps all changes."""

_NOISE = (5, 25)  # from 5 up to, but without, 25: see above
_UNIT = 10**9  # values are whole numbers of billionths


class Dice:
    """Random whole numbers, the same on every machine for the same seed and purpose.

    >>> Dice(7, 1).below(100, 5).tolist()
    [38, 32, 84, 69, 92]
    """

    def __init__(self, seed: int, *purpose: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=purpose))

    def below(self, bound: int, *shape: int) -> Integers:
        """Return numbers in [0, bound); the bound must be small compared with 2^64."""
        return (self._raw(prod(shape)) % np.uint64(bound)).astype(np.int64).reshape(shape)

    def order(self, count: int) -> Integers:
        """Return a random permutation of the numbers below `count`."""
        return np.argsort(self._raw(count), kind="stable").astype(np.int64)

    def _raw(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        return self._bits.random_raw(count)


def check_whole(name: str, value: object, least: int, largest: int) -> None:
    """Raise a `ValueError` if a parameter is not a whole number in its range.

    >>> check_whole("users", 0, 1, 9)
    Traceback (most recent call last):
    ValueError: users must be a whole number from 1 to 9, not 0
    """
    if type(value) is not int or not least <= value <= largest:
        wanted = f"a whole number from {least} to {largest}"
        raise ValueError(f"{name} must be {wanted}, not {value!r}")


class Evolved(NamedTuple):
    """The dfc of every user at the start, its changes, and the invocations that report them."""

    initial: Floats
    changes: EventTable
    invocations: Integers
    reported_users: Integers


def evolve(recorded: Integers, times: Integers, ch: int, dice: Dice) -> Evolved:
    """Return how dfc evolves, given the recorded dfc and the report time of each round and user.

    Rows are rounds, columns are users. `recorded` has one row more than `times`, its first: the dfc
    before the first round. Equal times belong to one invocation.
    """
    check_whole("ch", ch, 1, ALL_CHANGES)
    rounds, users = recorded.shape
    noise = _NOISE[0] + dice.below(_NOISE[1] - _NOISE[0], rounds, users)
    whole = recorded + noise
    # Each pair of round and user has a unique remainder, so that no two fractions are equal.
    own = np.arange((rounds + 1) * users).reshape(rounds + 1, users)
    fractions = dice.below(_UNIT // own.size, rounds + 1, users) * own.size + own
    has_changed = np.ones((rounds, users), dtype=np.bool_)
    has_changed[1:] = whole[1:] != whole[:-1]
    # The round before the first is at time 0; all others are later.
    report_times = np.concatenate((np.zeros((1, users), dtype=np.int64), times))
    kept = _kept(report_times.ravel(), has_changed.ravel(), ch, dice).reshape(rounds, users)
    values = (whole * _UNIT + fractions[1:]) / _UNIT
    unchanged = (recorded[0] * _UNIT + fractions[0]) / _UNIT
    round_of, user_of = np.nonzero(kept[1:])
    at = times[round_of, user_of]
    order = np.argsort(at, kind="stable")
    changes = EventTable(at[order], user_of[order], values[1:][round_of, user_of][order])
    invocations, reported_users = np.unique(times, return_counts=True)
    return Evolved(np.where(kept[0], values[0], unchanged), changes, invocations, reported_users)


def _kept(report_times: Integers, has_changed: Booleans, ch: int, dice: Dice) -> Booleans:
    """Return which changes to keep: the same share of each invocation, picked at random."""
    _, invocation, reported = np.unique(report_times, return_inverse=True, return_counts=True)
    changed = np.bincount(invocation, has_changed).astype(np.int64)
    allowed = -(-changed * ch // ALL_CHANGES)
    # By invocation; within one, the changed users first, in random order.
    order = np.lexsort((dice.order(len(report_times)), ~has_changed, invocation))
    place = np.arange(len(order)) - np.repeat(np.cumsum(reported) - reported, reported)
    kept = np.zeros(len(order), dtype=np.bool_)
    kept[order] = place < np.repeat(allowed, reported)
    return kept
