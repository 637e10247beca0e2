"""The quads of a text as columns: the edges of their terms, their times and their numbers.

Terms stay where they are in the text until they are read; most never are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyoxigraph as ox

from rsp_engine.io.sources.columns.words import Words, mixed
from rsp_engine.model.terms.columns import TermColumn
from rsp_engine.model.terms.fingerprints import fingerprints, fingerprints_of
from rsp_engine.model.terms.numerals import stored_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.streams import DeadLetter

__all__ = [
    "NO_NUMBER",
    "UNREAD",
    "InColumns",
    "LineEdges",
    "Objects",
    "QuadLines",
    "ReadQuads",
    "Rename",
]

Rename = Callable[[int, "Sequence[ox.Triple]"], "Sequence[ox.Triple]"]
"""Gives the blank nodes of an element, at its time, labels that are unique in the run."""

NO_NUMBER, UNREAD = 0, 4
"""Kinds of objects without a number. One that is unread may have another form than the engine's."""

_IS_BARE = np.array([byte in b"-0123456789" for byte in range(256)])  # a number without quotes
_EVERY = slice(None)
_MANY = 500  # terms, for which to decode the whole text once is cheaper
_FEW = 32  # in elements of so few quads, all pairs are compared


class LineEdges(NamedTuple):
    """The start of each line in a text, and the ends of its terms: each is followed by a space.

    Of triples, the end of the graph is that of the object.
    """

    starts: Integers
    subjects: Integers
    predicates: Integers
    objects: Integers
    graphs: Integers

    def at(self, chosen: NDArray[Any]) -> LineEdges:
        """Return the edges of some lines."""
        return LineEdges(*(column[chosen] for column in self))

    def joined(self, others: LineEdges, shift: int) -> LineEdges:
        """Return these edges and those of a text that begins `shift` bytes later."""
        pairs = zip(self, others, strict=True)
        return LineEdges(*(np.concatenate((mine, column + shift)) for mine, column in pairs))


class Objects(NamedTuple):
    """The objects of quads as numbers: NaN if they are not, or unread.

    `kinds` are the datatypes of numbers, as in `columns`; else `NO_NUMBER` or `UNREAD`.
    """

    values: Floats
    kinds: Integers


@dataclass(frozen=True, slots=True)
class QuadLines:
    """The quads of a text, in the order of their lines."""

    data: bytes
    edges: LineEdges
    times: Integers
    values: Floats
    kinds: Integers
    begins: Booleans
    """Whether each quad is the first of an element."""
    subject_prefix: int = 0
    """How many bytes all subjects are known to have in common."""

    @classmethod
    def of(
        cls,
        data: bytes,
        edges: LineEdges,
        times: Integers,
        objects: Objects,
        subject_prefix: int = 0,
    ) -> QuadLines:
        """Return quads with the edges of their terms, each an element by itself."""
        begins = np.ones(len(times), dtype=np.bool_)
        return cls(data, edges, times, *objects, begins, subject_prefix)

    def by_graph(self) -> QuadLines:
        """Return the same quads; an element begins where the graph is not that of the one before.

        Equal names have equal times.
        """
        begins = np.ones(len(self), dtype=np.bool_)
        begins[1:] = self.times[1:] != self.times[:-1]
        left = np.flatnonzero(~begins)
        if len(left):
            starts, ends = self.edges.objects + 1, self.edges.graphs
            begins[left] = Words(self.data).differ_from_last(starts, ends, left)
        return replace(self, begins=begins)

    def by_number(self, numbers: Integers) -> QuadLines:
        """Return the same quads, given the number of the element of each."""
        begins = np.ones(len(self), dtype=np.bool_)
        begins[1:] = numbers[1:] != numbers[:-1]
        return replace(self, begins=begins)

    @classmethod
    def none(cls) -> QuadLines:
        """Return no quads."""
        empty: Integers = np.empty(0, dtype=np.int64)
        return cls.of(b"", LineEdges(*[empty] * 5), empty, Objects(np.empty(0), empty))

    def __len__(self) -> int:
        return len(self.times)

    def and_quads(self, numbers: Integers, more: QuadLines, more_numbers: Integers) -> QuadLines:
        """Return these quads and those of another text, in the order of their numbers."""
        order = np.argsort(np.concatenate((numbers, more_numbers)), kind="stable")
        edges = self.edges.joined(more.edges, len(self.data)).at(order)
        times = np.concatenate((self.times, more.times))[order]
        values = np.concatenate((self.values, more.values))[order]
        kinds = np.concatenate((self.kinds, more.kinds))[order]
        return QuadLines.of(self.data + more.data, edges, times, Objects(values, kinds))

    def with_times(self, times: Integers) -> QuadLines:
        """Return the same quads at other times."""
        return replace(self, times=times)

    def distinct(self) -> Booleans | None:
        """Return which quads do not repeat a triple of their element; None if all."""
        if self.begins.all():
            return None
        elements: Integers = np.cumsum(self.begins, dtype=np.int64)
        alike = self._alike(elements)
        if not len(alike):
            return None
        texts = zip(elements[alike].tolist(), self._triples(alike, _parse), strict=True)
        seen: dict[tuple[int, str], int] = {}
        firsts = [seen.setdefault(text, at) for at, text in zip(alike.tolist(), texts, strict=True)]
        kept = np.ones(len(self), dtype=np.bool_)
        kept[alike] = np.array(firsts) == alike
        return None if kept.all() else kept

    def _alike(self, elements: Integers) -> Integers:
        """Return the quads that may repeat a triple of their element, or may be repeated."""
        words, edges = Words(self.data), self.edges
        largest = int(np.diff(np.flatnonzero(self.begins), append=len(self)).max())
        subjects = words.at(np.maximum(edges.subjects - 8, edges.starts))
        hashes = mixed((elements.view(np.uint64), subjects))
        alike = _repeated(hashes, largest)
        if not len(alike):
            return alike
        edges = edges.at(alike)
        predicates = words.at(np.maximum(edges.predicates - 8, edges.subjects + 1))
        hashes = mixed((hashes[alike], predicates))
        objects = words.at(np.minimum(edges.predicates + 1, edges.objects - 8))
        sizes = edges.objects - edges.predicates
        are_repeated = np.zeros(len(alike), dtype=np.bool_)
        are_repeated[_repeated(mixed((hashes, objects, sizes.view(np.uint64))), largest)] = True
        unwritten = self._unwritten(alike)
        if len(unwritten):
            # They may be the same term as another text: any object of their subject and predicate.
            again = _repeated(hashes, largest)
            are_repeated[again] |= np.isin(hashes[again], hashes[unwritten])
        return alike[are_repeated]

    def at(self, chosen: Booleans) -> QuadLines:
        """Return some of the quads, among them the first one of each element."""
        return QuadLines(
            self.data,
            self.edges.at(chosen),
            self.times[chosen],
            self.values[chosen],
            self.kinds[chosen],
            self.begins[chosen],
            self.subject_prefix,
        )

    def matching(self, predicate: bytes) -> Integers:
        """Return the indices of the quads with a predicate."""
        starts = self.edges.subjects + 1
        places = np.flatnonzero(self.edges.predicates - starts == len(predicate))
        if not len(places):
            return places
        are_equal = Words(self.data).equal(starts[places], predicate)
        return places if are_equal.all() else places[are_equal]

    def subjects(self, places: Integers) -> list[str]:
        """Return the subjects of some quads, as text."""
        return self._between(self.edges.starts[places], self.edges.subjects[places])

    def objects(self, places: Integers) -> list[str]:
        """Return the objects of some quads, as text."""
        return self._objects(places, _read)

    def triples(self, places: Integers) -> list[str]:
        """Return the triples of some quads, as text."""
        return self._triples(places, _read)

    def _objects(self, places: Integers, read: Callable[[list[str]], list[str]]) -> list[str]:
        texts = self._between(self.edges.predicates[places] + 1, self.edges.objects[places])
        unwritten = self._unwritten(places).tolist()
        for place, text in zip(unwritten, read([texts[n] for n in unwritten]), strict=True):
            texts[place] = text
        return texts

    def _triples(self, places: Integers, read: Callable[[list[str]], list[str]]) -> list[str]:
        texts = self._between(self.edges.starts[places], self.edges.objects[places])
        unwritten = self._unwritten(places)
        values = self._objects(places[unwritten], read)
        for place, value in zip(unwritten.tolist(), values, strict=True):
            subject, predicate, _ = texts[place].split(" ", 2)
            texts[place] = f"{subject} {predicate} {value}"
        return texts

    def fingerprints(self) -> Integers:
        """Return the fingerprint of each triple, by its text in the form of the engine."""
        found = fingerprints(self.data, self.edges.starts, self.edges.objects)
        unwritten = self._unwritten(_EVERY)
        if len(unwritten):
            found[unwritten] = fingerprints_of(self.triples(unwritten))
        return found

    def rows(self, places: Integers) -> list[str]:
        """Return the subjects and objects of some quads, as tab-separated rows."""
        pairs = zip(self.subjects(places), self.objects(places), strict=True)
        return [f"{subject}\t{value}" for subject, value in pairs]

    def subject_codes(self, places: Integers) -> TermColumn:
        """Return the subjects of some quads as codes."""
        starts, ends = self.edges.starts[places], self.edges.subjects[places]
        prefix = self.subject_prefix
        if prefix and len(places):
            codes, firsts = Words(self.data).codes(starts + prefix, ends)
        else:
            codes, firsts = self._codes(starts, ends)
        return TermColumn(codes, self.subjects(places[firsts]))

    def object_codes(self, places: Integers) -> TermColumn:
        """Return the objects of some quads as codes."""
        starts, ends = self.edges.predicates[places] + 1, self.edges.objects[places]
        codes, firsts = self._codes(starts, ends)
        texts = self.objects(places[firsts])
        if not len(self._unwritten(places)):
            return TermColumn(codes, texts)
        known: dict[str, int] = {}  # unread literals of different texts may be the same term
        numbers = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)
        return TermColumn(numbers[codes], list(known))

    def _codes(self, starts: Integers, ends: Integers) -> tuple[Integers, Integers]:
        """Return the number of each distinct term, and an example of each."""
        is_long = ends - starts >= len("<http://")
        if is_long.all():
            return Words(self.data).codes(starts, ends) if len(starts) else (starts, starts)
        codes = np.empty(len(starts), dtype=np.int64)
        long = np.flatnonzero(is_long)
        codes[long], firsts = Words(self.data).codes(starts[long], ends[long])
        short, known = np.flatnonzero(~is_long), dict[str, tuple[int, int]]()
        places = zip(short.tolist(), self._between(starts[short], ends[short]), strict=True)
        found = [known.setdefault(text, (len(known), place)) for place, text in places]
        codes[short] = [len(firsts) + number for number, _ in found]
        return codes, np.r_[long[firsts], [place for _, place in known.values()]]

    def _unwritten(self, places: Integers | slice) -> Integers:
        """Return which quads have an object that may have another form than the engine's."""
        firsts = np.frombuffer(self.data, dtype=np.uint8)[self.edges.predicates[places] + 1]
        return np.flatnonzero((self.kinds[places] == UNREAD) | _IS_BARE[firsts])

    def _between(self, starts: Integers, ends: Integers) -> list[str]:
        data = self.data
        edges = zip(starts.tolist(), ends.tolist(), strict=True)
        if len(starts) > _MANY and data.isascii():
            text = data.decode("ascii")
            return [text[start:end] for start, end in edges]
        return [data[start:end].decode() for start, end in edges]


def _repeated(hashes: NDArray[np.uint64], most: int) -> Integers:
    """Return the places of hashes that occur again, less than `most` places away."""
    are_alike = np.zeros(len(hashes), dtype=np.bool_)
    if most <= _FEW:
        for distance in range(1, most):
            pairs = np.flatnonzero(hashes[distance:] == hashes[:-distance])
            are_alike[pairs] = are_alike[pairs + distance] = True
    else:
        order = np.argsort(hashes)
        pairs = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
        are_alike[order[pairs]] = are_alike[order[pairs + 1]] = True
    return np.flatnonzero(are_alike)


class ReadQuads(NamedTuple):
    """Quads as columns, and the dead letters between them, with the index of the quad behind."""

    lines: QuadLines
    letters: list[tuple[int, DeadLetter]]


@runtime_checkable
class InColumns(Protocol):
    """A source whose whole input can be read as columns."""

    def read_columns(self, rename: Rename) -> ReadQuads | None:
        """Read the input at once; None if it must be read as elements."""


def _read(texts: Sequence[str]) -> list[str]:
    """Return literals in the form of the engine."""
    return [str(stored_literal(literal)) for literal in _literals(texts)]


def _parse(texts: Sequence[str]) -> list[str]:
    """Return literals without escapes, and with a datatype."""
    return list(map(str, _literals(texts)))


def _literals(texts: Sequence[str]) -> list[ox.Literal]:
    if not texts:
        return []
    lines = "".join([f"<urn:s> <urn:p> {text} .\n" for text in texts])
    objects = [triple.object for triple in ox.parse(lines, ox.RdfFormat.TURTLE)]
    return [each for each in objects if isinstance(each, ox.Literal)]
