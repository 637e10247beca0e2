"""What a query answers, worked out the long way.

Nothing here is clever, and nothing is shared with the engine: windows are listed one by one, their
content is found by comparing every element with their edges, and rdflib answers the query over one
named graph per window. What the words mean is said in comments, each once.

    arrivals  ->  takings (who was in time for which window)  ->  closings  ->  evaluations
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import rdflib
from rdflib.plugins.sparql import prepareQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

EX = "http://example.org/"
MANY = 80
"""More windows than any stream of the tests reaches."""

Streams = dict[str, list[list["Item"]]]
"""The sources of each stream, and the items of each source in the order in which they are read."""


@dataclass(frozen=True)
class Item:
    """An element: its time, and its triples in the short forms of Turtle."""

    timestamp: int
    triples: tuple[tuple[str, str, str], ...]

    def text(self) -> str:
        return f"PREFIX : <{EX}> " + " ".join(f"{s} {p} {o} ." for s, p, o in self.triples)


@dataclass(frozen=True)
class Time:
    """`[RANGE range STEP step]`."""

    name: str
    stream: str
    range: int
    step: int

    def text(self) -> str:
        return f"[RANGE {self.range}ms STEP {self.step}ms]"


@dataclass(frozen=True)
class Count:
    """`[ELEMENTS size STEP step]`, or of TRIPLES."""

    name: str
    stream: str
    size: int
    step: int
    unit: Literal["ELEMENTS", "TRIPLES"] = "ELEMENTS"

    def text(self) -> str:
        return f"[{self.unit} {self.size} STEP {self.step}]"


@dataclass(frozen=True)
class Setting:
    """All that a user decides."""

    windows: tuple[Time | Count, ...]
    t0: int = 0
    bounds: Literal["(]", "[)"] = "(]"
    report: Literal["nonempty", "every"] = "nonempty"
    r2s: Literal["RSTREAM", "ISTREAM", "DSTREAM"] = "RSTREAM"
    max_delay: int = 0

    def is_over(self, close: int, watermark: float) -> bool:
        """`(o, c]` closes when the watermark is more than c, `[o, c)` when it is at least c."""
        return watermark > close if self.bounds == "(]" else watermark >= close

    def edges(self, window: Time, index: int) -> tuple[int, int]:
        start = self.t0 + index * window.step
        return start, start + window.range

    def holds(self, window: Time, index: int, timestamp: int) -> bool:
        start, end = self.edges(window, index)
        if self.bounds == "(]":
            return start < timestamp <= end
        return start <= timestamp < end


class Query(NamedTuple):
    """`select` and `tail` stand around the clause FROM and the pattern."""

    select: str
    where: str
    tail: str = ""

    def rspql(self, setting: Setting) -> str:
        windows = (
            f"FROM NAMED WINDOW :{w.name} ON :{w.stream} {w.text()}" for w in setting.windows
        )
        lines = [
            f"PREFIX : <{EX}>",
            f"REGISTER {setting.r2s} :answer AS",
            self.select,
            *windows,
            f"WHERE {{ {self.where} }}",
            self.tail,
        ]
        return "\n".join(lines)

    def sparql(self) -> str:
        where = self.where.replace("WINDOW", "GRAPH")
        return f"PREFIX : <{EX}> {self.select} WHERE {{ {where} }} {self.tail}"


Row = frozenset[tuple[str, Any]]


class Evaluation(NamedTuple):
    open: int
    close: int
    rows: Counter[Row]


@dataclass
class Outcome:
    """The evaluations of a query, and the elements that were set aside, with the reason."""

    evaluations: list[Evaluation] = field(default_factory=list)
    aside: list[tuple[Item, str]] = field(default_factory=list)


class _Arrival(NamedTuple):
    number: int
    stream: str
    item: Item
    watermark: float


class _Closing(NamedTuple):
    """A window that is closed: when, its edges, and what it holds."""

    instant: int
    open: int
    close: int
    content: list[_Arrival]


def answers(setting: Setting, streams: Streams, query: Query) -> Outcome:
    """Return the whole outcome of a query over streams that end."""
    arrived, reached = _arrivals(setting, streams)
    outcome = Outcome()
    for arrival in arrived:
        _judge(setting, arrival, outcome)
    closings = _closings(setting, arrived, reached)
    before: Counter[Row] = Counter()
    for instant, shown in _reported(setting, closings):
        rows = _rows(setting, shown, query)
        first = next(closing for closing in shown if closing.instant == instant)
        leaving = {"RSTREAM": rows, "ISTREAM": rows - before, "DSTREAM": before - rows}
        kept = Counter(map(_anonymous, leaving[setting.r2s].elements()))
        outcome.evaluations.append(Evaluation(first.open, first.close, kept))
        before = rows
    return outcome


def _arrivals(setting: Setting, streams: Streams) -> tuple[list[_Arrival], float]:
    """Return the elements as they arrive, each with the watermark that it finds.

    Of all sources, the one whose next element is earliest is read. The watermark of a stream is
    its latest time less the delay, that of a query the least of its streams; a stream that has
    ended holds nothing up. The second value is the last watermark before everything has ended.
    """
    left = [(stream, list(items)) for stream, sources in streams.items() for items in sources]
    marks: dict[str, float] = {
        stream: -inf if any(sources) else inf for stream, sources in streams.items()
    }
    arrived: list[_Arrival] = []
    reached = -inf
    while any(items for _, items in left):
        stream, items = min((s for s in left if s[1]), key=lambda s: s[1][0].timestamp)
        item = items.pop(0)
        marks[stream] = max(marks[stream], item.timestamp - setting.max_delay)
        watermark = min(marks.values())
        arrived.append(_Arrival(len(arrived), stream, item, watermark))
        reached = max(reached, watermark)
        if not any(more for name, more in left if name == stream):
            marks[stream] = inf
            if min(marks.values()) < inf:
                reached = max(reached, min(marks.values()))
    return arrived, reached


def _judge(setting: Setting, arrival: _Arrival, outcome: Outcome) -> None:
    """Put an element that no window takes where it belongs.

    It is late if it has windows and all of them were closed when it arrived. One that is in no
    window at all is before t0, or it falls between two windows, which is no fault.
    """
    closed: list[bool] = []
    for window in setting.windows:
        if window.stream != arrival.stream:
            continue
        if isinstance(window, Count):
            closed.append(arrival.item.timestamp < arrival.watermark)
            continue
        closed += (
            setting.is_over(setting.edges(window, index)[1], arrival.watermark)
            for index in range(MANY)
            if setting.holds(window, index, arrival.item.timestamp)
        )
    time = arrival.item.timestamp
    if closed:
        if all(closed):
            outcome.aside.append((arrival.item, "late"))
    elif time < setting.t0 or (time == setting.t0 and setting.bounds == "(]"):
        outcome.aside.append((arrival.item, "before t0"))


def _closings(setting: Setting, arrived: list[_Arrival], reached: float) -> list[list[_Closing]]:
    """Return, for each window of the query, what it closes, in order.

    A watermark closes windows, empty ones too; the end of the streams closes those that hold an
    element, and so all before the last of them.
    """
    found = [
        list(
            _timed(setting, window, arrived)
            if isinstance(window, Time)
            else _counted(setting, window, arrived)
        )
        for window in setting.windows
    ]
    last = max((c.instant for closings in found for c in closings if c.content), default=-inf)
    return [
        [c for c in closings if c.instant <= last or setting.is_over(c.instant, reached)]
        for closings in found
    ]


def _timed(setting: Setting, window: Time, arrived: list[_Arrival]) -> Iterator[_Closing]:
    for index in range(MANY):
        start, end = setting.edges(window, index)
        content = [
            a
            for a in arrived
            if a.stream == window.stream
            and setting.holds(window, index, a.item.timestamp)
            and not setting.is_over(end, a.watermark)
        ]
        yield _Closing(end, start, end, content)


def _counted(setting: Setting, window: Count, arrived: list[_Arrival]) -> Iterator[_Closing]:
    """Cut the elements, or their triples, into windows, in the order of time and of terms.

    What is before the watermark when it arrives is late. The end closes a window that is not full
    only where it is the one window of a query.
    """
    mine = [a for a in arrived if a.stream == window.stream and a.item.timestamp >= a.watermark]
    mine.sort(key=lambda a: (a.item.timestamp, sorted(map(_ntriples, set(a.item.triples)))))
    if window.unit == "TRIPLES":
        mine = [
            a._replace(item=Item(a.item.timestamp, (triple,)))
            for a in mine
            for triple in sorted(set(a.item.triples), key=_ntriples)
        ]
    for start in range(0, len(mine), window.step):
        content = mine[start : start + window.size]
        times = [a.item.timestamp for a in content]
        if len(content) < window.size and len(setting.windows) > 1:
            return
        yield _Closing(times[-1], times[0], times[-1], content)


def _ntriples(triple: tuple[str, str, str]) -> str:
    return " ".join(_term(short, {}).n3() for short in triple)


def _reported(
    setting: Setting, closings: list[list[_Closing]]
) -> Iterator[tuple[int, Sequence[_Closing]]]:
    """Yield the instants of evaluation, and the content of each window then.

    `nonempty`: one of the windows holds something, or with ISTREAM and DSTREAM the evaluation
    before did. `every`: all instants from the first to the last at which one holds something.
    """
    shown = list(_instants(closings))
    full = [place for place, (_, windows) in enumerate(shown) if any(w.content for w in windows)]
    before = False
    for place, (instant, windows) in enumerate(shown):
        is_full = place in full
        if setting.report == "every":
            last = max((c.instant for w in closings for c in w if c.content), default=-inf)
            due = bool(full) and full[0] <= place and instant <= last
        else:
            due = is_full or (setting.r2s != "RSTREAM" and before)
        if due:
            yield instant, windows
            before = is_full


def _instants(closings: list[list[_Closing]]) -> Iterator[tuple[int, Sequence[_Closing]]]:
    """Yield each instant at which a window closes, with the latest that each has closed.

    A query with one window is evaluated for each of its windows. With several it is evaluated
    once per instant, and not before each has closed once.
    """
    if len(closings) == 1:
        yield from ((closing.instant, [closing]) for closing in closings[0])
        return
    for instant in sorted({c.instant for window in closings for c in window}):
        latest = [[c for c in window if c.instant <= instant][-1:] for window in closings]
        if all(latest):
            yield instant, [closing for [closing] in latest]


def _rows(setting: Setting, shown: Sequence[_Closing], query: Query) -> Counter[Row]:
    dataset = rdflib.Dataset()
    for window, closing in zip(setting.windows, shown, strict=True):
        graph = dataset.graph(rdflib.URIRef(EX + window.name))
        for arrival in closing.content:
            # A blank node belongs to its element: one element has one name for it, in all windows.
            names = {"_:": rdflib.BNode(f"n{arrival.number}")}
            for triple in arrival.item.triples:
                graph.add(tuple(_term(short, names) for short in triple))  # type: ignore[arg-type]
    result = dataset.query(_prepared(query.sparql()))
    rows = (_row(binding) for binding in result.bindings)
    # Where there is no group at all, rdflib gives one row with nothing in it.
    return Counter(row for row in rows if row or "GROUP BY" not in query.tail)


_prepared = cache(prepareQuery)


def _term(short: str, names: Mapping[str, rdflib.BNode]) -> rdflib.term.Identifier:
    if short.startswith(":"):
        return rdflib.URIRef(EX + short[1:])
    if short.startswith("_:"):
        return names.get("_:", rdflib.BNode("n"))
    if short.startswith('"'):
        return rdflib.Literal(short.strip('"'))
    kind = "double" if "e" in short else "decimal" if "." in short else "integer"
    return rdflib.Literal(short, datatype=rdflib.XSD[kind])


def _row(binding: Mapping[rdflib.Variable, Any]) -> Row:
    return frozenset((str(name), plain(term)) for name, term in binding.items())


NUMBERS = frozenset(f"{rdflib.XSD}{kind}" for kind in ("integer", "decimal", "double"))


def plain(term: rdflib.term.Identifier) -> tuple[str, Any]:
    """Return a term so that two engines agree on it: a number by its value and its type."""
    if isinstance(term, rdflib.Literal):
        kind = str(term.datatype or rdflib.XSD.string)
        return kind, float(term) if kind in NUMBERS else str(term)
    return type(term).__name__, str(term)


def _anonymous(row: Row) -> Row:
    return frozenset((n, (k, "" if k == "BNode" else value)) for n, (k, value) in row)
