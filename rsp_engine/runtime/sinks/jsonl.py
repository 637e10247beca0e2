"""JSON lines: one line a window, with everything that the answer knows.

    SELECT     {"query", "window", "rows": [{"rank", "score", "bindings"}, ...], "stats"}
    CONSTRUCT  {"query", "window", "timestamp", "graph", "format": "ntriples", "stats"}
    ASK        {"query", "window", "boolean": true | false | null, "stats"}

A window is {"open", "close"}, in integer milliseconds. `rank` and `score` are there only where the
query ranks; the score is a number, null where there is none, and one of the strings "INF", "-INF"
and "NaN" where JSON has no number for it. Bindings are terms of the SPARQL 1.1 results in JSON. A
line of a CONSTRUCT has the close of its window as its timestamp and can be read as an element of a
stream. The truth value is null when ISTREAM or DSTREAM has nothing to say.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

from rsp_engine.model.answers import Boolean, Graph, Solutions
from rsp_engine.runtime.sinks.format import Format
from rsp_engine.runtime.sinks.json_text import BindingsJson, json_text, window_json
from rsp_engine.runtime.sinks.terms import score_text

if TYPE_CHECKING:
    from rsp_engine.model.answers import Answer

__all__ = ["FORMAT", "JsonLines"]

_NEXT_ROW = '},{"bindings":'


class JsonLines:
    """It writes answers as lines of JSON.

    >>> from rsp_engine.model.answers import Answer, Interval
    >>> line = JsonLines()(Answer("q", Interval(0, 5), Boolean(True), {"triples": 2}))
    >>> print(line, end="")
    {"query":"q","window":{"open":0,"close":5},"boolean":true,"stats":{"triples":2}}
    """

    def __init__(self) -> None:
        self._bindings = BindingsJson()

    def __call__(self, answer: Answer) -> str:
        """Return the line of an answer."""
        query, window = json_text(answer.query), window_json(answer.window)
        content, stats = self._content(answer), json_text(dict(answer.stats))
        return f'{{"query":{query},"window":{window},{content},"stats":{stats}}}\n'

    def _content(self, answer: Answer) -> str:
        match answer.content:
            case Solutions() as solutions:
                return f'"rows":[{self._rows(solutions)}]'
            case Graph(triples):
                graph = json_text("".join([f"{triple} .\n" for triple in triples]))
                return f'"timestamp":{answer.window.close},"graph":{graph},"format":"ntriples"'
            case Boolean(value):
                return f'"boolean":{json_text(value)}'
            case content:
                assert_never(content)

    def _rows(self, solutions: Solutions) -> str:
        written = self._bindings(solutions)
        if not solutions.ranked:  # a row is mostly as in the answer before, so none is made anew
            return f'{{"bindings":{_NEXT_ROW.join(written)}}}' if written else ""
        return ",".join(
            f'{{"rank":{_rank(row.rank)},"score":{_score(row.score)},"bindings":{bindings}}}'
            for row, bindings in zip(solutions.rows, written, strict=True)
        )


def _rank(rank: int | None) -> str:
    return "null" if rank is None else str(rank)


def _score(score: float | None) -> str:
    if score is None:
        return "null"
    return score_text(score) if math.isfinite(score) else f'"{score_text(score)}"'


FORMAT = Format(
    "jsonl",
    "one line of JSON a window, with rank, score and statistics",
    ("SELECT", "CONSTRUCT", "ASK"),
    JsonLines,
)
