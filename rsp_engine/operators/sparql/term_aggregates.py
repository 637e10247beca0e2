"""SUM, AVG, MIN and MAX of RDF terms, independent of the order of the terms.

Oxigraph adds doubles sequentially, and compares a number with a text by their texts, so its own
aggregates depend on the order of the triples in the store. Here sums are exact:

    SUM    exact for integers and decimals; with a float or a double among the values, the number
           nearest to the sum of the exact values. Its type is the widest type of the values.
    AVG    the sum divided by the count, with Oxigraph's division: the average of integers is a
           decimal, truncated after 18 digits.
    MIN    the first in the order of terms (see `model.terms.term_order`), and MAX the last; equal
           terms are ordered by datatype, then by text.

A sum is an error if a value is not a number, or if the result does not fit into Oxigraph's type: a
64-bit integer, or a 128-bit decimal with 18 fractional digits.

>>> str(sum_of([ox.Literal(0.1)] * 10)), str(largest([ox.Literal(9), ox.Literal("1 kg")]))
('"1"^^<http://www.w3.org/2001/XMLSchema#double>', '"1 kg"')
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from math import frexp, fsum, inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.numerals import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGERS,
    NUMERALS,
    stored_literal,
)
from rsp_engine.model.terms.term_order import full_key
from rsp_engine.model.terms.xsd import XSD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.model.terms.term import Term


__all__ = [
    "TERM_AGGREGATES",
    "ExactSum",
    "average_of",
    "custom_aggregates",
    "largest",
    "least",
    "sum_of",
]

_DIGITS = 18  # fractional digits of Oxigraph's decimals
_UNIT = 10**_DIGITS
_BITS = 1074  # every double is a multiple of 2**-1074
_EXACT = Context(prec=60)  # more digits than any decimal of Oxigraph has
_INTEGER, _DECIMAL, _FLOAT, _DOUBLE, _NAN, _POSITIVE, _NEGATIVE, _OTHER = range(8)
_TYPES = (XSD + "integer", DECIMAL, FLOAT, DOUBLE)
# By datatype: Python's parser, the characters that it may see, and the largest length.
_READERS: dict[str, tuple[Callable[[str], Any], re.Pattern[str], int]] = {
    XSD + "integer": (int, re.compile(r"[0-9+-]*"), 18),
    DECIMAL: (Decimal, re.compile(r"[0-9.+-]*"), 18),
    DOUBLE: (float, re.compile(r"[0-9.+eE-]*"), 400),
    XSD + "string": (str, re.compile(r".*", re.DOTALL), 1 << 62),
}
_EXACT_KINDS = {XSD + "integer", DECIMAL}
_KINDS = {**dict.fromkeys(INTEGERS, _INTEGER), DECIMAL: _DECIMAL, FLOAT: _FLOAT, DOUBLE: _DOUBLE}


@dataclass(slots=True)
class ExactSum:
    """The exact sum of a bag of terms. Sums can be merged, and terms removed.

    `counts` is the number of terms of each type, and of terms that are infinite, NaN, or not
    numbers. Integers and decimals are added in units of 10**-18, floats and doubles in units of
    2**-1074.

    >>> total = ExactSum()
    >>> for value in (1e16, 1.0, -1e16):
    ...     total.add(ox.Literal(value))
    >>> str(total.sum())
    '"1"^^<http://www.w3.org/2001/XMLSchema#double>'
    """

    counts: list[int] = field(default_factory=lambda: [0] * 8)
    decimals: int = 0
    doubles: int = 0

    def add(self, term: object, times: int = 1) -> None:
        """Add a term `times` times; -1 removes it."""
        kind, special, value = _read(term)
        self.counts[kind] += times
        if special is not None:
            self.counts[special] += times
        elif kind <= _DECIMAL:
            self.decimals += times * value
        else:
            self.doubles += times * value

    def merge(self, other: ExactSum) -> None:
        """Add the terms of another sum."""
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.decimals += other.decimals
        self.doubles += other.doubles

    @property
    def _kind(self) -> int:
        """The widest type of the values; integer if there are none."""
        return max((kind for kind in range(4) if self.counts[kind]), default=_INTEGER)

    def sum(self) -> ox.Literal | None:
        """Return SUM; None if it is an error."""
        kind = self._kind
        if self.counts[_OTHER]:
            return None
        if kind <= _DECIMAL:
            return _decimal(self.decimals, kind)
        return _literal(_lexical(self._rounded(kind)), kind)

    def average(self) -> ox.Literal | None:
        """Return AVG; None if it is an error."""
        kind, count = self._kind, sum(self.counts[:4])
        if self.counts[_OTHER] or not count:
            return None if self.counts[_OTHER] else _decimal(0, _INTEGER)
        if kind > _DECIMAL:
            number = np.float32 if kind == _FLOAT else np.float64
            with np.errstate(over="ignore"):
                return _literal(_lexical(number(self._rounded(kind)) / number(count)), kind)
        truncated = abs(self.decimals) // count
        return _decimal(truncated if self.decimals >= 0 else -truncated, _DECIMAL)

    def _rounded(self, kind: int) -> float:
        """Return the float or double nearest to the sum."""
        if self.counts[_NAN] or (self.counts[_POSITIVE] and self.counts[_NEGATIVE]):
            return nan
        if self.counts[_POSITIVE] or self.counts[_NEGATIVE]:
            return inf if self.counts[_POSITIVE] else -inf
        total = Fraction(self.doubles, 1 << _BITS) + Fraction(self.decimals, _UNIT)
        try:
            return float(total) if kind == _DOUBLE else _nearest_float(total)
        except OverflowError:
            return inf if total > 0 else -inf


def _nearest_float(total: Fraction) -> float:
    """Return the xsd:float nearest to a number, rounded once: to 24 bits, or to 2**-149."""
    exponent = max(frexp(float(total))[1] - 24, -149)
    unit = Fraction(2) ** exponent
    with np.errstate(over="ignore"):
        return float(np.float32(float(round(total / unit) * unit)))


@lru_cache(maxsize=65_536)
def _read(term: object) -> tuple[int, int | None, int]:
    """Return the type of a term, its class if it is not finite, and its value in units."""
    kind = _KINDS.get(term.datatype.value) if isinstance(term, ox.Literal) else None
    if kind is None:
        return _OTHER, None, 0
    assert isinstance(term, ox.Literal), "only a literal has a datatype"  # noqa: S101
    try:
        number = NUMERALS[term.datatype.value](term.value)
    except ValueError:
        return _OTHER, None, 0
    if kind == _INTEGER:
        return kind, None, int(term.value) * _UNIT
    if kind == _DECIMAL:
        return kind, None, int(Decimal(term.value).scaleb(_DIGITS, _EXACT))
    if not isfinite(number):
        return kind, _NAN if isnan(number) else _POSITIVE if number > 0 else _NEGATIVE, 0
    numerator, denominator = number.as_integer_ratio()
    return kind, None, numerator << (_BITS + 1 - denominator.bit_length())


def _decimal(units: int, kind: int) -> ox.Literal | None:
    """Return an integer or a decimal as Oxigraph writes it; None if it is out of range."""
    bits = 127 if kind == _DECIMAL else 63
    if not -(1 << bits) <= (units if kind == _DECIMAL else units // _UNIT) < 1 << bits:
        return None
    whole, rest = divmod(abs(units), _UNIT)
    digits = f".{rest:018}".rstrip("0") if rest else ""
    text = f"{'-' if units < 0 else ''}{whole}{digits}"
    return ox.Literal(text, datatype=ox.NamedNode(_TYPES[kind]))


def _lexical(number: float | np.floating) -> str:
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "INF" if number > 0 else "-INF"
    return str(number + 0.0)  # turns -0.0 into 0.0, since SUM starts at 0


def _literal(text: str, kind: int) -> ox.Literal:
    return stored_literal(ox.Literal(text, datatype=ox.NamedNode(_TYPES[kind])))


def sum_of(terms: Sequence[object]) -> ox.Literal | None:
    """Return the sum of terms; None if it is an error."""
    total = _total(terms)
    return total.sum() if isinstance(total, ExactSum) else ox.Literal(total)


def average_of(terms: Sequence[object]) -> ox.Literal | None:
    """Return the average of terms; None if it is an error."""
    total = _total(terms)
    return total.average() if isinstance(total, ExactSum) else ox.Literal(total / len(terms))


def _total(terms: Sequence[object]) -> ExactSum | float:
    """Return the sum of terms; as a float if all of them are finite doubles."""
    kind, values = _read_uniform(terms)
    total = ExactSum()
    if kind in _EXACT_KINDS:
        with localcontext(_EXACT):
            total.decimals = int(sum(values) * _UNIT)
        total.counts[_KINDS[kind]] = len(values)
        return total
    if kind == DOUBLE:
        with suppress(OverflowError):
            return fsum(values) + 0.0
    for term in terms:
        total.add(term)
    return total


def least(terms: Sequence[Term]) -> Term | None:
    """Return the first in the order of terms; None if there are no terms."""
    return _extreme(terms, min)


def largest(terms: Sequence[Term]) -> Term | None:
    """Return the last in the order of terms; None if there are no terms."""
    return _extreme(terms, max)


def _extreme(terms: Sequence[Term], choose: Callable[..., Any]) -> Term | None:
    _, values = _read_uniform(terms)
    if values and (best := choose(values)):  # zero takes the slow path: 0.0 and -0.0 are equal
        return terms[values.index(best)]
    term: Term | None = choose(set(terms), key=full_key, default=None)
    return term


def _read_uniform(terms: Sequence[object]) -> tuple[str | None, list[Any]]:
    """Return the common datatype of terms, and their values; `None, []` if they are mixed or long.

    Terms mostly have one datatype and are short. Parsing them all at once is much faster.
    """
    try:
        kinds = {term.datatype for term in terms}  # type: ignore[attr-defined]
        texts = [term.value for term in terms]  # type: ignore[attr-defined]
    except AttributeError:  # not a literal
        return None, []
    kind = kinds.pop().value if len(kinds) == 1 else None
    if kind not in _READERS:
        return None, []
    parse, characters, longest = _READERS[kind]
    if max(map(len, texts)) > longest or characters.fullmatch("".join(texts)) is None:
        return None, []
    try:
        return kind, [*map(parse, texts)]
    except (ValueError, InvalidOperation):
        return None, []


def _distinct(function: Callable[[Sequence[Term]], Term | None]) -> Callable[..., Term | None]:
    return lambda terms: function([*dict.fromkeys(terms)])


TERM_AGGREGATES: dict[str, Callable[[Sequence[Term]], Term | None]] = {
    "MIN": least,
    "MAX": largest,
    "SUM": sum_of,
    "AVG": average_of,
    "SUM_DISTINCT": _distinct(sum_of),
    "AVG_DISTINCT": _distinct(average_of),
}
"""The aggregates by name. MIN and MAX need no DISTINCT form: repeated values do not change them."""


class _Aggregate:
    """An aggregate in Oxigraph's interface, which passes the values of a group one by one."""

    def __init__(self, function: Callable[[Sequence[Term]], Term | None]) -> None:
        self._terms: list[Term] = []
        self._function = function
        self.accumulate = self._terms.append

    def finish(self) -> Term | None:
        return self._function(self._terms)


def custom_aggregates(prefix: str) -> dict[ox.NamedNode, Callable[[], Any]]:
    """Return the aggregates for Oxigraph's `custom_aggregate_functions`, named with a prefix."""
    return {
        ox.NamedNode(prefix + name): partial(_Aggregate, function)
        for name, function in TERM_AGGREGATES.items()
    }
