"""The total order of RDF terms.

    unbound  <  blank nodes  <  IRIs  <  numbers  <  booleans  <  dates  <  moments (dateTime)
             <  durations  <  texts of all languages  <  times  <  all other literals

It follows SPARQL 1.1 (section 15.1) where SPARQL defines an order. What SPARQL leaves open is
decided here, once for every operator, evaluator and oracle:

- Numbers of all types are compared as doubles and, where these are equal, as decimals, so that
  9007199254740993 comes after 9007199254740992. NaN comes before all other numbers. Numbers of one
  value are equal, whatever their type.
- Dates and times without a time zone are taken as UTC; equal instants are equal. Durations are
  compared by their seconds, with 146,097 days in 4,800 months (a Gregorian cycle of 400 years).
- Texts are compared by code points, equal texts by language, without a language first.
- Other literals, and ill-typed ones, are compared by datatype and text.

A term is mapped to a *key*, a string that is compared by code points. So anything that sorts
strings can sort terms, Oxigraph included, which has no total order of its own.

>>> terms = [ox.Literal("b"), ox.Literal(10), ox.Literal(9.5), None, ox.NamedNode("urn:a")]
>>> [str(term) for term in sorted(terms, key=order_key)]
['None', '<urn:a>', '"9.5"^^<http://www.w3.org/2001/XMLSchema#double>', \
'"10"^^<http://www.w3.org/2001/XMLSchema#integer>', '"b"']
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from math import isnan
from struct import pack, unpack
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.model.terms.numerals import (
    DOUBLE,
    FLOAT,
    NUMERALS,
    SURE,
)
from rsp_engine.model.terms.xsd import XSD

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.terms.term import Term


__all__ = ["full_key", "number_key", "order_key"]

_BLANK, _IRI, _NUMBER, _BOOLEAN, _DATE, _MOMENT, _DURATION, _TEXT, _TIME, _OTHER = "0123456789"
_UNBOUND = ""
_EXACT = Context(prec=60)  # digits; a decimal of Oxigraph has at most 39
_SECONDS_OF_MONTH = Decimal(146_097 * 86_400) / 4_800
_ZONE = r"(?P<zone>Z|[+-]\d\d:\d\d)?"
_DAY = r"(?P<year>-?(?:[1-9]\d{3,}|0\d{3}))-(?P<month>\d\d)-(?P<day>\d\d)"
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:\.\d+)?)"
_FORMS = {
    XSD + "date": (_DATE, re.compile(_DAY + _ZONE, re.ASCII)),
    XSD + "dateTime": (_MOMENT, re.compile(f"{_DAY}T{_CLOCK}{_ZONE}", re.ASCII)),
    XSD + "time": (_TIME, re.compile(_CLOCK + _ZONE, re.ASCII)),
}
_PERIOD = re.compile(
    r"(?P<sign>-?)P(?=.)(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_LEAST, _MOST = -(1 << 63), 1 << 63


def order_key(term: Term | ox.Triple | None) -> str:
    """Return the key of a term; terms that tie in the order have the same key.

    >>> order_key(ox.Literal(1)) == order_key(ox.Literal(1.0)) < order_key(ox.Literal("1"))
    True
    """
    if isinstance(term, ox.Literal):
        return _literal_key(term.value, term.datatype.value, term.language)
    if isinstance(term, ox.NamedNode):
        return _IRI + term.value
    if term is None:
        return _UNBOUND
    return _BLANK + str(term)


def full_key(term: Term | ox.Triple | None) -> str:
    """Return a key that is unique to a term: ties in the order are broken by datatype and text.

    >>> full_key(ox.Literal(1.0)) < full_key(ox.Literal(1)) < full_key(ox.Literal(2))
    True
    """
    if isinstance(term, ox.Literal):
        return f"{order_key(term)}\0{term.datatype.value}\0{term}"
    return _UNBOUND if term is None else f"{order_key(term)}\0{term}"


def number_key(value: float) -> str:
    """Return the key of a double, and of any number of at most 15 digits that is nearest to it.

    >>> number_key(1.5) == order_key(ox.Literal(1.5))
    True
    """
    return f"{_NUMBER}0" if isnan(value) else f"{_NUMBER}1{_rising(value):016x}"


def _rising(value: float) -> int:
    """Map a double to an integer of the same order, by its bits; -0.0 counts as 0.0."""
    bits: int = unpack(">q", pack(">d", value + 0.0))[0]
    return bits + (1 << 63) if bits >= 0 else ~bits


@lru_cache(maxsize=65_536)
def _literal_key(text: str, datatype: str, language: str | None) -> str:
    if language is not None or datatype == XSD + "string":
        return f"{_TEXT}{_above_nul(text)}\0{language or ''}"
    try:
        with localcontext(_EXACT):
            return _KEYS[datatype](text, datatype)
    except (KeyError, ValueError, ArithmeticError):
        return f"{_OTHER}{datatype}\0{text}"


def _above_nul(text: str) -> str:
    """Escape U+0000, which terminates texts in keys, without changing the order of texts."""
    if "\0" not in text and "\1" not in text:
        return text
    return text.replace("\1", "\1\2").replace("\0", "\1\1")


def _number_key(text: str, datatype: str) -> str:
    value = NUMERALS[datatype](text)
    if len(text) <= SURE or datatype in {DOUBLE, FLOAT}:
        return number_key(value)
    # Numbers that share a double are ordered by their distance from its shortest decimal form.
    distance = int((Decimal(text) - Decimal(repr(value))).scaleb(18))
    if not distance:
        return number_key(value)
    rising, below = _rising(value), distance < 0
    return f"{_NUMBER}1{rising - below:016x}{'~' if below else '+'}{distance % (1 << 128):032x}"


def _boolean_key(text: str, _: str) -> str:
    return _BOOLEAN + {"false": "0", "0": "0", "true": "1", "1": "1"}[text]


def _instant_key(text: str, datatype: str) -> str:
    kind, form = _FORMS[datatype]
    match = form.fullmatch(text)
    if match is None:
        raise ValueError(text)
    parts = match.groupdict()
    days = (
        _days(int(parts["year"]), int(parts["month"]), int(parts["day"])) if "day" in parts else 0
    )
    seconds = Decimal(days * 86_400)
    if "hour" in parts:
        seconds += _seconds_of_day(int(parts["hour"]), int(parts["minute"]), parts["second"])
    return kind + _seconds_key(seconds - _zone_seconds(parts["zone"]))


def _days(year: int, month: int, day: int) -> int:
    """Return the day number in the proleptic Gregorian calendar, counted from March of year 0."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1]:
        raise ValueError("there is no such day")
    years = year if month > 2 else year - 1
    months = (month + 9) % 12  # from March on, so that the leap day is the last of a year
    return 365 * years + years // 4 - years // 100 + years // 400 + (153 * months + 2) // 5 + day


def _seconds_of_day(hour: int, minute: int, second: str) -> Decimal:
    seconds = Decimal(second)
    is_end = hour == 24 and minute == 0 and seconds == 0
    if minute > 59 or seconds >= 60 or (hour > 23 and not is_end):
        raise ValueError("there is no such time")
    return 3_600 * hour + 60 * minute + seconds


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:])
    if minutes > 59 or 60 * hours + minutes > 840:
        raise ValueError("there is no such time zone")
    return (3_600 * hours + 60 * minutes) * (-1 if zone[0] == "-" else 1)


def _period_key(text: str, datatype: str) -> str:
    match = _PERIOD.fullmatch(text)
    if match is None:
        raise ValueError(text)
    sign, *parts = match.groups()
    years, months, days, hours, minutes, seconds = (Decimal(part or 0) for part in parts)
    has_months, has_days = any(parts[:2]), any(parts[2:])
    if (datatype == XSD + "dayTimeDuration" and has_months) or (
        datatype == XSD + "yearMonthDuration" and has_days
    ):
        raise ValueError(text)
    total = (12 * years + months) * _SECONDS_OF_MONTH
    total += 86_400 * days + 3_600 * hours + 60 * minutes + seconds
    return _DURATION + _seconds_key(-total if sign else total)


def _seconds_key(seconds: Decimal) -> str:
    whole = int(seconds.to_integral_value(rounding="ROUND_FLOOR"))
    if not _LEAST <= whole < _MOST:
        raise ValueError("out of range: more than 64 bits of seconds")
    digits = f"{seconds - whole:f}".partition(".")[2].rstrip("0")
    return f"{whole - _LEAST:016x}{digits}"


_KEYS: dict[str, Callable[[str, str], str]] = {
    **dict.fromkeys(NUMERALS, _number_key),
    XSD + "boolean": _boolean_key,
    **dict.fromkeys(_FORMS, _instant_key),
    **dict.fromkeys(
        (XSD + "duration", XSD + "dayTimeDuration", XSD + "yearMonthDuration"), _period_key
    ),
}
