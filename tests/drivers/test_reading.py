"""How a stream is read changes nothing: the order within the delay, and the split over sources."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.drivers.local import LocalDriver
from rsp_engine.drivers.splits.split_run import SplitRun
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import check
from rsp_engine.io.sources.memory import MemorySource
from rsp_engine.model.answers import Answer, Graph, Solutions
from rsp_engine.options import WindowOptions
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from tests.differential.windows import Setting, Time
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.model.streams import DeadLetter

EX = "http://example.org/"
many = examples(60)

SUBJECTS = (":a", ":b", "_:x")
OBJECTS = (":a", ":b", "1", "2", "3", "0.5", "2.5", "1.5e0")
PATTERNS = ("?s :p ?v", "?s ?k ?v", "?s :p ?v . ?s :q ?u", "?s :p ?v . ?v :q ?u")
CLAUSES = (
    "",
    "FILTER (?v > 1)",
    "FILTER (?s = :a || ?v <= 2)",
    "OPTIONAL { ?s :q ?o }",
    "OPTIONAL { ?s :q ?o FILTER (isNumeric(?o) && isNumeric(?v) && ?o >= ?v) }",
    "OPTIONAL { ?s :q ?o } FILTER (!BOUND(?o))",
    "{ ?s :q ?o } UNION { ?o :p ?v }",
    "MINUS { ?s :q ?v }",
    "FILTER NOT EXISTS { ?s :q ?v }",
    "BIND (?v + 1 AS ?o)",
)
ANSWERS = (
    ("SELECT *", ""),
    ("SELECT ?s", ""),
    ("SELECT ?o", ""),
    ("SELECT DISTINCT ?v", ""),
    ("SELECT (COUNT(*) AS ?n)", ""),
    ("SELECT ?s (COUNT(?v) AS ?n)", "GROUP BY ?s"),
    ("SELECT ?s (COUNT(DISTINCT ?v) AS ?n)", "GROUP BY ?s HAVING (COUNT(?v) > 1)"),
)
PAIRS = (
    "WINDOW :w { ?s :p ?v } WINDOW :x { ?s :q ?u }",
    "WINDOW :w { ?s :p ?v } WINDOW :x { ?t :p ?v }",
    "WINDOW :w { ?s :p ?v } OPTIONAL { WINDOW :x { ?s :q ?u } }",
    "{ WINDOW :w { ?s :p ?v } } UNION { WINDOW :x { ?s :p ?v } }",
    "WINDOW :w { ?s :p ?v } MINUS { WINDOW :x { ?s :p ?v } }",
    "WINDOW :w { ?s :p ?v } FILTER NOT EXISTS { WINDOW :x { ?s :q ?u } }",
    "WINDOW ?g { ?s :p ?v }",
    "WINDOW ?g { ?s ?k ?v } WINDOW :x { ?s :q ?u }",
)
sizes = st.integers(1, 8)


class Item(NamedTuple):
    """An element: its time, and its triples in the short forms of Turtle."""

    timestamp: int
    triples: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        return f"PREFIX : <{EX}> " + " ".join(f"{' '.join(triple)} ." for triple in self.triples)


Streams = dict[str, list[list[Item]]]
"""The sources of each stream, and the items of each source in the order of reading."""


class Query(NamedTuple):
    select: str
    where: str
    tail: str = ""

    def rspql(self, setting: Setting) -> str:
        head = f"PREFIX : <{EX}> REGISTER {setting.r2s} :answer AS"
        return f"{head} {self.select} {setting.text()} WHERE {{ {self.where} }} {self.tail}"


@st.composite
def time_settings(
    draw: st.DrawFn, windows: int = 1, streams: int = 1, max_delay: int = 0
) -> Setting:
    """Draw windows; range and step have nothing to do with each other."""
    return Setting(
        tuple(
            Time(name, draw(st.sampled_from("st"[:streams])), draw(sizes), draw(sizes))
            for name in "wx"[:windows]
        ),
        t0=draw(st.integers(-5, 5)),
        bounds=draw(st.sampled_from(("(]", "[)"))),
        report=draw(st.sampled_from(("nonempty", "every"))),
        r2s=draw(st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM"))),
        max_delay=draw(st.integers(0, max_delay)),
    )


def near_edges(setting: Setting) -> st.SearchStrategy[int]:
    """Draw instants at the edges of windows and beside them."""
    edges = {
        edge + beside
        for window in setting.windows
        if isinstance(window, Time)
        for index in (0, 1, 2, 3, 5)
        for edge in setting.edges(window, index)
        for beside in (-1, 0, 1)
    }
    return st.sampled_from(sorted(edges))


def items(setting: Setting) -> st.SearchStrategy[list[Item]]:
    triple = st.tuples(*map(st.sampled_from, (SUBJECTS, (":p", ":q"), OBJECTS)))
    triples = st.lists(triple, max_size=4).map(tuple)
    return st.lists(st.builds(Item, near_edges(setting), triples), max_size=12)


def in_time(found: list[Item]) -> list[Item]:
    return sorted(found, key=lambda item: item.timestamp)


@st.composite
def overtaken(draw: st.DrawFn, source: list[Item], max_delay: int) -> list[Item]:
    """Draw an order of reading in which no element is overtaken by one that is much later."""
    delays = draw(st.lists(st.integers(0, max_delay), min_size=len(source), max_size=len(source)))
    arriving = sorted(zip(source, delays, strict=True), key=lambda a: a[0].timestamp + a[1])
    return [item for item, _ in arriving]


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Draw a query over one window."""
    pattern, clause = draw(st.sampled_from(PATTERNS)), draw(st.sampled_from(CLAUSES))
    select, tail = draw(st.sampled_from(ANSWERS))
    if draw(st.integers(0, 3)) == 0:
        aggregate = draw(st.sampled_from(("SUM", "MIN", "MAX", "AVG")))
        pattern += " FILTER (isNumeric(?v))"
        select, tail = f"SELECT ?s ({aggregate}(?v) AS ?n)", "GROUP BY ?s"
    return Query(select, f"WINDOW :w {{ {pattern} {clause} }}", tail)


pair_queries = st.builds(
    Query, st.sampled_from(("SELECT *", "SELECT ?s")), st.sampled_from(PAIRS), st.just("")
)


def step(setting: Setting, text: str) -> Step:
    windows = WindowOptions(bounds=setting.bounds, t0=setting.t0, report=setting.report)
    options = QueryOptions(windows=windows)
    return Step(plan(check(text), text, "<query>", options).physical)


def run(setting: Setting, streams: Streams, query: Query) -> tuple[list[Answer], list[DeadLetter]]:
    """Return what the engine answers, and what it sets aside."""
    letters: list[DeadLetter] = []
    steps = [step(setting, query.rspql(setting))]
    driver = LocalDriver(SplitRun(steps, sources_of(streams), letters.append, setting.max_delay))
    return list(driver.run()), letters


def sources_of(streams: Streams) -> dict[str, list[MemorySource]]:
    return {
        EX + stream: [MemorySource([(i.timestamp, i.text()) for i in found]) for found in sources]
        for stream, sources in streams.items()
    }


def kept_aside(letters: list[DeadLetter]) -> Counter[tuple[bytes, str]]:
    return Counter((letter.raw, letter.reason) for letter in letters)


@many
@given(st.data())
def test_the_order_of_reading_is_of_no_account_within_the_delay(data):
    """An element may be overtaken by those that are at most `max_delay` later.

    max_delay 3    read: 4 1 2 5 3    the same as: 1 2 3 4 5
    """
    setting = data.draw(time_settings(windows=2, streams=2, max_delay=6))
    streams = {w.stream: [in_time(data.draw(items(setting)))] for w in setting.windows}
    shuffled = {
        stream: [data.draw(overtaken(source, setting.max_delay)) for source in sources]
        for stream, sources in streams.items()
    }
    query = data.draw(pair_queries)
    found, letters = run(setting, streams, query)
    again, letters_again = run(setting, shuffled, query)
    assert again == found
    assert kept_aside(letters_again) == kept_aside(letters)


@pytest.mark.parametrize("told_apart", ["SUM(?v)", "RAND()", "UUID()", "BNODE()"])
def test_neither_rounding_nor_chance_tells_the_order_of_reading(told_apart):
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 where numbers are doubles."""
    setting = Setting((Time("w", "s", 8, 8),), max_delay=8)
    found = [Item(time, ((f":{x}", ":p", f"0.{time}e0"),)) for time, x in enumerate("abc", start=1)]
    tail = "GROUP BY ?k" if told_apart == "SUM(?v)" else ""
    variables = "?k" if tail else "?s ?k"
    query = Query(f"SELECT {variables} ({told_apart} AS ?n)", "WINDOW :w { ?s ?k ?v }", tail)
    expected, _ = run(setting, {"s": [found]}, query)
    for shuffled in permutations(found):
        assert run(setting, {"s": [list(shuffled)]}, query)[0] == expected


@many
@given(st.data())
def test_a_stream_may_be_split_over_several_sources(data):
    setting = data.draw(time_settings(max_delay=4))
    found = data.draw(overtaken(in_time(data.draw(items(setting))), setting.max_delay))
    places = data.draw(st.lists(st.integers(0, 2), min_size=len(found), max_size=len(found)))
    parts = [
        [item for item, place in zip(found, places, strict=True) if place == part]
        for part in range(3)
    ]
    query = data.draw(queries())
    whole, letters = run(setting, {"s": [found]}, query)
    split, letters_again = run(setting, {"s": parts}, query)
    assert split == whole
    assert kept_aside(letters_again) == kept_aside(letters)


@many
@given(st.data())
def test_the_answers_of_a_query_are_a_stream_for_another(data):
    """A query over the stream of answers answers the same as over these answers in a file."""
    setting = replace(data.draw(time_settings()), r2s="RSTREAM")
    streams = {"s": [in_time(data.draw(items(setting)))]}
    clause = data.draw(st.sampled_from(("?s :p ?v", "OPTIONAL { ?s :p ?v }")))
    template = "CONSTRUCT { ?s :p ?v . :x :q 1 }"
    first = step(setting, Query(template, f"WINDOW :w {{ {clause} }}").rspql(setting))
    later = replace(setting, windows=(Time("w", "answer", data.draw(sizes), data.draw(sizes)),))
    text = Query("SELECT *", "WINDOW :w { ?s ?k ?v }").rspql(later).replace(":answer AS", ":b AS")
    found = list(
        LocalDriver(SplitRun([first, step(later, text)], sources_of(streams), ignore)).run()
    )
    fed = [(a.window.close, a.content) for a in found if isinstance(a.content, Graph)]
    pairs = [(close, "".join(f"{t} .\n" for t in graph.triples)) for close, graph in fed]
    bound = {f"{EX}answer": [MemorySource(pairs)]}
    alone = LocalDriver(SplitRun([step(later, text)], bound, ignore))
    assert [a for a in found if isinstance(a.content, Solutions)] == list(alone.run())


def ignore(_: DeadLetter) -> None:
    """Let an element go that is before t0."""
