"""The selection of the triples that patterns with constant predicates can match.

It runs where triples are read, on the columns of a reader, or on parsed triples. A triple is kept
for a pattern if it has the predicate and the constants, and passes each condition on a variable of
the pattern: no other triple is part of a solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.columns import TermColumn
from rsp_engine.model.terms.fingerprints import distinct, fingerprints_of
from rsp_engine.model.terms.matched_triples import CodePairs, MatchedTriples
from rsp_engine.model.terms.numerals import stored_literal
from rsp_engine.operators.sparql.template import Hole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.operators.joins.term_filter import TermFilter
    from rsp_engine.operators.sparql.one_pattern import OnePattern
    from rsp_engine.operators.sparql.template import TemplateTerm

__all__ = ["TripleSelection", "TripleTable", "objects_pass"]


class TripleTable(Protocol):
    """Triples as columns, which are made for the places that are asked for."""

    @property
    def values(self) -> Floats:
        """The objects as numbers of at most 15 digits: NaN if they are not, or not read."""

    def matching(self, predicate: bytes) -> Integers:
        """Return the places of triples with a predicate, in order."""

    def subject_codes(self, places: Integers) -> TermColumn:
        """Return some subjects."""

    def object_codes(self, places: Integers) -> TermColumn:
        """Return some objects."""

    def fingerprints(self) -> Integers:
        """Return the fingerprint of each triple, by its text."""


@dataclass(frozen=True, slots=True)
class TripleSelection:
    """Patterns with constant predicates, and conditions on their variables."""

    patterns: tuple[OnePattern, ...]
    filters: tuple[TermFilter, ...]

    @property
    def predicates(self) -> tuple[str, ...]:
        """The predicates of the patterns, as text."""
        return tuple(str(pattern.predicate) for pattern in self.patterns)

    def over(self, table: TripleTable) -> SelectedTriples:
        """Select the triples of a table."""
        return SelectedTriples(
            self.predicates,
            [self._places(pattern, table) for pattern in self.patterns],
            table,
        )

    def of(self, triples: Sequence[ox.Triple]) -> MatchedTriples:
        """Select some of the triples, whose literals have the form of the engine."""
        return self.over(_ParsedTriples(triples)).at(np.arange(len(triples)))

    def _places(self, pattern: OnePattern, table: TripleTable) -> Integers:
        """Return the places of triples that a pattern can match: objects are mostly cheaper."""
        places = table.matching(str(pattern.predicate).encode())
        for condition in self._on(pattern.object):
            places = places[objects_pass(condition, table, places)]
        if not isinstance(pattern.object, Hole):
            places = places[_equal(table.object_codes(places), pattern.object)]
        for condition in self._on(pattern.subject):
            codes, texts = table.subject_codes(places)
            places = places[condition.decide(texts)[codes]]
        if not isinstance(pattern.subject, Hole):
            places = places[_equal(table.subject_codes(places), pattern.subject)]
        return places

    def _on(self, end: TemplateTerm) -> list[TermFilter]:
        """Return the conditions on an end of a pattern."""
        if not isinstance(end, Hole):
            return []
        return [condition for condition in self.filters if condition.variable == end.name]


def objects_pass(condition: TermFilter, table: TripleTable, places: Integers) -> Booleans:
    """Return for which objects a condition holds; that of numbers is decided on the column."""
    if condition.number is None:
        codes, texts = table.object_codes(places)
        return condition.decide(texts)[codes]
    values = table.values[places]
    holds = condition.number.holds(values)
    others = np.flatnonzero(np.isnan(values))
    if len(others):
        codes, texts = table.object_codes(places[others])
        holds[others] = condition.decide(texts)[codes]
    return holds


def _equal(column: TermColumn, term: TemplateTerm) -> Booleans:
    """Return which terms are a constant."""
    wanted = str(stored_literal(term) if isinstance(term, ox.Literal) else term)
    are_equal = np.array([text == wanted for text in column.texts], dtype=np.bool_)
    found: Booleans = are_equal[column.codes]
    return found


class SelectedTriples:
    """The triples of a table that patterns can match, to be taken pane by pane."""

    def __init__(
        self, predicates: tuple[str, ...], places: Sequence[Integers], table: TripleTable
    ) -> None:
        """Take the places of the triples of each pattern."""
        self._predicates = predicates
        self._cuts = np.cumsum([len(each) for each in places])[:-1]
        self._places = np.concatenate(places)
        subjects, objects = table.subject_codes(self._places), table.object_codes(self._places)
        self._texts = [*subjects.texts, *objects.texts]
        self._codes = subjects.codes, objects.codes + len(subjects.texts)
        self._fingerprints = table.fingerprints()

    def at(self, indices: Integers) -> MatchedTriples:
        """Return the selected ones of the triples with some indices in the table."""
        is_inside = np.zeros(len(self._fingerprints), dtype=np.bool_)
        is_inside[indices] = True
        rows = np.flatnonzero(is_inside[self._places])
        cuts = np.searchsorted(rows, self._cuts)
        pairs = map(CodePairs, *(np.split(codes[rows], cuts) for codes in self._codes))
        fingerprints = distinct(self._fingerprints[indices])
        return MatchedTriples(self._predicates, tuple(pairs), self._texts, fingerprints).compact()


class _ParsedTriples:
    """Parsed triples as a table."""

    def __init__(self, triples: Sequence[ox.Triple]) -> None:
        self._triples = triples
        self._predicates = [str(triple.predicate).encode() for triple in triples]
        self.values = np.full(len(triples), np.nan)

    def matching(self, predicate: bytes) -> Integers:
        found = [place for place, each in enumerate(self._predicates) if each == predicate]
        return np.array(found, dtype=np.int64)

    def subject_codes(self, places: Integers) -> TermColumn:
        return self._codes(places, lambda triple: str(triple.subject))

    def object_codes(self, places: Integers) -> TermColumn:
        return self._codes(places, lambda triple: str(triple.object))

    def fingerprints(self) -> Integers:
        return fingerprints_of([str(triple) for triple in self._triples])

    def _codes(self, places: Integers, text: Callable[[ox.Triple], str]) -> TermColumn:
        known: dict[str, int] = {}
        texts = (text(self._triples[place]) for place in places.tolist())
        codes = [known.setdefault(each, len(known)) for each in texts]
        return TermColumn(np.array(codes, dtype=np.int64), list(known))
