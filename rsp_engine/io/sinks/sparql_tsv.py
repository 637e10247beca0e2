r"""SPARQL 1.1 Query Results TSV: terms in the syntax of SPARQL and Turtle, with their types.

https://www.w3.org/TR/sparql11-results-csv-tsv/. All columns (see `table`) follow the standard, the
added ones too, so that any TSV reader accepts the file: times and ranks are integers, scores are
doubles.

>>> from rsp_engine.model.answers import Answer, Interval, Row, Solutions
>>> rows = (Row({"say": Literal("a\tb", language="en")}), Row({"say": Literal(7)}))
>>> SPARQL_TSV.writer()(Answer("q", Interval(0, 5), Solutions(("say",), rows), {}))
'?open\t?close\t?say\n0\t5\t"a\\tb"@en\n0\t5\t7\n'
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.format import SinkFormat
from rsp_engine.io.sinks.table import Dialect, Table
from rsp_engine.io.sinks.term_text import iso_time, score_text
from rsp_engine.model.terms.rdf_text import blank_node_text, iri_text, literal_text, variable_text

if TYPE_CHECKING:
    from rsp_engine.model.terms.term import Term

__all__ = ["SPARQL_TSV"]

_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"


def _term(term: Term) -> str:
    try:
        return _text(term)
    except ValueError as error:
        raise SinkError(f"tsv cannot hold a term of an answer: {error}", "use jsonl") from None


def _text(term: Term) -> str:
    match term:
        case NamedNode():
            return iri_text(term.value)
        case BlankNode():
            return blank_node_text(term.value)
        case Literal():
            text = literal_text(term.value, term.datatype.value, term.language)
            # Base direction: SPARQL 1.2.
            return text if term.direction is None else f"{text}--{term.direction.value}"
        case _:
            assert_never(term)


def _score(score: float) -> str:
    text = score_text(score)
    # Without an exponent, Turtle reads the number as a decimal.
    return literal_text(text if "e" in text or not math.isfinite(score) else f"{text}e0", _DOUBLE)


_TSV = Dialect("tsv", "\t", "\n", column=variable_text, term=_term, score=_score)

SPARQL_TSV = SinkFormat(
    "tsv",
    "SPARQL 1.1 TSV, with columns for window, rank and score",
    ("SELECT", "ASK"),
    lambda: Table(_TSV),
    lambda: Table(_TSV, iso_time),
    media_type="text/tab-separated-values; charset=utf-8",
)
