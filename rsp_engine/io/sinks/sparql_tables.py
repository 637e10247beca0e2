r"""SPARQL 1.1 Query Results CSV and TSV: tables with one row per solution.

https://www.w3.org/TR/sparql11-results-csv-tsv/

CSV has the values of terms, without their types, with the quoting and line ends of RFC 4180: an
empty string is two quotes. TSV has terms in the syntax of SPARQL and Turtle, with their types; so
have the columns that are added, so that any TSV reader accepts the file.

>>> rows = (Row({"say": Literal("a, b", language="en")}), Row({"say": Literal(7)}))
>>> answer = Answer("q", Interval(0, 5), Solutions(("say",), rows), {})
>>> SPARQL_CSV.writer()(answer)
'open,close,say\r\n0,5,"a, b"\r\n0,5,7\r\n'
>>> SPARQL_TSV.writer()(answer)
'?open\t?close\t?say\n0\t5\t"a, b"@en\n0\t5\t7\n'

The columns are the `open` and `close` of the window, then `rank` and `score` if the query ranks,
then the variables of the projection. An ASK has `open`, `close` and `boolean`. A leading column
whose name is also a variable is prefixed with an underscore, because readers reject duplicate names
or lose a column. The header is written once, before the first answer. An unbound cell is empty.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.format import SinkFormat, misfit
from rsp_engine.io.sinks.term_text import TermTexts, iso_time, score_text
from rsp_engine.model.answers import Answer, Boolean, Interval, Row, Solutions
from rsp_engine.model.terms.rdf_text import blank_node_text, iri_text, literal_text, variable_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.terms.term import Term

__all__ = ["SPARQL_CSV", "SPARQL_TSV"]

_QUOTED = re.compile(r'[",\r\n]|\A\Z')
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The syntax of a table: cell separator, row end, and the text of column names and values."""

    name: str
    separator: str
    end: str
    column: Callable[[str], str]
    term: Callable[[Term], str]
    score: Callable[[float], str]


class _Table:
    """Serializes answers as rows of one table."""

    def __init__(self, dialect: _Dialect, time: Callable[[int], str] = str) -> None:
        """Set the dialect, and how times are written: as numbers by default."""
        self._dialect = dialect
        self._time = time
        self._texts = TermTexts(dialect.term)
        self.header: str | None = None
        """The header line, once it was written."""

    def __call__(self, answer: Answer) -> str:
        """Return the rows of an answer, preceded by the header if it is the first answer."""
        return self._header_before(answer) + "".join(self._rows(answer))

    def _header_before(self, answer: Answer) -> str:
        names = (self._dialect.column(name) for name in _columns(self._dialect.name, answer))
        header = self._dialect.separator.join(names) + self._dialect.end
        if self.header is None:
            self.header = header
            return header
        if self.header != header:
            message = f"the answers of `{answer.query}` have other columns than those before"
            raise SinkError(message, "write each query to an output of its own")
        return ""

    def _rows(self, answer: Answer) -> list[str]:
        separator, end = self._dialect.separator, self._dialect.end
        window = self._window(answer.window)
        match answer.content:
            case Solutions() as solutions:
                return [
                    window
                    + self._rank_and_score(solutions, row)
                    + self._cells(solutions, row)
                    + end
                    for row in solutions.rows
                ]
            case Boolean(value):
                return [f"{window}{separator}{_boolean(value)}{end}"]
            case content:
                raise misfit(self._dialect.name, content)

    def _window(self, window: Interval) -> str:
        return self._time(window.open) + self._dialect.separator + self._time(window.close)

    def _rank_and_score(self, solutions: Solutions, row: Row) -> str:
        if not solutions.ranked:
            return ""
        separator = self._dialect.separator
        rank = "" if row.rank is None else row.rank
        score = "" if row.score is None else self._dialect.score(row.score)
        return f"{separator}{rank}{separator}{score}"

    def _cells(self, solutions: Solutions, row: Row) -> str:
        separator, terms, texts = self._dialect.separator, row.bindings, self._texts
        return "".join(
            [
                separator + texts[terms[name]] if name in terms else separator
                for name in solutions.variables
            ]
        )


def _columns(name: str, answer: Answer) -> list[str]:
    """Return the columns of an answer.

    >>> solutions = Solutions(("user", "score"), (), ranked=True)
    >>> _columns("csv", Answer("q", Interval(0, 5), solutions, {}))
    ['open', 'close', 'rank', '_score', 'user', 'score']
    """
    match answer.content:
        case Solutions(variables, _, ranked):
            leading = ["open", "close", *(("rank", "score") if ranked else ())]
            return [*(_unused_name(column, variables) for column in leading), *variables]
        case Boolean():
            return ["open", "close", "boolean"]
        case content:
            raise misfit(name, content)


def _unused_name(column: str, variables: tuple[str, ...]) -> str:
    while column in variables:
        column = f"_{column}"
    return column


def _boolean(value: bool | None) -> str:
    return "" if value is None else "true" if value else "false"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _csv_term(term: Term) -> str:
    match term:
        case NamedNode() | Literal():
            return _quoted(term.value)
        case BlankNode():
            return _quoted(f"_:{term.value}")
        case _:
            assert_never(term)


def _tsv_term(term: Term) -> str:
    try:
        return _turtle_text(term)
    except ValueError as error:
        raise SinkError(f"tsv cannot hold a term of an answer: {error}", "use jsonl") from None


def _turtle_text(term: Term) -> str:
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


def _double(score: float) -> str:
    text = score_text(score)
    # Without an exponent, Turtle reads the number as a decimal.
    return literal_text(text if "e" in text or not math.isfinite(score) else f"{text}e0", _DOUBLE)


def _format(dialect: _Dialect, media_type: str) -> SinkFormat:
    return SinkFormat(
        dialect.name,
        f"SPARQL 1.1 {dialect.name.upper()}, with columns for window, rank and score",
        ("SELECT", "ASK"),
        lambda: _Table(dialect),
        lambda: _Table(dialect, iso_time),
        media_type=media_type,
    )


SPARQL_CSV = _format(
    _Dialect("csv", ",", "\r\n", column=_quoted, term=_csv_term, score=score_text),
    "text/csv; charset=utf-8",
)
SPARQL_TSV = _format(
    _Dialect("tsv", "\t", "\n", column=variable_text, term=_tsv_term, score=_double),
    "text/tab-separated-values; charset=utf-8",
)
