"""Windows that are evaluated, and their content: every element is compared with every edge.

    arrivals  ->  who was in time for which window  ->  closings  ->  evaluations

Each rule of the semantics is in the docstring of the function that implements it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from tests.differential.terms import EX, Triple, written

MANY = 80
"""More windows than any stream of the tests reaches."""


@dataclass(frozen=True, slots=True)
class Element:
    """A set of triples with one timestamp; the nodes of each element have labels of their own."""

    timestamp: int
    triples: frozenset[Triple]

    def lines(self) -> list[str]:
        """Return the triples as N-Triples without their dots, in term order."""
        return sorted(" ".join(map(written, triple)) for triple in self.triples)


@dataclass(frozen=True, slots=True)
class Time:
    """`[RANGE range STEP step]`."""

    name: str
    stream: str
    range: int
    step: int

    def text(self) -> str:
        return f"[RANGE {self.range}ms STEP {self.step}ms]"


@dataclass(frozen=True, slots=True)
class Count:
    """`[ELEMENTS size STEP step]`, or of TRIPLES."""

    name: str
    stream: str
    size: int
    step: int
    unit: Literal["ELEMENTS", "TRIPLES"] = "ELEMENTS"

    def text(self) -> str:
        return f"[{self.unit} {self.size} STEP {self.step}]"


Streams = Mapping[str, Sequence[Sequence[Element]]]
"""The sources of each stream, and the elements of each source in the order of reading."""


@dataclass(frozen=True, slots=True)
class Setting:
    """All that a user decides about windows."""

    windows: tuple[Time | Count, ...]
    t0: int = 0
    bounds: Literal["(]", "[)"] = "(]"
    report: Literal["nonempty", "every"] = "nonempty"
    r2s: Literal["RSTREAM", "ISTREAM", "DSTREAM"] = "RSTREAM"
    max_delay: int = 0

    def text(self) -> str:
        """Return the clauses of a query that declare the windows."""
        return "\n".join(
            f"FROM NAMED WINDOW :{w.name} ON STREAM :{w.stream} {w.text()}" for w in self.windows
        )

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


class Arrival(NamedTuple):
    """An element of a stream, and the watermark that it finds."""

    stream: str
    element: Element
    watermark: float


class Closing(NamedTuple):
    """A window that is closed: when, its edges, and what it holds."""

    instant: int
    open: int
    close: int
    content: Sequence[Element]


class Evaluation(NamedTuple):
    """An instant at which the query is evaluated, its edges, and what each of its windows holds."""

    open: int
    close: int
    contents: Sequence[Sequence[Element]]


def evaluations(setting: Setting, streams: Streams) -> Iterator[Evaluation]:
    """Yield the evaluations of a query over streams that end.

    The edges are those of the first window that closes at the instant.
    """
    arrived, reached = _arrivals(setting, streams)
    for instant, shown in _reported(setting, _closings(setting, arrived, reached)):
        first = next(closing for closing in shown if closing.instant == instant)
        yield Evaluation(first.open, first.close, [closing.content for closing in shown])


def set_aside(setting: Setting, streams: Streams) -> list[tuple[Element, str]]:
    """Return the elements that no window takes, each with the reason."""
    found = ((a.element, _reason(setting, a)) for a in _arrivals(setting, streams)[0])
    return [(element, reason) for element, reason in found if reason is not None]


def _arrivals(setting: Setting, streams: Streams) -> tuple[list[Arrival], float]:
    """Return the elements as they arrive, each with the watermark that it finds.

    Of all sources, the one whose next element is earliest is read. The watermark of a stream is
    its latest time less the delay, that of a query the least of its streams; a stream that has
    ended holds nothing up. The second value is the last watermark before everything has ended.
    """
    left = [(stream, list(found)) for stream, sources in streams.items() for found in sources]
    marks: dict[str, float] = {
        stream: -inf if any(sources) else inf for stream, sources in streams.items()
    }
    arrived: list[Arrival] = []
    reached = -inf
    while any(items for _, items in left):
        stream, items = min((s for s in left if s[1]), key=lambda s: s[1][0].timestamp)
        element = items.pop(0)
        marks[stream] = max(marks[stream], element.timestamp - setting.max_delay)
        watermark = min(marks.values())
        arrived.append(Arrival(stream, element, watermark))
        reached = max(reached, watermark)
        if not any(more for name, more in left if name == stream):
            marks[stream] = inf
            if min(marks.values()) < inf:
                reached = max(reached, min(marks.values()))
    return arrived, reached


def _reason(setting: Setting, arrival: Arrival) -> str | None:
    """Say why no window takes an element, if it is set aside for that.

    It is late if it has windows and all of them were closed when it arrived. One that is in no
    window at all is before t0, or it falls between two windows, which is no fault.
    """
    time = arrival.element.timestamp
    closed: list[bool] = []
    for window in setting.windows:
        if window.stream != arrival.stream:
            continue
        if isinstance(window, Count):
            closed.append(time < arrival.watermark)
            continue
        closed += (
            setting.is_over(setting.edges(window, index)[1], arrival.watermark)
            for index in range(MANY)
            if setting.holds(window, index, time)
        )
    if closed:
        return "late" if all(closed) else None
    is_before = time < setting.t0 or (time == setting.t0 and setting.bounds == "(]")
    return "before t0" if is_before else None


def _closings(setting: Setting, arrived: Sequence[Arrival], reached: float) -> list[list[Closing]]:
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


def _timed(setting: Setting, window: Time, arrived: Sequence[Arrival]) -> Iterator[Closing]:
    for index in range(MANY):
        start, end = setting.edges(window, index)
        content = [
            arrival.element
            for arrival in arrived
            if arrival.stream == window.stream
            and setting.holds(window, index, arrival.element.timestamp)
            and not setting.is_over(end, arrival.watermark)
        ]
        yield Closing(end, start, end, content)


def _counted(setting: Setting, window: Count, arrived: Sequence[Arrival]) -> Iterator[Closing]:
    """Cut the elements, or their triples, into windows, in the order of time and of terms.

    What is before the watermark when it arrives is late. The end closes a window that is not full
    only where it is the one window of a query.
    """
    mine = [
        arrival.element
        for arrival in arrived
        if arrival.stream == window.stream and arrival.element.timestamp >= arrival.watermark
    ]
    mine.sort(key=lambda element: (element.timestamp, element.lines()))
    if window.unit == "TRIPLES":
        mine = [
            Element(element.timestamp, frozenset({triple}))
            for element in mine
            for triple in sorted(element.triples, key=lambda t: " ".join(map(written, t)))
        ]
    for start in range(0, len(mine), window.step):
        content = mine[start : start + window.size]
        if len(content) < window.size and len(setting.windows) > 1:
            return
        last = content[-1].timestamp
        yield Closing(last, content[0].timestamp, last, content)


def _reported(
    setting: Setting, closings: Sequence[Sequence[Closing]]
) -> Iterator[tuple[int, Sequence[Closing]]]:
    """Yield the instants of evaluation, and the content of each window then.

    `nonempty`: one of the windows holds something, or with ISTREAM and DSTREAM the evaluation
    before did. `every`: all instants from the first to the last at which one holds something.
    """
    shown = list(_instants(closings))
    full = [place for place, (_, windows) in enumerate(shown) if any(w.content for w in windows)]
    last = max((c.instant for w in closings for c in w if c.content), default=-inf)
    before = False
    for place, (instant, windows) in enumerate(shown):
        is_full = place in full
        if setting.report == "every":
            is_due = bool(full) and full[0] <= place and instant <= last
        else:
            is_due = is_full or (setting.r2s != "RSTREAM" and before)
        if is_due:
            yield instant, windows
            before = is_full


def _instants(
    closings: Sequence[Sequence[Closing]],
) -> Iterator[tuple[int, Sequence[Closing]]]:
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


def iri_of(name: str) -> str:
    return EX + name
