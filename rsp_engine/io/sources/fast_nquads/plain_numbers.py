"""Vectorised parsing of canonical numbers in a byte array.

`plain_lines` parses objects and times with it; the fast reducer of splits relies on `MOST_DIGITS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers

    Bytes = NDArray[np.uint8]

__all__ = ["MOST_DIGITS", "plain_numbers", "trailing_digits"]

_LONGEST = 18  # digits of an integer that fit into 64 bits, whatever they are
MOST_DIGITS = 6
"""Most digits on either side of a decimal point: the division in `plain_numbers` is then exact."""
_ZERO, _NINE, _MINUS, _POINT = b"09-."


def plain_numbers(
    text: Bytes, starts: Integers, ends: Integers, *, is_whole: bool
) -> Floats | None:
    """Parse the numbers between `starts` and `ends`; `None` if one is too long or not canonical.

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
    for offset in range(int(sizes.max())):
        is_inside = offset < sizes
        characters = text[np.where(is_inside, starts + offset, 0)]
        is_point = is_inside & (characters == _POINT)
        is_digit = is_inside & (characters >= _ZERO) & (characters <= _NINE)
        if (is_inside & ~is_digit & ~(is_point & (point < 0))).any():
            return None
        point[is_point] = offset
        digits = np.where(is_digit, digits * 10 + (characters - _ZERO), digits)
    has_point = point >= 0
    if is_whole and has_point.any():
        return None
    whole = np.where(has_point, point, sizes)
    fraction = np.where(has_point, sizes - point - 1, 0)
    is_zero = text[starts] == _ZERO
    is_canonical = (
        (whole >= 1)
        & ((whole == 1) | ~is_zero)
        & ~(is_negative & (digits == 0))
        & (~has_point | ((fraction >= 1) & (text[ends - 1] != _ZERO)))
        & (is_whole | ((whole <= MOST_DIGITS) & (fraction <= MOST_DIGITS)))
    )
    if not is_canonical.all():
        return None
    values = digits / 10.0**fraction
    return np.where(is_negative, -values, values)


def trailing_digits(text: Bytes, ends: Integers) -> Integers | None:
    """Parse the integers that end before `ends`; `None` if one is missing or too long.

    >>> trailing_digits(np.frombuffer(b"<a/17><5>", dtype=np.uint8), np.array([5, 8]))
    array([17,  5])
    """
    numbers = np.zeros(len(ends), dtype=np.int64)
    is_digit = np.ones(len(ends), dtype=np.bool_)
    for power in range(_LONGEST + 1):
        characters = text[ends - 1 - power]
        is_digit &= (characters >= _ZERO) & (characters <= _NINE)
        if power == 0 and not is_digit.all():
            return None
        if not is_digit.any():
            return numbers
        if power == _LONGEST:
            return None
        digits = characters.astype(np.int64) - _ZERO
        numbers += np.where(is_digit, digits * 10**power, 0)
    return numbers
