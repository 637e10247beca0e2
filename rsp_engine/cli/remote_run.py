"""A query of a server as a run, so that the live view shows it as it shows any other."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from rsp_engine.model.answers import Answer, Boolean, Graph, Interval, Row, Solutions
from rsp_engine.monitor.run_monitor import Counts, QueryInfo, RunMonitor, StartedRun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.client import Client, ServedAnswer

__all__ = ["RemoteRun", "remote_answer"]

_ASK_AGAIN_S = 1.0
"""The least time between two requests for the figures of the query."""


class RemoteRun:
    """The status of a query of a server. Its monitor has the answers that were shown to it."""

    is_stopping = False
    passes = 0

    def __init__(self, client: Client, name: str) -> None:
        """Request the query.

        Raises:
            ServerError: If there is no such query, or the server does not answer.
        """
        self._client, self._name = client, name
        self._query = client.query(name)
        self._asked = time.monotonic()
        self.monitor = RunMonitor()
        self.monitor.begin(
            StartedRun([_info(self._query)], {}, (), self, sources={}, extent=lambda: None)
        )

    def show(self, answer: ServedAnswer) -> None:
        """Add an answer, and request the figures of the query again if they are old."""
        if time.monotonic() >= self._asked + _ASK_AGAIN_S:
            self._query = self._client.query(self._name)
            self._asked = time.monotonic()
        self.monitor.evaluated(remote_answer(answer.content, self._query), 0.0)

    @property
    def counts(self) -> Counts:
        """What the group of the query has read since it was started."""
        status = self._query["status"]
        return Counts(status["elements"], status["triples"], dead=status["dead_letters"])

    def watermarks(self) -> Mapping[str, float]:
        """Return the watermark of the query."""
        watermark = self._query["status"]["watermark"]
        return {} if watermark is None else {self._query["iri"]: watermark}

    def evaluated(self) -> Mapping[str, int]:
        """Return nothing: the server does not tell."""
        return {}


def _info(query: Mapping[str, Any]) -> QueryInfo:
    services = query["services"]
    budgets = [service["budget"] for service in services]
    return QueryInfo(
        name=query["iri"],
        form=query["form"],
        operator=query["operator"],
        r2s=query["r2s"],
        prefixes=query["prefixes"],
        streams={window["name"]: window["stream"] for window in query["windows"]},
        policies={service["service"]: service["policy"] for service in services},
        budget=None if None in budgets else sum(budgets),
    )


def remote_answer(content: Mapping[str, Any], query: Mapping[str, Any]) -> Answer:
    """Return an answer from its JSON, as `rsp run` writes it, and the description of its query."""
    window = Interval(content["window"]["open"], content["window"]["close"])
    found: Solutions | Graph | Boolean
    match content:
        case {"rows": rows}:
            variables = tuple(query["variables"])
            found = Solutions(variables, _rows(rows, variables), query["ranked"])
        case {"graph": text}:
            found = Graph(tuple(quad.triple for quad in ox.parse(text, ox.RdfFormat.N_TRIPLES)))
        case _:
            found = Boolean(content["boolean"])
    return Answer(query["iri"], window, found, content["stats"])


def _rows(rows: list[dict[str, Any]], variables: tuple[str, ...]) -> tuple[Row, ...]:
    bindings = [row["bindings"] for row in rows]
    document = {"head": {"vars": variables}, "results": {"bindings": bindings}}
    solutions = ox.parse_query_results(json.dumps(document), ox.QueryResultsFormat.JSON)
    assert isinstance(solutions, ox.QuerySolutions), "a document with bindings"  # noqa: S101
    return tuple(
        Row(
            {name: term for name in variables if (term := solution[name]) is not None},
            row.get("rank"),
            None if row.get("score") is None else float(row["score"]),
            row.get("age"),
        )
        for row, solution in zip(rows, solutions, strict=True)
    )
