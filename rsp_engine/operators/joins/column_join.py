"""The join of triple patterns with constant predicates, on arrays of term codes.

    ?s :p ?a ; :q ?b         the pairs of :p, sorted by subject, joined with those of :q
    OPTIONAL { ?s :r ?c }    a left join with the pairs of :r
    FILTER (?a > 5)          a part of the selection, which drops pairs before they arrive

A pane arrives with codes of its own, which are translated once for each distinct term. A pair of
codes is one integer, the subject in its high half, so a sorted array is an index by subject; the
index by object is made when a join needs it. Each pattern has such arrays for each pane, since the
triples of a solution may be in several panes. The join begins with the pattern that has the fewest
pairs, and repeated triples of several panes count once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.numerals import stored_literal
from rsp_engine.operators.joins.grouped_columns import GroupedColumns
from rsp_engine.operators.joins.triple_selection import TripleSelection
from rsp_engine.operators.sparql.template import Hole

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from rsp_engine.model.arrays import Booleans, Integers
    from rsp_engine.model.terms.matched_triples import MatchedTriples
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.joins.grouped_columns import GroupConfig
    from rsp_engine.operators.joins.term_filter import TermFilter
    from rsp_engine.operators.sparql.one_pattern import OnePattern

__all__ = [
    "UNBOUND",
    "ColumnJoin",
    "JoinConfig",
    "JoinedColumns",
    "TermCodes",
    "TooManySolutionsError",
]

UNBOUND = -1
"""The code of a variable without a value."""
_HALF = 32
_LOW = (1 << _HALF) - 1
_MOST_SOLUTIONS = 4_000_000
_NEW_TERMS = 100_000  # terms of gone panes below which a new dictionary does not pay off

JoinedColumns = dict[str, "Integers"]
"""Solutions: the codes of each variable."""


class TooManySolutionsError(Exception):
    """A join has more solutions than columns should hold."""


class TermCodes:
    """The code of each term, which is given as its text. Memory: all terms ever encoded.

    >>> codes = TermCodes()
    >>> codes.encode(["<urn:a>", '"b"', "<urn:a>"]), codes.texts()
    (array([0, 1, 0]), ['<urn:a>', '"b"'])
    """

    def __init__(self) -> None:
        self._codes: defaultdict[str, int] = defaultdict()
        self._codes.default_factory = self._codes.__len__
        self._texts: list[str] = []
        self.has_blank_nodes = False
        """Whether a term so far was a blank node, or has a text that looks like one."""

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, texts: Sequence[str]) -> Integers:
        """Return the codes of terms; a new term gets the next code."""
        self.has_blank_nodes = self.has_blank_nodes or "_:" in "\n".join(texts)
        return np.fromiter(map(self._codes.__getitem__, texts), dtype=np.int64, count=len(texts))

    def code(self, text: str) -> int:
        """Return the code of a term."""
        return self._codes[text]

    def texts(self) -> list[str]:
        """Return the text of each code."""
        new = len(self._codes) - len(self._texts)
        if new:
            latest = list(islice(reversed(self._codes), new))
            self._texts += reversed(latest)
        return self._texts


@dataclass(frozen=True, slots=True)
class JoinConfig:
    """The patterns to join, those of OPTIONAL, and the conditions on variables.

    Patterns have constant predicates and are connected by variables. Each pattern of OPTIONAL has
    such a variable. If the configuration is `complete`, the solutions of the window need nothing
    else: then each OPTIONAL has one pattern, with one variable of its own. They are projected, and
    distinct or grouped first.
    """

    patterns: tuple[OnePattern, ...]
    optionals: tuple[OnePattern, ...] = ()
    filters: tuple[TermFilter, ...] = ()
    is_complete: bool = False
    is_distinct: bool = False
    grouping: GroupConfig | None = None

    @property
    def selection(self) -> TripleSelection:
        """The selection of the triples that can contribute to a solution."""
        return TripleSelection((*self.patterns, *self.optionals), self.filters)


class ColumnJoin:
    """The join over the panes of a window. Memory: the triples that match, and their terms as text.

    Time of a window: the triples that enter and leave, and the pairs that are joined.
    """

    def __init__(self, config: JoinConfig) -> None:
        self._config = config
        self._panes: dict[Hashable, MatchedTriples] = {}
        self._start()

    def __len__(self) -> int:
        """Return the number of triples that match, in all panes."""
        return sum(map(len, self._panes.values()))

    def move(self, panes: Mapping[Hashable, MatchedTriples]) -> None:
        """Replace the content of the window; only panes that enter or leave are touched."""
        for key in [key for key in self._panes if key not in panes]:
            del self._panes[key]
            for pattern in self._all:
                pattern.remove(key)
        for key in [key for key in panes if key not in self._panes]:
            self._panes[key] = panes[key]
            self._encode(key)
        if len(self.codes) > 2 * self._size + _NEW_TERMS:
            self._start()

    def solutions(self) -> JoinedColumns:
        """Return the solutions of the required patterns, each once."""
        waiting = sorted(self._required, key=len)
        joined = waiting.pop(0).pairs()
        while waiting:
            following = next(each for each in waiting if each.names & joined.keys())
            waiting.remove(following)
            joined = following.join(joined)
        return joined

    def with_optionals(self, joined: JoinedColumns) -> JoinedColumns:
        """Return solutions extended by the patterns of OPTIONAL; a code may be `UNBOUND`."""
        for pattern in self._optional:
            joined = pattern.left_join(joined)
        return joined

    def contributing(self, joined: JoinedColumns) -> list[str]:
        """Return the triples that the solutions come from or may be extended by, as text."""
        texts = self.codes.texts()
        return [
            f"{texts[pair >> _HALF]} {pattern.predicate} {texts[pair & _LOW]}"
            for pattern in self._all
            for pair in pattern.contributing(joined).tolist()
        ]

    def columns(self, joined: JoinedColumns, names: Sequence[str]) -> list[Integers]:
        """Return the codes of variables, of solutions or of their groups.

        An unbound variable has the code of an empty text.
        """
        codes, size = self.codes, len(next(iter(joined.values())))
        nothing = codes.code("")
        if self._groups is not None:
            grouped = self._groups.columns(joined, size, codes.texts())
            size = len(next(iter(grouped.values())))
            joined = {name: codes.encode(column) for name, column in grouped.items()}
        unbound = np.full(size, nothing, dtype=np.int64)
        found = (joined.get(name, unbound) for name in names)
        return [np.where(column == UNBOUND, nothing, column) for column in found]

    def _start(self) -> None:
        """Begin with an empty dictionary, and encode the panes of the window."""
        config = self._config
        self.codes = TermCodes()
        """The dictionary, which is another one from time to time."""
        self._groups = None if config.grouping is None else GroupedColumns(config.grouping)
        self._required = [_PatternPairs(each, self.codes) for each in config.patterns]
        self._optional = [_PatternPairs(each, self.codes) for each in config.optionals]
        self._all = [*self._required, *self._optional]
        for key in self._panes:
            self._encode(key)
        self._size = len(self.codes)

    def _encode(self, key: Hashable) -> None:
        """Translate the codes of a pane."""
        pane = self._panes[key]
        codes = self.codes.encode(pane.texts)
        for pattern, pairs in zip(self._all, pane.pairs, strict=True):
            pattern.add(key, codes[pairs.subjects], codes[pairs.objects])


class _PatternPairs:
    """The pairs of subject and object that match a pattern, for each pane, sorted."""

    def __init__(self, pattern: OnePattern, codes: TermCodes) -> None:
        self.predicate = str(pattern.predicate)
        self.subject, self.value = self._ends = tuple(
            term.name if isinstance(term, Hole) else codes.code(str(_stored(term)))
            for term in (pattern.subject, pattern.object)
        )
        self.names = {end for end in self._ends if isinstance(end, str)}
        self._panes: dict[Hashable, Integers] = {}
        self._by_object: dict[Hashable, Integers] = {}

    def __len__(self) -> int:
        return sum(map(len, self._panes.values()))

    def add(self, key: Hashable, subjects: Integers, objects: Integers) -> None:
        """Add the pairs of a pane; both ends are equal if both are the same variable."""
        pairs = _pairs(subjects, objects)
        self._panes[key] = _distinct(
            pairs[subjects == objects] if self.subject == self.value else pairs
        )

    def remove(self, key: Hashable) -> None:
        """Remove a pane."""
        del self._panes[key]
        self._by_object.pop(key, None)

    def columns(self, pairs: Integers) -> JoinedColumns:
        """Return pairs as the columns of the variables."""
        ends = zip(self._ends, _halves(pairs), strict=True)
        return {name: codes for name, codes in ends if isinstance(name, str)}

    def pairs(self) -> JoinedColumns:
        """Return all pairs of the window as columns."""
        return self.columns(_merged([*self._panes.values()]))

    def join(self, joined: JoinedColumns) -> JoinedColumns:
        """Return solutions joined with the pairs; at least one variable is shared."""
        if self.names <= joined.keys():
            is_there = _contain([*self._panes.values()], self._pairs_of(joined))
            return {name: codes[is_there] for name, codes in joined.items()}
        return self._extended(joined, *self._probe(joined))

    def left_join(self, joined: JoinedColumns) -> JoinedColumns:
        """Return solutions extended by the pairs, or else with the other variable unbound."""
        index, codes = self._probe(joined)
        is_alone = np.ones(len(next(iter(joined.values()))), dtype=np.bool_)
        is_alone[index] = False
        alone = np.flatnonzero(is_alone)
        unbound = np.full(len(alone), UNBOUND, dtype=np.int64)
        both = np.concatenate((index, alone)), np.concatenate((codes, unbound))
        return self._extended(joined, *both)

    def contributing(self, joined: JoinedColumns) -> Integers:
        """Return the pairs of the window that solutions come from, or are extended by."""
        if self.names <= joined.keys():
            pairs = _distinct(self._pairs_of(joined))
            return pairs[_contain([*self._panes.values()], pairs)]
        place = self._shared_end(joined)
        codes = _distinct(joined[str(self._ends[place])])
        index, others = self._probe({str(self._ends[place]): codes})
        return _pairs(codes[index], others) if place == 0 else _pairs(others, codes[index])

    def _pairs_of(self, joined: JoinedColumns) -> Integers:
        subjects, objects = (joined[e] if isinstance(e, str) else np.int64(e) for e in self._ends)
        return _pairs(subjects, objects)

    def _shared_end(self, joined: JoinedColumns) -> int:
        """Return which end, 0 or 1, is a variable of the solutions; the other is not."""
        return 0 if self._ends[0] in joined else 1

    def _extended(self, joined: JoinedColumns, index: Integers, codes: Integers) -> JoinedColumns:
        """Return the solutions at places, with codes of the variable that they lack."""
        [name] = self.names - joined.keys()
        return {**{each: column[index] for each, column in joined.items()}, name: codes}

    def _probe(self, joined: JoinedColumns) -> tuple[Integers, Integers]:
        """Return the places of solutions, and the codes of the variable that they lack."""
        place = self._shared_end(joined)
        panes = [*(self._panes.values() if place == 0 else self._indices_by_object())]
        return _probe(panes, joined[str(self._ends[place])])

    def _indices_by_object(self) -> Iterator[Integers]:
        """Yield the pairs of each pane with the object in the high half."""
        for key, pairs in self._panes.items():
            if key not in self._by_object:
                subjects, objects = _halves(pairs)
                self._by_object[key] = np.sort(_pairs(objects, subjects))
            yield self._by_object[key]


def _stored(term: Term) -> Term:
    return stored_literal(term) if isinstance(term, ox.Literal) else term


def _pairs(high: Integers | np.int64, low: Integers | np.int64) -> Integers:
    pairs: Integers = np.asarray(high << np.int64(_HALF) | low)
    return pairs


def _halves(pairs: Integers) -> tuple[Integers, Integers]:
    return pairs >> _HALF, pairs & _LOW


def _distinct(values: Integers) -> Integers:
    """Return values sorted, each once; runs that are sorted already cost less."""
    ordered = np.sort(values, kind="stable")
    is_first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def _merged(panes: Sequence[Integers]) -> Integers:
    return _distinct(np.concatenate(panes)) if panes else np.empty(0, dtype=np.int64)


def _merged_if_cheaper(panes: Sequence[Integers], lookups: int) -> Sequence[Integers]:
    """Return the panes as they are, or as one, to look something up so many times."""
    return [_merged(panes)] if lookups * len(panes) > sum(map(len, panes)) else panes


def _contain(panes: Sequence[Integers], wanted: Integers) -> Booleans:
    """Return which pairs a pane has."""
    found = np.zeros(len(wanted), dtype=np.bool_)
    for pairs in _merged_if_cheaper(panes, len(wanted)):
        if len(pairs):
            places = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            found |= pairs[places] == wanted
    return found


def _probe(panes: Sequence[Integers], codes: Integers) -> tuple[Integers, Integers]:
    """Return all matches: the places of codes, and the other halves of pairs with these codes."""
    panes = _merged_if_cheaper(panes, len(codes))
    ranges = [
        (np.searchsorted(pairs, codes << _HALF), np.searchsorted(pairs, codes + 1 << _HALF))
        for pairs in panes
    ]
    if sum(int((end - start).sum()) for start, end in ranges) > _MOST_SOLUTIONS:
        raise TooManySolutionsError
    matches = [np.empty(0, dtype=np.int64)]
    for pairs, (start, end) in zip(panes, ranges, strict=True):
        counts = end - start
        index = np.repeat(np.arange(len(codes)), counts)
        offsets = np.arange(len(index)) - np.repeat(counts.cumsum() - counts, counts)
        matches.append(_pairs(index, pairs[start[index] + offsets] & _LOW))
    return _halves(_distinct(np.concatenate(matches)) if len(panes) > 1 else matches[-1])
