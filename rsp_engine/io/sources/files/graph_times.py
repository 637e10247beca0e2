"""Timestamps of named graphs, for the formats in which a graph is an element.

The time of a graph is stated by a `prov:generatedAtTime` triple about it in the default graph, or
otherwise by the digits at the end of its name, in milliseconds or another unit:

    <http://example.org/g/1000>    1000, by its name
    _:g                            unknown until `_:g prov:generatedAtTime ...` is read

A stated time applies to the following graphs of that name, until another time is stated. A graph
without digits is buffered until its time is stated. A graph with digits is not, so a time that is
stated after it is too late. At the end of the stream, graphs without a time and times without a
graph become dead letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from pyoxigraph import BlankNode, NamedNode
from pyoxigraph import Literal as RdfLiteral

from rsp_engine.io.sources.times import TIME_UNITS, TimeUnit, from_iso, from_number
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import DefaultGraph, Triple

    from rsp_engine.io.sources.spec import Spec

__all__ = [
    "GENERATED_AT",
    "GraphName",
    "GraphPiece",
    "GraphTimeRule",
    "GraphTimes",
    "time_in",
    "time_of",
]

GraphName: TypeAlias = NamedNode | BlankNode


GENERATED_AT = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
MOST_WAITING = 1_000_000
"""Most triples that are buffered without a time, and most stated times without a graph."""

MOST_REMEMBERED = 10_000
"""Most stated times that are kept after their first use, in case their graph occurs again."""

_DIGITS = "0123456789"
_SAFE_DIGITS = 18  # this many digits always fit into a signed 64-bit integer
_XSD = "http://www.w3.org/2001/XMLSchema#"
_INSTANTS = {_XSD + name for name in ("dateTime", "dateTimeStamp")}
_INTEGERS = {
    _XSD + name for name in ("integer", "long", "int", "nonNegativeInteger", "unsignedLong")
}


class GraphTimeRule(NamedTuple):
    """Where the time of a graph is taken from, and what the digits of its name count."""

    by: Literal["any", "iri", "prov"] = "any"
    unit: TimeUnit = "ms"

    @classmethod
    def of(cls, spec: Spec) -> GraphTimeRule:
        """Return the rule of the options of a source."""
        by, unit = spec.choice("time", ("any", "iri", "prov")), spec.choice("unit", TIME_UNITS)
        return cls(cast("Any", by), cast("Any", unit))

    def time_by_name(self, name: GraphName | DefaultGraph) -> int | None:
        """Return the time in the name of a graph; `None` if it has none.

        >>> GraphTimeRule(unit="s").time_by_name(NamedNode("http://example.org/g/1000"))
        1000000
        """
        if not isinstance(name, NamedNode):
            return None
        text = name.value
        digits = text[len(text.rstrip(_DIGITS)) :]
        if self.unit == "ms" and 0 < len(digits) <= _SAFE_DIGITS:
            return int(digits)
        try:
            return from_number(digits, self.unit) if digits else None
        except ValueError:  # too many digits: a key, not a time
            return None


class GraphPiece(NamedTuple):
    """Triples of one graph, with their position and their bytes in the source."""

    triples: tuple[Triple, ...]
    position: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class _StatedTime:
    """A `prov:generatedAtTime` of a graph, with its position and its bytes."""

    time: int
    position: int
    raw: bytes


class GraphTimes:
    """Assigns timestamps to graphs, as soon as they are known."""

    def __init__(self, source: str, rule: GraphTimeRule | None = None) -> None:
        self._source = source
        self._rule = rule or GraphTimeRule()
        self._by = self._rule.by
        self._stated: dict[GraphName, _StatedTime] = {}
        self._used: dict[GraphName, int] = {}
        self._waiting: dict[GraphName, list[GraphPiece]] = {}
        self._waiting_triples = 0
        self.has_memory = False
        """Whether times or graphs were buffered, so that the split cannot be read on its own."""

    def graph(self, name: GraphName, piece: GraphPiece) -> Sequence[Element | DeadLetter]:
        """Add a graph; return the resulting elements and dead letters."""
        time = self._time_of(name)
        if time is not None:
            return (self._element(time, piece),)
        if self._by == "iri":
            reason = f"the name of its graph, {name}, does not end in a time"
            return (self._set_aside(piece, reason),)
        self.has_memory = True
        self._waiting.setdefault(name, []).append(piece)
        self._waiting_triples += len(piece.triples)
        return list(self._drop_oldest())

    def by_name(self, names: Iterable[GraphName | DefaultGraph]) -> list[int] | None:
        """Return the times of graphs if all of them follow from the names; otherwise `None`.

        Such graphs are elements at once, and do not change the state.
        """
        if self._stated or self._used or self._by == "prov":
            return None
        times = list(map(self._rule.time_by_name, names))
        return None if None in times else cast("list[int]", times)

    def statement(
        self, triple: Triple, position: int, raw: bytes
    ) -> Iterator[Element | DeadLetter]:
        """Add a triple of the default graph; yield the elements that were waiting for it."""
        name = triple.subject
        if triple.predicate != GENERATED_AT or not isinstance(name, NamedNode | BlankNode):
            reason = "it is in no graph, and does not state the time of one"
            yield DeadLetter(self._source, position, raw, reason)
        elif self._by != "iri":
            try:
                stated = _StatedTime(time_in(triple.object), position, raw)
            except ValueError as error:
                reason = f"the time that it gives {error}"
                yield DeadLetter(self._source, position, raw, reason)
            else:
                yield from self._state(name, stated)

    def end(self) -> Iterator[DeadLetter]:
        """Yield what is still buffered as dead letters, in the order of positions."""
        letters = [
            self._set_aside(piece, self._no_time(name))
            for name, pieces in self._waiting.items()
            for piece in pieces
        ]
        letters.extend(self._unused(stated) for stated in self._stated.values())
        yield from sorted(letters, key=lambda letter: letter.position)

    def _time_of(self, name: GraphName) -> int | None:
        if not self._stated and not self._used and self._by != "prov":
            return self._rule.time_by_name(name)
        if name in self._stated:
            self._use(name, self._stated.pop(name).time)
        time = self._used.get(name)
        return self._rule.time_by_name(name) if time is None and self._by != "prov" else time

    def _state(self, name: GraphName, stated: _StatedTime) -> Iterator[Element | DeadLetter]:
        self.has_memory = True
        pieces = self._waiting.pop(name, ())
        if pieces:
            self._use(name, stated.time)
        for piece in pieces:
            self._waiting_triples -= len(piece.triples)
            yield self._element(stated.time, piece)
        if self._used.get(name) == stated.time:
            return
        before = self._stated.pop(name, stated)
        if before.time != stated.time:
            yield self._unused(before)
        self._stated[name] = stated
        if len(self._stated) > MOST_WAITING:
            yield self._unused(self._stated.pop(next(iter(self._stated))))

    def _use(self, name: GraphName, time: int) -> None:
        self._used.pop(name, None)
        self._used[name] = time
        if len(self._used) > MOST_REMEMBERED:
            del self._used[next(iter(self._used))]

    def _drop_oldest(self) -> Iterator[DeadLetter]:
        while self._waiting_triples > MOST_WAITING:
            name = next(iter(self._waiting))
            for piece in self._waiting.pop(name):
                self._waiting_triples -= len(piece.triples)
                yield self._set_aside(piece, f"no time of its graph, {name}, came in good time")

    def _no_time(self, name: GraphName) -> str:
        reason = f"no prov:generatedAtTime is given for its graph, {name}"
        return reason if self._by == "prov" else f"{reason}, and the name does not end in a time"

    def _unused(self, stated: _StatedTime) -> DeadLetter:
        reason = "no graph of this name follows"
        return DeadLetter(self._source, stated.position, stated.raw, reason)

    def _element(self, time: int, piece: GraphPiece) -> Element:
        return Element(time, piece.triples, self._source, piece.position, piece.raw)

    def _set_aside(self, piece: GraphPiece, reason: str) -> DeadLetter:
        return DeadLetter(self._source, piece.position, piece.raw, reason)


def time_of(triples: Iterable[Triple]) -> int:
    """Return the time of the only `prov:generatedAtTime` in the triples.

    Raise `ValueError` with the reason if there is none, or if there are several.
    """
    times = {triple.object for triple in triples if triple.predicate == GENERATED_AT}
    if len(times) != 1:
        amount = "nothing" if not times else "more than one thing"
        raise ValueError(f"the time is unclear: {amount} is a prov:generatedAtTime in it")
    try:
        return time_in(times.pop())
    except ValueError as error:
        raise ValueError(f"its time {error}") from None


def time_in(term: object) -> int:
    """Return a term as a timestamp; raise `ValueError` if it is none."""
    match term:
        case RdfLiteral(datatype=datatype) if datatype.value in _INSTANTS:
            return from_iso(term.value)
        case RdfLiteral(datatype=datatype) if datatype.value in _INTEGERS:
            return from_number(term.value)
        case _:
            raise ValueError(f"is neither an xsd:dateTime nor an xsd:integer: {term}")
