"""When a named graph happened, for the formats in which a graph is an element.

A graph's time is said by a `prov:generatedAtTime` triple about it in the default graph, or else
by the digits at the end of its name, in milliseconds:

    <http://example.org/g/1000>    1000, by its name
    _:g                            not known until `_:g prov:generatedAtTime ...` is read

A time that is said counts for the graphs of that name that follow it, until another is said. A
graph without digits waits for its time; one with digits does not, so a time that is said after it
has come too late. What still waits at the end is set aside, and what was said in vain too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from pyoxigraph import BlankNode, NamedNode
from pyoxigraph import Literal as RdfLiteral

from rsp_engine.io.sources.times import from_iso, from_number
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import DefaultGraph, Triple

__all__ = ["GENERATED_AT", "GraphName", "GraphTimes", "TimesBy", "time_in", "time_of"]

GraphName: TypeAlias = NamedNode | BlankNode
TimesBy = Literal["any", "iri", "prov"]

GENERATED_AT = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
MOST_WAITING = 1_000_000
"""How many triples can wait for their time, and how many times for their graph."""

MOST_REMEMBERED = 10_000
"""How many times are remembered after they have been used, in case their graph comes again."""

_DIGITS = "0123456789"
_SURELY_A_TIME = 18  # digits that fit into a signed 64-bit integer, whatever they are
_XSD = "http://www.w3.org/2001/XMLSchema#"
_INSTANTS = {_XSD + name for name in ("dateTime", "dateTimeStamp")}
_INTEGERS = {
    _XSD + name for name in ("integer", "long", "int", "nonNegativeInteger", "unsignedLong")
}


class Piece(NamedTuple):
    """Triples as they were written: where, and how."""

    triples: tuple[Triple, ...]
    position: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class _Said:
    """A time that was said of a graph, and where."""

    time: int
    position: int
    raw: bytes


class GraphTimes:
    """Gives each graph its time, as soon as it is known."""

    def __init__(self, source: str, by: TimesBy = "any") -> None:
        self._source = source
        self._by = by
        self._said: dict[GraphName, _Said] = {}
        self._used: dict[GraphName, int] = {}
        self._waiting: dict[GraphName, list[Piece]] = {}
        self._waiting_triples = 0
        self.has_memory = False
        """Whether what was read so far may tell the time of what follows, or the other way."""

    def graph(self, name: GraphName, piece: Piece) -> Sequence[Element | DeadLetter]:
        """Take a graph; return what has become an element, or can no longer become one."""
        time = self._time_of(name)
        if time is not None:
            return (self._element(time, piece),)
        if self._by == "iri":
            reason = f"the name of its graph, {name}, does not end in a time"
            return (self._set_aside(piece, reason),)
        self.has_memory = True
        self._waiting.setdefault(name, []).append(piece)
        self._waiting_triples += len(piece.triples)
        return list(self._give_up_waiting())

    def by_name(self, names: Iterable[GraphName | DefaultGraph]) -> list[int] | None:
        """Return the times of graphs if the names alone tell them, all of them, and else nothing.

        Such graphs are elements at once, and leave no trace here.
        """
        if self._said or self._used or self._by == "prov":
            return None
        times = list(map(_time_by_name, names))
        return None if None in times else cast("list[int]", times)

    def statement(
        self, triple: Triple, position: int, raw: bytes
    ) -> Iterator[Element | DeadLetter]:
        """Take a triple of the default graph; return the elements that waited for it."""
        name = triple.subject
        if triple.predicate != GENERATED_AT or not isinstance(name, NamedNode | BlankNode):
            reason = "it is in no graph, and not about the time of one"
            yield DeadLetter(self._source, position, raw, reason)
        elif self._by != "iri":
            try:
                said = _Said(time_in(triple.object), position, raw)
            except ValueError as error:
                reason = f"the time that it gives {error}"
                yield DeadLetter(self._source, position, raw, reason)
            else:
                yield from self._say(name, said)

    def end(self) -> Iterator[DeadLetter]:
        """Return what still waits, in the order of its places."""
        letters = [
            self._set_aside(piece, self._no_time(name))
            for name, pieces in self._waiting.items()
            for piece in pieces
        ]
        letters.extend(self._said_in_vain(said) for said in self._said.values())
        yield from sorted(letters, key=lambda letter: letter.position)

    def _time_of(self, name: GraphName) -> int | None:
        if not self._said and not self._used and self._by != "prov":
            return _time_by_name(name)
        if name in self._said:
            self._use(name, self._said.pop(name).time)
        time = self._used.get(name)
        return _time_by_name(name) if time is None and self._by != "prov" else time

    def _say(self, name: GraphName, said: _Said) -> Iterator[Element | DeadLetter]:
        self.has_memory = True
        pieces = self._waiting.pop(name, ())
        if pieces:
            self._use(name, said.time)
        for piece in pieces:
            self._waiting_triples -= len(piece.triples)
            yield self._element(said.time, piece)
        if self._used.get(name) == said.time:
            return
        before = self._said.pop(name, said)
        if before.time != said.time:
            yield self._said_in_vain(before)
        self._said[name] = said
        if len(self._said) > MOST_WAITING:
            yield self._said_in_vain(self._said.pop(next(iter(self._said))))

    def _use(self, name: GraphName, time: int) -> None:
        self._used.pop(name, None)
        self._used[name] = time
        if len(self._used) > MOST_REMEMBERED:
            del self._used[next(iter(self._used))]

    def _give_up_waiting(self) -> Iterator[DeadLetter]:
        while self._waiting_triples > MOST_WAITING:
            name = next(iter(self._waiting))
            for piece in self._waiting.pop(name):
                self._waiting_triples -= len(piece.triples)
                yield self._set_aside(piece, f"no time of its graph, {name}, came in good time")

    def _no_time(self, name: GraphName) -> str:
        said = f"no prov:generatedAtTime is given for its graph, {name}"
        return said if self._by == "prov" else f"{said}, and the name does not end in a time"

    def _said_in_vain(self, said: _Said) -> DeadLetter:
        reason = "no graph of this name follows that could take its time from it"
        return DeadLetter(self._source, said.position, said.raw, reason)

    def _element(self, time: int, piece: Piece) -> Element:
        return Element(time, piece.triples, self._source, piece.position, piece.raw)

    def _set_aside(self, piece: Piece, reason: str) -> DeadLetter:
        return DeadLetter(self._source, piece.position, piece.raw, reason)


def _time_by_name(name: GraphName | DefaultGraph) -> int | None:
    if not isinstance(name, NamedNode):
        return None
    text = name.value
    digits = text[len(text.rstrip(_DIGITS)) :]
    if 0 < len(digits) <= _SURELY_A_TIME:
        return int(digits)
    try:
        return from_number(digits) if digits else None
    except ValueError:  # digits without end are a key, not a time
        return None


def time_of(triples: Iterable[Triple]) -> int:
    """Return the one instant that triples say something was generated at.

    Raise `ValueError` with the reason if they say none, or several.
    """
    said = {triple.object for triple in triples if triple.predicate == GENERATED_AT}
    if len(said) != 1:
        told = "nothing" if not said else "more than one thing"
        raise ValueError(f"the time is unclear: {told} is a prov:generatedAtTime in it")
    try:
        return time_in(said.pop())
    except ValueError as error:
        raise ValueError(f"its time {error}") from None


def time_in(term: object) -> int:
    """Return the instant that a term says; raise `ValueError` if it says none."""
    match term:
        case RdfLiteral(datatype=datatype) if datatype.value in _INSTANTS:
            return from_iso(term.value)
        case RdfLiteral(datatype=datatype) if datatype.value in _INTEGERS:
            return from_number(term.value)
        case _:
            raise ValueError(f"is neither an xsd:dateTime nor an xsd:integer: {term}")
