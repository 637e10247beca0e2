r"""SPARQL 1.1 Query Results CSV: the values of terms, without their types.

https://www.w3.org/TR/sparql11-results-csv-tsv/, with the quoting and line ends of RFC 4180. An
empty string is written as two quotes, an unbound variable as an empty cell. For the columns, see
`table`.

>>> from rsp_engine.model.answers import Answer, Interval, Row, Solutions
>>> rows = (Row({"say": Literal('a "b", c')}), Row({"say": NamedNode("http://example.org/")}))
>>> SPARQL_CSV.writer()(Answer("q", Interval(0, 5), Solutions(("say",), rows), {}))
'open,close,say\r\n0,5,"a ""b"", c"\r\n0,5,http://example.org/\r\n'
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.io.sinks.format import SinkFormat
from rsp_engine.io.sinks.table import Dialect, Table
from rsp_engine.io.sinks.term_text import iso_time, score_text

if TYPE_CHECKING:
    from rsp_engine.model.terms.term import Term

__all__ = ["SPARQL_CSV"]

_QUOTED = re.compile(r'[",\r\n]|\A\Z')


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _term(term: Term) -> str:
    match term:
        case NamedNode() | Literal():
            return _cell(term.value)
        case BlankNode():
            return _cell(f"_:{term.value}")
        case _:
            assert_never(term)


_CSV = Dialect("csv", ",", "\r\n", column=_cell, term=_term, score=score_text)

SPARQL_CSV = SinkFormat(
    "csv",
    "SPARQL 1.1 CSV, with columns for window, rank and score",
    ("SELECT", "ASK"),
    lambda: Table(_CSV),
    lambda: Table(_CSV, iso_time),
    media_type="text/csv; charset=utf-8",
)
