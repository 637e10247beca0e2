"""Numbers in a text, all read together: those that are written in their canonical form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers

    Bytes = NDArray[np.uint8]

__all__ = ["MOST_DIGITS", "plain_numbers", "trailing_digits"]

_LONGEST = 18  # of a whole number: more need not fit into 64 bits
MOST_DIGITS = 6
"""On either side of a point there are so many digits at most: the quotient below is then exact."""
_ZERO, _NINE, _MINUS, _POINT = b"09-."


def plain_numbers(
    text: Bytes, starts: Integers, ends: Integers, *, is_whole: bool
) -> Floats | None:
    """Return the numbers between places; nothing if one is not canonical, or very long.

    >>> text = np.frombuffer(b"7 -0.25 07", dtype=np.uint8)
    >>> plain_numbers(text, np.array([0, 2]), np.array([1, 7]), is_whole=False)
    array([ 7.  , -0.25])
    >>> plain_numbers(text, np.array([8]), np.array([10]), is_whole=False) is None
    True
    """
    if (ends <= starts).any():
        return None
    is_negative = text[starts] == _MINUS
    starts = starts + is_negative
    sizes = ends - starts
    if sizes.min() < 1 or sizes.max() > _LONGEST:
        return None
    digits = np.zeros(len(starts), dtype=np.int64)
    point = np.full(len(starts), -1, dtype=np.int64)
    for place in range(int(sizes.max())):
        is_inside = place < sizes
        found = text[np.where(is_inside, starts + place, 0)]
        is_point = is_inside & (found == _POINT)
        is_digit = is_inside & (found >= _ZERO) & (found <= _NINE)
        if (is_inside & ~is_digit & ~(is_point & (point < 0))).any():
            return None
        point[is_point] = place
        digits = np.where(is_digit, digits * 10 + (found - _ZERO), digits)
    has_point = point >= 0
    if is_whole and has_point.any():
        return None
    whole = np.where(has_point, point, sizes)
    behind = np.where(has_point, sizes - point - 1, 0)
    is_zero = text[starts] == _ZERO
    is_canonical = (
        (whole >= 1)
        & ((whole == 1) | ~is_zero)
        & ~(is_negative & (digits == 0))
        & (~has_point | ((behind >= 1) & (text[ends - 1] != _ZERO)))
        & (is_whole | ((whole <= MOST_DIGITS) & (behind <= MOST_DIGITS)))
    )
    if not is_canonical.all():
        return None
    values = digits / 10.0**behind
    return np.where(is_negative, -values, values)


def trailing_digits(text: Bytes, ends: Integers) -> Integers | None:
    """Return the whole numbers that end before places; nothing if there is none, or a long one.

    >>> trailing_digits(np.frombuffer(b"<a/17><5>", dtype=np.uint8), np.array([5, 8]))
    array([17,  5])
    """
    found = np.zeros(len(ends), dtype=np.int64)
    going = np.ones(len(ends), dtype=np.bool_)
    for place in range(_LONGEST + 1):
        at = text[ends - 1 - place]
        going &= (at >= _ZERO) & (at <= _NINE)
        if place == 0 and not going.all():
            return None
        if not going.any():
            return found
        if place == _LONGEST:
            return None
        found += np.where(going, (at.astype(np.int64) - _ZERO) * 10**place, 0)
    return found
