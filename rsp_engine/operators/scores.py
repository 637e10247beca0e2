"""Terms as scores: numbers as they are, dates and durations in milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import nan
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.durations import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.model.arrays import Floats

__all__ = ["are_numbers", "column", "number"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)")
_DOUBLE = re.compile(r"[!-^`-~]+")  # float() would take spaces, underscores and other digits too
_SURE = 15  # so many characters of an integer or a decimal are never too large, nor too exact


def number(term: object) -> float | None:
    """Return a term as a score; nothing if Oxigraph takes it for no number, date or duration.

    A date without a time zone is one of UTC. An xsd:float is taken as it is written.

    >>> number(ox.Literal(5)), number(ox.Literal("5"))
    (5.0, None)
    """
    if not isinstance(term, ox.Literal):
        return None
    read = _READERS.get(term.datatype.value)
    if read is None:
        return None
    try:
        return read(term.value)
    except (ValueError, OverflowError):
        return None


def column(terms: Sequence[object]) -> Floats:
    """Return terms as scores; NaN where there is none.

    >>> column([ox.Literal(5), None, ox.Literal(0.5)])
    array([5. , nan, 0.5])
    """
    plain = _plain(terms)
    if plain is not None:
        return plain
    found = map(number, terms)
    return np.array([nan if score is None else score for score in found], dtype=np.float64)


def are_numbers(terms: Sequence[object]) -> bool:
    """Tell whether all terms are of kinds that float64 can calculate with as SPARQL does.

    Unbound ones are, too. Dates, texts and IRIs are not: a registered function may make something
    of them, and so may a date of a date. An xsd:float is not, since SPARQL rounds it.

    >>> are_numbers([ox.Literal(5), None]), are_numbers([ox.Literal(5), ox.Literal("5")])
    (True, False)
    """
    try:
        found = {term.datatype.value for term in terms if term is not None}  # type: ignore[attr-defined]
    except AttributeError:  # no literal
        return False
    return found <= _PLAIN.keys()


def _plain(terms: Sequence[object]) -> Floats | None:
    """Return numbers that are all of one kind and short: they can be checked all at once."""
    try:
        kinds = {term.datatype.value for term in terms}  # type: ignore[attr-defined]
        texts = [term.value for term in terms]  # type: ignore[attr-defined]
    except AttributeError:  # no literal
        return None
    if len(kinds) != 1 or max(map(len, texts)) > _SURE:
        return None
    allowed = _PLAIN.get(kinds.pop())
    if allowed is None or allowed.fullmatch("".join(texts)) is None:
        return None
    try:
        return np.array(list(map(float, texts)), dtype=np.float64)
    except ValueError:
        return None


def _is_within(value: int, bits: int) -> bool:
    """Tell whether Oxigraph has such an integer: of 64 bits, or of 128 and 10**-18 for decimals."""
    return -(1 << bits) <= value < 1 << bits


def _integer(text: str) -> float:
    if _INTEGER.fullmatch(text) is None or not _is_within(value := int(text), bits=63):
        raise ValueError(text)
    return float(value)


def _decimal(text: str) -> float:
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise ValueError(text)
    if len(text) > _SURE:
        sign, whole, digits = found.groups()
        digits = digits.rstrip("0")
        if len(digits) > 18 or not _is_within(int(sign + whole + digits.ljust(18, "0")), bits=127):
            raise ValueError(text)
    return float(text)


def _double(text: str) -> float:
    if _DOUBLE.fullmatch(text) is None:
        raise ValueError(text)
    return float(text)


def _date(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) / timedelta(milliseconds=1)


def _duration(text: str) -> float:
    if not text.startswith(("P", "-P")):
        raise ValueError(text)  # `9m` is a duration in the text of a query only
    return float(parse_duration(text))


_INTEGERS = (
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger",
    "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort",
    "unsignedByte",
)  # fmt: skip
_READERS: dict[str, Callable[[str], float]] = {
    **{_XSD + kind: _integer for kind in _INTEGERS},
    _XSD + "decimal": _decimal,
    **{_XSD + kind: _double for kind in ("double", "float")},
    **{_XSD + kind: _date for kind in ("dateTime", "date")},
    **{_XSD + kind: _duration for kind in ("duration", "dayTimeDuration")},
}
_PLAIN = {
    **{_XSD + kind: re.compile(r"[0-9+-]*") for kind in _INTEGERS},
    _XSD + "decimal": re.compile(r"[0-9.+-]*"),
    _XSD + "double": re.compile(r"[0-9.+eE-]*"),
}
