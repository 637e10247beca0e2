"""Quantities as text: a number with its noun, durations in milliseconds, and rates.

A duration is an `xsd:duration` of fixed length (`PT9M`, `P1DT12H`), a number with a unit (`9m`,
`500ms`, `1.5h`) or a bare integer, which counts milliseconds. A rate is a number in a duration.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

__all__ = ["Rate", "format_duration", "has_unit", "parse_duration", "parse_rate", "quantity"]


class Rate(NamedTuple):
    """At most `most` in any span of `span` milliseconds."""

    most: int
    span: int

    def __str__(self) -> str:
        return f"{self.most}/{format_duration(self.span)}"


def quantity(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun; the plural has an `s` unless it is given.

    >>> quantity(1, "element"), quantity(2_000, "element"), quantity(0, "query", "queries")
    ('1 element', '2,000 elements', '0 queries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_SHORT = re.compile(r"([+-]?)(\d+(?:\.\d+)?)(ms|s|m|h|d)?", re.ASCII)
_XSD = re.compile(
    r"(-?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE | re.ASCII,
)


def parse_duration(text: str) -> int:
    """Return a duration in milliseconds; raise `ValueError` with the reason if it is not one.

    >>> parse_duration("9m"), parse_duration("PT9M"), parse_duration("540000")
    (540000, 540000, 540000)
    >>> parse_duration("P1M")
    Traceback (most recent call last):
    ValueError: months and years have no fixed length
    """
    if short := _SHORT.fullmatch(text):
        sign, number, unit = short.groups()
        return _whole(Fraction(number) * _UNITS[unit or "ms"], sign)
    xsd = _XSD.fullmatch(text)
    if xsd is None or text[-1] in "PTpt":
        raise ValueError("it is not of the form PT9M, 9m or 540000")
    sign, years, months, *parts = xsd.groups()
    if int(years or 0) or int(months or 0):
        raise ValueError("months and years have no fixed length")
    sizes = zip(parts, _UNITS.values(), strict=False)
    return _whole(sum((Fraction(n or 0) * size for n, size in sizes), Fraction()), sign)


def format_duration(milliseconds: int) -> str:
    """Write a duration with the largest unit that divides it.

    >>> format_duration(540_000), format_duration(1_500)
    ('9m', '1500ms')
    """
    for unit, size in _UNITS.items():
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    raise AssertionError("every integer is a multiple of one millisecond")


def has_unit(text: str) -> bool:
    """Return whether a duration is written with a unit.

    >>> has_unit("9m"), has_unit("PT9M"), has_unit("-9")
    (True, True, False)
    """
    return not text.lstrip("+-").isdecimal()


def _whole(milliseconds: Fraction, sign: str) -> int:
    if milliseconds.denominator != 1:
        raise ValueError("it is not a whole number of milliseconds")
    return -int(milliseconds) if sign == "-" else int(milliseconds)


def parse_rate(text: str) -> Rate:
    """Return a rate: a number, a slash and a duration; raise `ValueError` if it is not one.

    >>> parse_rate("100/10s")
    Rate(most=100, span=10000)
    >>> parse_rate("100")
    Traceback (most recent call last):
    ValueError: it is not of the form 100/10s
    """
    count, slash, duration = text.partition("/")
    if not slash or not (count.isascii() and count.isdigit()):
        raise ValueError("it is not of the form 100/10s")
    span = parse_duration(duration)
    if span < 1:
        raise ValueError("a span must be at least 1 ms")
    return Rate(int(count), span)
