"""SPARQL 1.1 Query Results JSON: one document per window, each on its own line.

https://www.w3.org/TR/sparql11-results-json/

The standard has no windows, so each document has an additional member, `window`. It is written
between `head` and `results`, because some readers stop at the end of the results. No document is
written for an ASK about which ISTREAM or DSTREAM reports nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.io.sinks.format import SinkFormat, misfit
from rsp_engine.io.sinks.term_text import BindingsJson, json_text, window_json
from rsp_engine.model.answers import Boolean, Solutions

if TYPE_CHECKING:
    from rsp_engine.model.answers import Answer

__all__ = ["SPARQL_JSON", "SparqlJson"]


class SparqlJson:
    """Serializes answers as JSON documents.

    >>> from rsp_engine.model.answers import Answer, Interval
    >>> print(SparqlJson()(Answer("q", Interval(0, 5), Boolean(True), {})), end="")
    {"head":{},"window":{"open":0,"close":5},"boolean":true}
    """

    def __init__(self) -> None:
        self._bindings = BindingsJson()

    def __call__(self, answer: Answer) -> str:
        """Return the document of an answer."""
        window = window_json(answer.window)
        match answer.content:
            case Solutions() as solutions:
                head = f'{{"vars":{json_text(solutions.variables)}}}'
                rows = ",".join(self._bindings(solutions))
                return f'{{"head":{head},"window":{window},"results":{{"bindings":[{rows}]}}}}\n'
            case Boolean(None):
                return ""
            case Boolean(value):
                return f'{{"head":{{}},"window":{window},"boolean":{json_text(value)}}}\n'
            case content:
                raise misfit("sparql-json", content)


SPARQL_JSON = SinkFormat(
    "sparql-json",
    "SPARQL 1.1 results in JSON, one document a window",
    ("SELECT", "ASK"),
    SparqlJson,
    suffix=".srj",
    media_type="application/sparql-results+json",
)
