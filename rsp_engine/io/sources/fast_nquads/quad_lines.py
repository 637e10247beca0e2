"""The quads of a text as columns: the edges of their terms, their times and their numbers.

Terms stay where they are in the text until they are read; most never are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.io.sources.fast_nquads.words import Words, mixed
from rsp_engine.model.terms.stored_literal import stored_literal

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = [
    "DECIMAL",
    "DOUBLE",
    "INTEGER",
    "MOST_DIGITS",
    "NO_NUMBER",
    "UNREAD",
    "QuadLines",
    "TermCodes",
]

NO_NUMBER, INTEGER, DECIMAL, DOUBLE, UNREAD = range(5)
"""The kinds of objects. One that is unread may have another form than that of the engine."""

MOST_DIGITS = 6
"""Most digits on either side of a decimal point: the division by a power of ten is then exact."""


class TermCodes(NamedTuple):
    """Terms as codes: the text of code n is `texts[n]`."""

    codes: Integers
    texts: list[str]


@dataclass(frozen=True, slots=True)
class QuadLines:
    """The quads of a text, in the order of their lines."""

    data: bytes
    starts: Integers
    subject_ends: Integers
    predicate_ends: Integers
    object_ends: Integers
    graph_ends: Integers
    times: Integers
    values: Floats
    """The objects as numbers; NaN if they are not, or unread."""
    kinds: Integers
    """The datatypes of these numbers: `INTEGER`, `DECIMAL` or `DOUBLE`; else `NO_NUMBER`, `UNREAD`.

    Numbers of one datatype are equal if and only if their texts are.
    """
    begins: Booleans
    """Whether each quad is the first of an element: the graph is another than in the line before."""

    @classmethod
    def of(
        cls,
        data: bytes,
        starts: Integers,
        subject_ends: Integers,
        predicate_ends: Integers,
        object_ends: Integers,
        graph_ends: Integers,
        times: Integers,
        values: Floats,
        kinds: Integers,
    ) -> QuadLines:
        """Return quads with the edges of their terms; find out where elements begin."""
        begins = np.ones(len(times), dtype=np.bool_)
        begins[1:] = times[1:] != times[:-1]
        if not begins.all():
            begins = Words(data).differ(object_ends + 1, graph_ends)
        edges = starts, subject_ends, predicate_ends, object_ends, graph_ends
        return cls(data, *edges, times, values, kinds, begins)

    @classmethod
    def none(cls) -> QuadLines:
        """Return no quads."""
        empty: Integers = np.empty(0, dtype=np.int64)
        return cls.of(b"", *[empty] * 6, np.empty(0), empty)

    def __len__(self) -> int:
        return len(self.times)

    def and_quads(self, numbers: Integers, more: QuadLines, more_numbers: Integers) -> QuadLines:
        """Return these quads and those of another text, in the order of their numbers."""
        order = np.argsort(np.concatenate((numbers, more_numbers)))
        shift = len(self.data)
        edges = (
            np.concatenate((mine, others + shift))[order]
            for mine, others in zip(self._edges, more._edges, strict=True)  # noqa: SLF001
        )
        columns = (
            np.concatenate(pair)[order]
            for pair in (
                (self.times, more.times),
                (self.values, more.values),
                (self.kinds, more.kinds),
            )
        )
        return QuadLines.of(self.data + more.data, *edges, *columns)

    @property
    def _edges(self) -> tuple[Integers, ...]:
        return (
            self.starts,
            self.subject_ends,
            self.predicate_ends,
            self.object_ends,
            self.graph_ends,
        )

    def with_times(self, times: Integers) -> QuadLines:
        """Return the same quads at other times."""
        return replace(self, times=times)

    def distinct(self) -> Booleans | None:
        """Return which quads do not repeat a triple of their element; None if all."""
        if self.begins.all():
            return None
        words, elements = Words(self.data), np.cumsum(self.begins)
        columns = (
            elements.astype(np.uint64),
            words.at(np.maximum(self.subject_ends - 8, self.starts)),
            words.at(np.maximum(self.predicate_ends - 8, self.subject_ends + 1)),
            words.at(self.predicate_ends + 1),
            (self.object_ends - self.starts).astype(np.uint64),
        )
        hashes = mixed(columns)
        order = np.argsort(hashes)
        is_alike = hashes[order[1:]] == hashes[order[:-1]]
        if not is_alike.any():
            return None
        alike = np.unique(np.concatenate((order[1:][is_alike], order[:-1][is_alike])))
        texts = zip(elements[alike].tolist(), self.triples(alike), strict=True)
        seen: dict[tuple[int, str], int] = {}
        firsts = [seen.setdefault(text, at) for at, text in zip(alike.tolist(), texts, strict=True)]
        kept = np.ones(len(self), dtype=np.bool_)
        kept[alike] = np.array(firsts) == alike
        return None if kept.all() else kept

    def at(self, chosen: Booleans) -> QuadLines:
        """Return some of the quads, among them the first one of each element."""
        columns = (*self._edges, self.times, self.values, self.kinds, self.begins)
        return QuadLines(self.data, *(column[chosen] for column in columns))

    def matching(self, predicate: bytes) -> Integers:
        """Return the indices of the quads with a predicate."""
        starts = self.subject_ends + 1
        places = np.flatnonzero(self.predicate_ends - starts == len(predicate))
        if not len(places):
            return places
        are_equal = Words(self.data).equal(starts[places], predicate)
        return places if are_equal.all() else places[are_equal]

    def subjects(self, places: Integers) -> list[str]:
        """Return the subjects of some quads, as text."""
        return self._between(self.starts[places], self.subject_ends[places])

    def objects(self, places: Integers) -> list[str]:
        """Return the objects of some quads, as text."""
        texts = self._between(self.predicate_ends[places] + 1, self.object_ends[places])
        for place in np.flatnonzero(self.kinds[places] == UNREAD).tolist():
            texts[place] = _read(texts[place])
        return texts

    def triples(self, places: Integers) -> list[str]:
        """Return the triples of some quads, as text."""
        texts = self._between(self.starts[places], self.object_ends[places])
        for place in np.flatnonzero(self.kinds[places] == UNREAD).tolist():
            subject, predicate, value = texts[place].split(" ", 2)
            texts[place] = f"{subject} {predicate} {_read(value)}"
        return texts

    def rows(self, places: Integers) -> list[str]:
        """Return the subjects and objects of some quads, as tab-separated rows."""
        pairs = zip(self.subjects(places), self.objects(places), strict=True)
        return [f"{subject}\t{value}" for subject, value in pairs]

    def subject_codes(self, places: Integers) -> TermCodes:
        """Return the subjects of some quads as codes."""
        codes, firsts = self._codes(self.starts[places], self.subject_ends[places])
        return TermCodes(codes, self.subjects(places[firsts]))

    def object_codes(self, places: Integers) -> TermCodes:
        """Return the objects of some quads as codes."""
        starts, ends = self.predicate_ends[places] + 1, self.object_ends[places]
        codes, firsts = self._codes(starts, ends)
        texts = self.objects(places[firsts])
        if not (self.kinds[places] == UNREAD).any():
            return TermCodes(codes, texts)
        known: dict[str, int] = {}  # unread literals of different texts may be the same term
        numbers = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)
        return TermCodes(numbers[codes], list(known))

    def _codes(self, starts: Integers, ends: Integers) -> tuple[Integers, Integers]:
        if len(starts) and (ends - starts).min() >= 8:  # noqa: PLR2004 - a word
            return Words(self.data).codes(starts, ends)
        numbers: dict[str, int] = {}
        codes = [numbers.setdefault(t, len(numbers)) for t in self._between(starts, ends)]
        firsts = {code: place for place, code in reversed([*enumerate(codes)])}
        places = np.array([firsts[code] for code in range(len(numbers))], dtype=np.int64)
        return np.array(codes, dtype=np.int64), places

    def _between(self, starts: Integers, ends: Integers) -> list[str]:
        data = self.data
        edges = zip(starts.tolist(), ends.tolist(), strict=True)
        return [data[start:end].decode() for start, end in edges]


def _read(text: str) -> str:
    """Return a literal in the form of the engine."""
    [triple] = ox.parse(f"<urn:s> <urn:p> {text} .", ox.RdfFormat.N_TRIPLES)
    literal = triple.object
    assert isinstance(literal, ox.Literal), "only literals are unread"  # noqa: S101
    return str(stored_literal(literal))
