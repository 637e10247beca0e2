"""A query of a server in the live view: answers read back from their JSON."""

from __future__ import annotations

import json
import math
from io import StringIO

import pyoxigraph as ox
import pytest
from rich.console import Console

from rsp_engine.cli.remote_run import RemoteRun, remote_answer
from rsp_engine.cli.view_frame import Moment, frame
from rsp_engine.client import ServedAnswer
from rsp_engine.io.sinks.jsonl import JsonLinesWriter
from rsp_engine.model.answers import Answer, Boolean, Graph, Interval, Row, Solutions

IRI = "http://example.org/warmest"
HALL, ATTIC = ox.NamedNode("http://example.org/hall"), ox.NamedNode("http://example.org/attic")
QUERY = {
    "name": "warmest",
    "iri": IRI,
    "form": "SELECT",
    "operator": "MinTopk",
    "r2s": "RSTREAM",
    "prefixes": {"": "http://example.org/"},
    "windows": [{"name": "w", "stream": "readings", "size": "10s"}],
    "services": [{"service": "http://e.org/s", "url": None, "policy": "AT-TSM", "budget": 3}],
    "variables": ["room", "t"],
    "ranked": True,
    "status": {"elements": 1234, "triples": 1300, "dead_letters": {"late": 2}, "watermark": 20_500},
}


class KnownServer:
    """Answers from memory, as `Client` does from a server."""

    def query(self, name):
        return {**QUERY, "name": name}


def ranked(*rows: Row) -> Solutions:
    return Solutions(("room", "t"), rows, True)


@pytest.mark.parametrize(
    "content",
    [
        ranked(
            Row({"room": HALL, "t": ox.Literal(25)}, 1, 25.0, 0),
            Row({"room": ATTIC, "t": ox.Literal("warm", language="en")}, 2, None, 60_000),
            Row({"t": ox.Literal("1.5", datatype=ox.NamedNode("urn:d"))}, 3, -math.inf),
            Row({"room": ox.BlankNode("b0")}, 4),
        ),
        ranked(),
        Solutions(("room", "t"), (Row({"room": HALL}), Row({})), False),
        Graph((ox.Triple(HALL, ATTIC, ox.Literal('a "quoted"\nline')),)),
        Graph(()),
        Boolean(True),
        Boolean(None),
    ],
)
def test_an_answer_is_read_as_it_was_written(content):
    answer = Answer(IRI, Interval(-10_000, 0), content, {"triples": 2, "exact": True})
    is_ranked = isinstance(content, Solutions) and content.ranked
    line = JsonLinesWriter()(answer)
    assert remote_answer(json.loads(line), {**QUERY, "ranked": is_ranked}) == answer


def test_the_view_shows_a_remote_query_as_one_that_runs_here():
    run = RemoteRun(KnownServer(), "warmest")  # type: ignore[arg-type]
    for number, (room, degrees) in enumerate([(HALL, 20), (ATTIC, 25)], 1):
        row = Row({"room": room, "t": ox.Literal(degrees)}, 1, float(degrees), 0)
        window = Interval(10_000 * number, 10_000 * number + 10_000)
        stats = {"exact": True, "budget_spent": 2}
        line = JsonLinesWriter()(Answer(IRI, window, ranked(row), stats))
        run.show(ServedAnswer(number, line))
    console = Console(width=100, record=True, file=StringIO())
    console.print(frame(run.monitor, Moment(1.0, 0.0, 30)))
    text = console.export_text()
    for word in (":warmest", ":attic", "25", "new", "2 of 3", "in all 4", "1,234", "2 windows"):
        assert word in text, word
    assert ":hall" not in text
