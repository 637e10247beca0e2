"""Conditions on one variable, decided once for each term.

A comparison of plain numbers is decided in float64, which orders decimals of 15 digits. Oxigraph
decides the rest: it evaluates the condition over a store with the terms, so errors, datatypes and
languages count as in the query itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.numerals import SURE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.model.arrays import Booleans, Floats
    from rsp_engine.model.terms.term import Term

__all__ = [
    "TERM_PROPERTY",
    "ComparisonSign",
    "NumberComparison",
    "NumberCondition",
    "NumberConnective",
    "NumberNegation",
    "TermFilter",
]

TERM_PROPERTY = "urn:rsp-engine:term"
"""The property by which the text of a filter reads a term."""
ComparisonSign = Literal["=", "!=", "<", "<=", ">", ">="]
_NUMBER = re.compile(
    r'"(?:(-?[0-9]+)"\^\^<http://www\.w3\.org/2001/XMLSchema#integer>'
    r'|(-?[0-9]+(?:\.[0-9]+)?)"\^\^<http://www\.w3\.org/2001/XMLSchema#(?:decimal|double)>)'
)
_COMPARE: dict[ComparisonSign, Callable[[Floats, float], Booleans]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, slots=True)
class NumberComparison:
    """The comparison of a variable with a number of at most 15 digits."""

    operator: ComparisonSign
    number: float

    def holds(self, numbers: Floats) -> Booleans:
        """Return for which numbers it holds."""
        return _COMPARE[self.operator](numbers, self.number)


@dataclass(frozen=True, slots=True)
class NumberConnective:
    """Conditions on a number of which all hold, or any."""

    kind: Literal["all", "any"]
    operands: tuple[NumberCondition, ...]

    def holds(self, numbers: Floats) -> Booleans:
        """Return for which numbers it holds."""
        join = np.logical_and if self.kind == "all" else np.logical_or
        found: Booleans = join.reduce([operand.holds(numbers) for operand in self.operands])
        return found


@dataclass(frozen=True, slots=True)
class NumberNegation:
    """The negation of a condition on a number."""

    operand: NumberCondition

    def holds(self, numbers: Floats) -> Booleans:
        """Return for which numbers it holds."""
        return ~self.operand.holds(numbers)


NumberCondition = NumberComparison | NumberConnective | NumberNegation


def _plain_number(text: str) -> float:
    """Return the number of an integer, a decimal or a double of few digits; else NaN."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return np.nan
    lexical = match[1] or match[2]
    return float(lexical) if len(lexical) <= SURE else np.nan


@dataclass(frozen=True, slots=True)
class TermFilter:
    """A condition on one variable.

    `sparql` selects the nodes whose term, by `TERM_PROPERTY`, meets the condition.
    """

    variable: str
    sparql: str
    number: NumberCondition | None = None
    """The condition on plain numbers; None if only `sparql` decides."""

    def decide(self, texts: Sequence[str]) -> Booleans:
        """Return for which terms the condition holds."""
        if self.number is None:
            return self._ask(texts)
        numbers = np.fromiter(map(_plain_number, texts), dtype=np.float64, count=len(texts))
        holds = self.number.holds(numbers)
        others = np.flatnonzero(np.isnan(numbers))
        if len(others):
            holds[others] = self._ask([texts[place] for place in others.tolist()])
        return holds

    def decide_terms(self, terms: Sequence[Term]) -> Booleans:
        """Return for which terms the condition holds; each distinct one is decided once."""
        numbers: dict[Term, int] = {}
        codes = [numbers.setdefault(term, len(numbers)) for term in terms]
        return self.decide(list(map(str, numbers)))[codes]

    def _ask(self, texts: Sequence[str]) -> Booleans:
        """Let Oxigraph evaluate the condition. It may relabel blank nodes: no condition tells."""
        holds = np.zeros(len(texts), dtype=np.bool_)
        lines = (f"<urn:{n}> <{TERM_PROPERTY}> {text} .\n" for n, text in enumerate(texts))
        store = ox.Store()
        store.load("".join(lines), format=ox.RdfFormat.N_TRIPLES, lenient=True)
        solutions = store.query(self.sparql)
        assert isinstance(solutions, ox.QuerySolutions), "the text is a SELECT query"  # noqa: S101
        for solution in solutions:
            holds[int(solution[0].value.removeprefix("urn:"))] = True
        return holds
