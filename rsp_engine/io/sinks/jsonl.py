"""JSON lines: one line per window, with every field of the answer.

    SELECT     {"query", "window", "rows": [{"rank", "score", "age", "bindings"}, ...], "stats"}
    CONSTRUCT  {"query", "window", "timestamp", "graph", "format": "ntriples", "stats"}
    ASK        {"query", "window", "boolean": true | false | null, "stats"}

A window is {"open", "close"}, in integer milliseconds. `rank` and `score` are present only if the
query ranks; the score is a number, null if the row has none, or one of the strings "INF", "-INF"
and "NaN". `age` is present if a ranked row contains remote values: the time since they were
fetched, in milliseconds. Bindings follow SPARQL 1.1 Query Results JSON. A line of a CONSTRUCT has
the close of its window as timestamp, so that it can be read as an element of a stream. The boolean
is null if ISTREAM or DSTREAM reports nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

from rsp_engine.io.sinks.format import SinkFormat
from rsp_engine.io.sinks.term_text import BindingsJson, iso_time, json_text, score_text, window_json
from rsp_engine.model.answers import Boolean, Graph, Solutions

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.answers import Answer, Row

__all__ = ["JSONL", "JsonLinesWriter"]


class JsonLinesWriter:
    """Serializes answers as lines of JSON.

    >>> from rsp_engine.model.answers import Answer, Interval
    >>> line = JsonLinesWriter()(Answer("q", Interval(0, 5), Boolean(True), {"triples": 2}))
    >>> print(line, end="")
    {"query":"q","window":{"open":0,"close":5},"boolean":true,"stats":{"triples":2}}
    """

    def __init__(self, time: Callable[[int], str] = str) -> None:
        """Set how times are written: as numbers by default."""
        self._bindings = BindingsJson()
        self._time = time

    def __call__(self, answer: Answer) -> str:
        """Return the line of an answer."""
        query, window = json_text(answer.query), window_json(answer.window, self._time)
        start = f'{{"query":{query},"window":{window},'
        end = f',"stats":{json_text(dict(answer.stats))}}}\n'
        match answer.content:
            case Solutions() as solutions:
                return self._table(start, solutions, end)
            case Graph(triples):
                graph = json_text("".join([f"{triple} .\n" for triple in triples]))
                time = f'"timestamp":{self._time(answer.window.close)}'
                return f'{start}{time},"graph":{graph},"format":"ntriples"{end}'
            case Boolean(value):
                return f'{start}"boolean":{json_text(value)}{end}'
            case content:
                assert_never(content)

    def _table(self, start: str, solutions: Solutions, end: str) -> str:
        """Return the line of a table. Tables are large: each row is copied only once."""
        rows = self._bindings(solutions)
        if not rows:
            return f'{start}"rows":[]{end}'
        before, between, after = '{"bindings":', '},{"bindings":', "}"
        if solutions.ranked:
            before, between, after = "", ",", ""
            rows = list(map(_ranked, solutions.rows, rows))
        rows[0] = f'{start}"rows":[{before}{rows[0]}'
        rows[-1] += f"{after}]{end}"
        return between.join(rows)


def _ranked(row: Row, bindings: str) -> str:
    place = f'"rank":{_rank(row.rank)},"score":{_score(row.score)}{_age(row.age)}'
    return f'{{{place},"bindings":{bindings}}}'


def _rank(rank: int | None) -> str:
    return "null" if rank is None else str(rank)


def _age(age: int | None) -> str:
    return "" if age is None else f',"age":{age}'


def _score(score: float | None) -> str:
    if score is None:
        return "null"
    return score_text(score) if math.isfinite(score) else f'"{score_text(score)}"'


def _with_id(line: str, name: str) -> str:
    """Return a line with an id in front, as messages of streams have one.

    >>> _with_id('{"query":"q"}', "q/0/5")
    '{"id":"q/0/5","query":"q"}'
    """
    return f'{{"id":{json_text(name)},{line[1:]}'


JSONL = SinkFormat(
    "jsonl",
    "one line of JSON a window, with rank, score and statistics",
    ("SELECT", "CONSTRUCT", "ASK"),
    JsonLinesWriter,
    lambda: JsonLinesWriter(lambda time: json_text(iso_time(time))),
    media_type="application/json",
    with_id=_with_id,
)
