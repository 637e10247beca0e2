"""Timestamp parsers: numbers, ISO 8601 and JSON values to integer milliseconds since 1970 (UTC).

Every function raises `ValueError` with a reason that completes the sentence "its time ...".
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers

__all__ = [
    "TIME_UNITS",
    "TimeUnit",
    "from_iso",
    "from_json",
    "from_number",
    "from_text",
    "in_milliseconds",
]

TimeUnit = Literal["ms", "s", "us", "ns"]
TIME_UNITS: tuple[TimeUnit, ...] = get_args(TimeUnit)
"""What a time that is a number counts; the first is the default."""
_SHIFTS: dict[TimeUnit, int] = {"s": 3, "ms": 0, "us": -3, "ns": -6}
"""By how many digits a number is moved to count milliseconds."""

_EPOCH = date(1970, 1, 1).toordinal()
_LIMIT = 2**63
_TOO_LARGE = "does not fit into 64 bits of milliseconds"
_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*))?")
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ]"
    r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?"
    r"(?:[Zz]|([+-])(\d\d?)(?::?(\d\d))?)?",
    re.ASCII,
)


def from_iso(text: str) -> int:
    """Parse an ISO 8601 (`xsd:dateTime`) text; without a time zone it is UTC.

    A fraction of a second is truncated to milliseconds. `24:00:00` is the end of a day.

    >>> from_iso("1970-01-01T01:00:01.2345+01:00")
    1234
    """
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError(f"is not of the form 2015-01-06T20:00:22Z: {_shown(text)}")
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = match.groups()
    days = _days(year, month, day)
    seconds = _clock(text, int(hour), int(minute), int(second or 0), bool(int(fraction or 0)))
    offset = 0
    if sign is not None:
        offset = _offset(text, int(hours), int(minutes or 0)) * (-1 if sign == "-" else 1)
    milliseconds = int((fraction or "0")[:3].ljust(3, "0"))
    return (days * 86_400 + seconds - offset) * 1_000 + milliseconds


def from_number(text: str, unit: TimeUnit = "ms") -> int:
    """Parse a whole number of milliseconds, or a number in another unit, rounded down to these.

    >>> from_number("1500"), from_number("1.5", "s"), from_number("1500999", "us")
    (1500, 1500, 1500)
    """
    shift = _SHIFTS[unit]
    if shift >= 0 and len(text) < 16 and text.isascii() and text.isdigit():  # the common case
        return int(text) * (1_000 if shift else 1)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"is not a number: {_shown(text)}")
    sign, whole, fraction = match.groups(default="")
    if len(whole) > 19:
        whole = whole.lstrip("0").rjust(1, "0")
    if len(whole) > 19:
        raise ValueError(_TOO_LARGE)
    finer = fraction.rstrip("0")
    if shift > 0:
        whole, finer = whole + finer[:shift].ljust(shift, "0"), finer[shift:]
    elif shift < 0:
        whole, finer = whole[:shift] or "0", (whole[shift:] + finer).strip("0")
    elif finer:
        raise ValueError(f"is not a whole number of milliseconds: {_shown(text)}")
    if sign == "-":
        return _checked(-int(whole) - bool(finer))  # round down, as positive times are
    return _checked(int(whole))


def in_milliseconds(times: Integers, unit: TimeUnit) -> Integers | None:
    """Convert times that are not negative, rounded down; `None` if one does not fit.

    >>> in_milliseconds(np.array([1_999]), "us").tolist(), in_milliseconds(np.array([2]), "s")
    ([1], array([2000]))
    """
    shift = _SHIFTS[unit]
    if shift > 0 and times.max(initial=0) >= _LIMIT // 10**shift:
        return None
    factor = 10 ** abs(shift)
    return np.asarray(times * factor if shift > 0 else times // factor)


def from_text(text: str, unit: TimeUnit = "ms") -> int:
    """Parse a number in the given unit, or an ISO 8601 text.

    >>> from_text("1000"), from_text("1970-01-01T00:00:01Z")
    (1000, 1000)
    """
    text = text.strip()
    if not text:
        raise ValueError("is missing")
    if _NUMBER.fullmatch(text):
        return from_number(text, unit)
    return from_iso(text)


def from_json(value: object, unit: TimeUnit = "ms") -> int:
    """Convert a JSON value: a number in the given unit, or an ISO 8601 string.

    >>> from_json(1000), from_json(1e3), from_json("1970-01-01T00:00:01Z"), from_json(1.5, "s")
    (1000, 1000, 1000, 1500)
    """
    match value:
        case bool():
            raise ValueError("is neither a number nor a string")
        case int() | float() if unit != "ms":
            return from_number(f"{Decimal(repr(value)):f}", unit)
        case int():
            return _checked(value)
        case float():
            if not value.is_integer():
                raise ValueError(f"is not a whole number of milliseconds: {value}")
            return _checked(int(value))
        case str() if _NUMBER.fullmatch(value):
            raise ValueError("is a number in quotes: milliseconds are written without them")
        case str():
            return from_iso(value)
        case _:
            raise ValueError("is neither a number nor a string")


@lru_cache(maxsize=1024)
def _days(year: str, month: str, day: str) -> int:
    try:
        return date(int(year), int(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        raise ValueError(f"is not a calendar day: {year}-{month}-{day}") from None


def _clock(text: str, hour: int, minute: int, second: int, has_fraction: bool) -> int:
    is_end_of_day = hour == 24 and not (minute or second or has_fraction)
    if (hour > 23 and not is_end_of_day) or minute > 59 or second > 59:
        raise ValueError(f"is not a time of day: {_shown(text)}")
    return (hour * 60 + minute) * 60 + second


def _offset(text: str, hours: int, minutes: int) -> int:
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        raise ValueError(f"has no valid time zone: {_shown(text)}")
    return (hours * 60 + minutes) * 60


def _checked(milliseconds: int) -> int:
    if not -_LIMIT <= milliseconds < _LIMIT:
        raise ValueError(_TOO_LARGE)
    return milliseconds


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")
