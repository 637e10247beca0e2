"""Conversion of terms to scores: numbers by value, dates and durations in milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import nan
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.quantities import parse_duration
from rsp_engine.model.terms.numerals import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGERS,
    NUMERALS,
    SURE,
)
from rsp_engine.model.terms.xsd import XSD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.model.arrays import Floats

__all__ = ["are_numbers", "column", "number"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number(term: object) -> float | None:
    """Return a term as a score; None if it is not a number, date or duration to Oxigraph.

    A date without a time zone is in UTC. An xsd:float is read from its text, without rounding to
    32 bits.

    >>> number(ox.Literal(5)), number(ox.Literal("5"))
    (5.0, None)
    """
    if not isinstance(term, ox.Literal):
        return None
    parse = _READERS.get(term.datatype.value)
    if parse is None:
        return None
    try:
        return parse(term.value)
    except (ValueError, OverflowError):
        return None


def column(terms: Sequence[object]) -> Floats:
    """Return terms as scores; NaN for a term without a score.

    >>> column([ox.Literal(5), None, ox.Literal(0.5)])
    array([5. , nan, 0.5])
    """
    plain = _plain(terms)
    if plain is not None:
        return plain
    scores = map(number, terms)
    return np.array([nan if score is None else score for score in scores], dtype=np.float64)


def are_numbers(terms: Sequence[object]) -> bool:
    """Return whether float64 arithmetic over these terms is that of SPARQL.

    It is for integers, decimals, doubles and unbound terms. It is not for dates, texts and IRIs: a
    registered function may accept them, and a difference of dates has a value. It is not for
    xsd:float, because SPARQL rounds to 32 bits.

    >>> are_numbers([ox.Literal(5), None]), are_numbers([ox.Literal(5), ox.Literal("5")])
    (True, False)
    """
    try:
        kinds = {term.datatype.value for term in terms if term is not None}  # type: ignore[attr-defined]
    except AttributeError:  # not a literal
        return False
    return kinds <= _PLAIN.keys()


def _plain(terms: Sequence[object]) -> Floats | None:
    """Return short numbers of one datatype, which can be validated all at once; None otherwise."""
    try:
        kinds = {term.datatype.value for term in terms}  # type: ignore[attr-defined]
        texts = [term.value for term in terms]  # type: ignore[attr-defined]
    except AttributeError:  # not a literal
        return None
    if len(kinds) != 1 or max(map(len, texts)) > SURE:
        return None
    allowed = _PLAIN.get(kinds.pop())
    if allowed is None or allowed.fullmatch("".join(texts)) is None:
        return None
    try:
        return np.array(list(map(float, texts)), dtype=np.float64)
    except ValueError:
        return None


def _date(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) / timedelta(milliseconds=1)


def _duration(text: str) -> float:
    if not text.startswith(("P", "-P")):
        raise ValueError(text)  # the short form `9m` is valid only in the text of a query
    return float(parse_duration(text))


_READERS: dict[str, Callable[[str], float]] = {
    **NUMERALS,
    FLOAT: NUMERALS[DOUBLE],
    **{XSD + kind: _date for kind in ("dateTime", "date")},
    **{XSD + kind: _duration for kind in ("duration", "dayTimeDuration")},
}
_PLAIN = {
    **{kind: re.compile(r"[0-9+-]*") for kind in INTEGERS},
    DECIMAL: re.compile(r"[0-9.+-]*"),
    DOUBLE: re.compile(r"[0-9.+eE-]*"),
}
