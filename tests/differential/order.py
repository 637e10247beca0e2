"""The one order of terms: unbound, blank nodes, IRIs, literals by value.

numbers      NaN, then by the value as a double, then by the exact value: 1, 1.0 and 1e0 tie
other kinds  boolean, date, dateTime, duration, string, time: in this order, each by value
the rest     ill-formed literals, and those of other types: by datatype, then by text
"""

from __future__ import annotations

from typing import Any

from tests.differential.moments import Duration, Moment
from tests.differential.numeric import Number
from tests.differential.terms import Blank, Iri, Literal, Term, is_text, value_of

Place = tuple[Any, ...]


def place(term: Term | None) -> Place:
    """Return where a term stands when it goes up; equal places are a tie."""
    match term:
        case None:
            return (0,)
        case Blank(label):
            return (1, label)
        case Iri(value):
            return (2, value)
        case Literal():
            return (3, *_place_of_literal(term))


def _place_of_literal(literal: Literal) -> Place:
    if is_text(literal):
        return (1, "string", literal.text, literal.language)
    match value_of(literal):
        case Number() as number:
            return (0, 0) if number.is_nan else (0, 1, number.nearest(), number.exact())
        case bool() as truth:
            return (1, "boolean", truth)
        case Moment(kind) as moment:
            return (1, kind, moment.instant)
        case Duration() as duration:
            return (1, "duration", duration.length)
        case None:
            return (2, literal.datatype, literal.text)


def full_place(term: Term | None) -> Place:
    """Return a place that no other term has: ties go by datatype, text and language."""
    match term:
        case None:
            return (place(term), "", "", "")
        case Blank(label):
            return (place(term), label, "", "")
        case Iri(value):
            return (place(term), value, "", "")
        case Literal(text, datatype, language):
            return (place(term), datatype, text, language)
