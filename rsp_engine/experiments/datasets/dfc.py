"""How dfc changes: noise against ties, then fewer changes, as AcquaTop makes its datasets.

In the paper, about 80 users have another dfc at each invocation of the remote side, which tells up
to 100 of them. Datasets with fewer changes are made from this one: at each invocation, random users
get their previous value back. Noise keeps the scores apart (section 6.1).

The stored run of the authors shows what the noise is: a whole number from 5 to 24, all of them as
likely. This explains the 80 changes too: an invocation tells 84 users on average, and one of twenty
draws the same number again. So here

- whoever is told draws a whole number from 5 to 24 anew, and has changed if the sum of the recorded
  dfc and this number has;
- of the c users of an invocation that have changed, ceil(c * CH / 80) stay so, picked at random.
  Those of a small CH are among those of a larger one, with the same values;
- to each new value a fraction is added that no other value of the dataset has. So there are no
  ties, and what changes has changed.

Before the first invocation, one more round has told every user; it is not counted. Who has not
changed even then has the recorded dfc with a fraction and no noise.

Chance comes from the raw numbers of PCG64, seeded by SeedSequence: NumPy promises that these two
stay as they are. Its distributions may change from one version to another and are not used; what
is drawn is made of whole numbers alone, so that no processor rounds it otherwise.
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
"""CH of the dataset in which nobody gets the previous value back."""

_NOISE = (5, 25)
_UNIT = 10**9  # values are whole numbers of billionths


class Dice:
    """Whole numbers by chance: the same for the same seed, purpose and number, anywhere.

    >>> Dice(7, 1).below(100, 5).tolist()
    [38, 32, 84, 69, 92]
    """

    def __init__(self, seed: int, *purpose: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=purpose))

    def below(self, bound: int, *shape: int) -> Integers:
        """Return numbers from 0 up to a bound, which is small against 2^64."""
        return (self._raw(prod(shape)) % np.uint64(bound)).astype(np.int64).reshape(shape)

    def order(self, count: int) -> Integers:
        """Return the numbers below a count in random order."""
        return np.argsort(self._raw(count), kind="stable").astype(np.int64)

    def _raw(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        return self._bits.random_raw(count)


def check_whole(name: str, value: object, least: int, largest: int) -> None:
    """Raise if a parameter is no whole number in its range.

    >>> check_whole("users", 0, 1, 9)
    Traceback (most recent call last):
    ValueError: users must be a whole number from 1 to 9, not 0
    """
    if type(value) is not int or not least <= value <= largest:
        wanted = f"a whole number from {least} to {largest}"
        raise ValueError(f"{name} must be {wanted}, not {value!r}")


class Evolved(NamedTuple):
    """The dfc of every user at the start, its changes, and the invocations that told them."""

    initial: Floats
    changes: EventTable
    invocations: Integers
    told: Integers


def evolve(recorded: Integers, times: Integers, ch: int, dice: Dice) -> Evolved:
    """Return how dfc evolves, given the recorded dfc and the time of each round and user.

    Row by row these are the rounds, the users side by side. `recorded` has one row more than
    `times`, its first: the dfc before the first round. Times of one invocation are equal.
    """
    check_whole("ch", ch, 1, ALL_CHANGES)
    rounds, users = recorded.shape
    noise = _NOISE[0] + dice.below(_NOISE[1] - _NOISE[0], rounds, users)
    whole = recorded + noise
    # Each pair of round and user has a remainder of its own, so that no two fractions are equal.
    own = np.arange((rounds + 1) * users).reshape(rounds + 1, users)
    fractions = dice.below(_UNIT // own.size, rounds + 1, users) * own.size + own
    has_changed = np.ones((rounds, users), dtype=np.bool_)
    has_changed[1:] = whole[1:] != whole[:-1]
    # The round before the first is at time 0; all others are later.
    told_at = np.concatenate((np.zeros((1, users), dtype=np.int64), times))
    kept = _kept(told_at.ravel(), has_changed.ravel(), ch, dice).reshape(rounds, users)
    values = (whole * _UNIT + fractions[1:]) / _UNIT
    unchanged = (recorded[0] * _UNIT + fractions[0]) / _UNIT
    round_of, user_of = np.nonzero(kept[1:])
    at = times[round_of, user_of]
    order = np.argsort(at, kind="stable")
    changes = EventTable(at[order], user_of[order], values[1:][round_of, user_of][order])
    invocations, told = np.unique(times, return_counts=True)
    return Evolved(np.where(kept[0], values[0], unchanged), changes, invocations, told)


def _kept(told_at: Integers, has_changed: Booleans, ch: int, dice: Dice) -> Booleans:
    """Return which changes stay: of each invocation the same part, picked at random."""
    _, invocation, told = np.unique(told_at, return_inverse=True, return_counts=True)
    changed = np.bincount(invocation, has_changed).astype(np.int64)
    allowed = -(-changed * ch // ALL_CHANGES)
    # By invocation, those that have changed first, in random order.
    order = np.lexsort((dice.order(len(told_at)), ~has_changed, invocation))
    place = np.arange(len(order)) - np.repeat(np.cumsum(told) - told, told)
    kept = np.zeros(len(order), dtype=np.bool_)
    kept[order] = place < np.repeat(allowed, told)
    return kept
