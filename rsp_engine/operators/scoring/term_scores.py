"""Terms as scores: numbers as they are, dates and durations in milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import nan
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.durations import parse_duration
from rsp_engine.model.terms.numerals import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGERS,
    NUMERALS,
    SURE,
)
from rsp_engine.model.terms.term import XSD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.model.arrays import Floats

__all__ = ["are_numbers", "column", "number"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        raise ValueError(text)  # `9m` is a duration in the text of a query only
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
