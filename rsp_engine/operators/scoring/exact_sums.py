"""Sums of floating-point numbers that do not depend on the order of addition.

The bits of all numbers are cut at the same places, 28 bits apart. A number spreads over three
pieces, starting at the place below its last bit. Pieces that start at the same place add up as
integers:

    place        3        2        1        0
        |--------|--------|--------|--------|
            1 0 1 1 1 0 0 1 0 1 1               three pieces, starts at 1
                     1 1 0 0 1 1 1 0 1 0 1      three pieces, starts at 0

The sum is rounded once, when it is read: it is the double nearest to the true sum, as with
`math.fsum`. Infinities and NaN have places of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["MOST", "pieces", "rounded_sum", "runs_of"]

MOST = 1 << 33
"""The largest number of values whose pieces add up to less than 2**62."""

_NAN, _POSITIVE, _NEGATIVE = 125, 126, 127  # the places of NaN and of the infinities
_WIDTH = 28
_MASK = (1 << _WIDTH) - 1
_LOWEST = 41 * _WIDTH  # place 0 is at 2**-1148, below the last bit of any double


def runs_of(count: int, starts: NDArray[np.intp]) -> Integers:
    """Return the run number of each of `count` rows, given the start of each run."""
    runs = np.zeros(count, dtype=np.int64)
    runs[starts[1:]] = 1
    return runs.cumsum()


def pieces(values: Floats) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the place at which each number starts, and its pieces, the lowest first.

    The last piece has the sign. Infinities and NaN have places of their own.
    """
    is_finite = np.isfinite(values)
    fraction, exponent = np.frexp(np.where(is_finite, values, 0.0))
    whole = np.ldexp(fraction, 53).astype(np.int64)
    place, shift = np.divmod(exponent.astype(np.int64) - 53 + _LOWEST, _WIDTH)
    low = (whole & _MASK) << shift
    high = ((whole >> _WIDTH) << shift) + (low >> _WIDTH)
    if not is_finite.all():
        place = np.where(is_finite, place, np.where(values > 0, _POSITIVE, _NEGATIVE))
        place[np.isnan(values)] = _NAN
    return place, low & _MASK, high & _MASK, high >> _WIDTH


def rounded_sum(places: Integers, starts: NDArray[np.intp], pieces: list[Integers]) -> Floats:
    """Return the double nearest to the sum of each run of rows."""
    runs = runs_of(len(places), starts)
    totals, is_exact = _sum_one_row(places[starts], *(piece[starts] for piece in pieces))
    is_exact[runs[1:][runs[1:] == runs[:-1]]] = False  # more than one row
    if is_exact.all():
        return totals
    others = np.flatnonzero(~is_exact)
    rows = np.flatnonzero(~is_exact[runs] & (places < _NAN))
    columns = np.searchsorted(others, runs[rows])
    totals[others] = _sum_rows(places[rows], columns, len(others), [p[rows] for p in pieces])
    with np.errstate(invalid="ignore"):
        totals[runs[places == _POSITIVE]] += np.inf
        totals[runs[places == _NEGATIVE]] -= np.inf  # NaN if the run has both infinities
    totals[runs[places == _NAN]] = np.nan
    return totals


def _sum_one_row(
    places: Integers, low: Integers, middle: Integers, high: Integers
) -> tuple[Floats, Booleans]:
    """Return sums of one row, and which of them are correctly rounded: no error term remains."""
    first, second, third = (piece.astype(np.float64) for piece in (high, middle, low))
    total, rest = _two_sum(first * 2.0 ** (2 * _WIDTH), second * 2.0**_WIDTH)
    rest, error = _two_sum(rest, third)
    is_exact = (error == 0) & (places < _NAN)
    for piece in (low, middle, high):
        is_exact &= np.abs(piece) < 2**53  # the conversion to float64 lost no bit
    with np.errstate(over="ignore"):
        sums = np.ldexp(total + rest, (places * _WIDTH - _LOWEST).astype(np.int32))
    return sums, is_exact


def _two_sum(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sum and its rounding error (Knuth: TAOCP 2, 4.2.2, theorem B)."""
    total = one + other
    rest = total - one
    return total, (one - (total - rest)) + (other - rest)


def _sum_rows(places: Integers, runs: Integers, count: int, pieces: list[NDArray[Any]]) -> Floats:
    """Return sums of runs of finite numbers, by long integers with 28-bit limbs, a column each."""
    if not len(places):
        return np.zeros(count)
    # Four zero limbs below, so that each number has four to read; three above, to carry into.
    first = int(places.min()) - 4
    limbs = np.zeros((int(places.max()) - first + 6, count), dtype=np.int64)
    for offset, piece in enumerate(pieces):
        limbs[places - first + offset, runs] += piece
    _carry(limbs)
    is_negative = limbs[-1] < 0
    if is_negative.any():
        limbs[:, is_negative] *= -1
        _carry(limbs)
    is_zero = limbs == 0
    top = len(limbs) - 1 - (~is_zero[::-1]).argmax(axis=0)
    top[is_zero.all(axis=0)] = 4
    each = np.arange(count)
    head = (limbs[top, each] << _WIDTH) | limbs[top - 1, each]
    rest = (limbs[top - 2, each] << _WIDTH) | limbs[top - 3, each]
    # Fill 62 bits, nine more than a double has, so that the last one can be a sticky bit.
    room = np.minimum(62 - np.frexp(head.astype(np.float64))[1], 33).astype(np.int64)
    cut = 2 * _WIDTH - room
    others = (~is_zero).cumsum(axis=0)[top - 4, each] > 0
    others |= (rest & ((1 << cut) - 1)) != 0
    whole = (head << room) | (rest >> cut) | others
    exponent = (top - 1 + first) * _WIDTH - room - _LOWEST
    with np.errstate(over="ignore"):
        sums: Floats = np.ldexp(whole.astype(np.float64), exponent.astype(np.int32))
    return np.where(is_negative, -sums, sums)


def _carry(limbs: Integers) -> None:
    """Reduce all limbs but the last to 28 bits; the last has the sign."""
    for place in range(len(limbs) - 1):
        limbs[place + 1] += limbs[place] >> _WIDTH
        limbs[place] &= _MASK
