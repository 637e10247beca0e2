"""Times of ISO 8601 in one form, such as 2015-01-06T20:00:22.5+01:00, of all lines at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.io.sources.times import from_iso

if TYPE_CHECKING:
    from rsp_engine.io.sources.columns.words import Words
    from rsp_engine.model.arrays import Booleans, Integers

__all__ = ["iso_times"]

_FORM = re.compile(rb"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d)(?:\.(\d{1,8}))?([^\d.].*)?")
_FIELDS = ((0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2))
"""The place and the number of digits of year, month, day, hour, minute and second."""
_SEPARATORS = (4, 7, 10, 13, 16)


def iso_times(
    words: Words, starts: Integers, ends: Integers, example: bytes
) -> tuple[Integers, Booleans]:
    """Return times in milliseconds, and which of them are valid and have the form of an example.

    There are at least 8 bytes of text before each.

    >>> from rsp_engine.io.sources.columns.words import Words
    >>> words = Words(b"from to 1970-01-01T00:00:07Z 1970-02-30T00:00:00Z")
    >>> starts, ends = np.array([8, 29]), np.array([28, 49])
    >>> times, are_valid = iso_times(words, starts, ends, b"2015-01-06T20:00:22Z")
    >>> times[are_valid], are_valid
    (array([7000]), array([ True, False]))
    """
    form = _FORM.fullmatch(example)
    offset = None if form is None else _offset(form[3] or b"")
    if form is None or offset is None:
        return np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts), dtype=np.bool_)
    are_valid = ends - starts == len(example)
    starts = np.minimum(starts, len(words.bytes) - len(example))
    for place in _SEPARATORS:
        are_valid &= words.bytes[starts + place] == example[place]
    if form[3]:
        are_valid &= words.equal(starts + form.start(3), form[3])
    columns = []
    for place, count in _FIELDS:
        column, are_digits = _digits(words, starts + place, count)
        are_valid &= are_digits
        columns.append(column)
    year, month, day, hour, minute, second = columns
    are_valid &= (year >= 1) & (month >= 1) & (month <= 12)
    are_valid &= (hour <= 23) & (minute <= 59) & (second <= 59)
    months = np.where(are_valid, (year - 1970) * 12 + month - 1, 0)
    firsts, nexts = (_days(months + number) for number in (0, 1))
    are_valid &= (day >= 1) & (day <= nexts - firsts)
    seconds = (firsts + day - 1) * 86_400 + (hour * 60 + minute) * 60 + second
    times = seconds * 1_000 + offset
    if form[2]:
        are_valid &= words.bytes[starts + form.start(2) - 1] == ord(".")
        fraction, are_digits = _digits(words, starts + form.start(2), len(form[2]))
        are_valid &= are_digits
        times += fraction * 1_000 // 10 ** len(form[2])
    return times, are_valid


def _digits(words: Words, starts: Integers, count: int) -> tuple[Integers, Booleans]:
    return words.digits(starts + count, np.full(len(starts), count))


def _days(months: Integers) -> Integers:
    """Return the days from 1970 to the first day of some months."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _offset(zone: bytes) -> int | None:
    """Return what a time zone adds, in milliseconds; None if it is not valid."""
    try:
        return from_iso("1970-01-01T00:00:00" + zone.decode())
    except ValueError:
        return None
