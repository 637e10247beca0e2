"""Tables with one row per solution, shared by csv and tsv.

The columns are the `open` and `close` of the window, then `rank` and `score` if the query ranks,
then the variables of the projection. An ASK has `open`, `close` and `boolean`. A leading column
whose name is also a variable is prefixed with an underscore, because readers reject duplicate names
or lose a column. The header is written once, before the first answer. An unbound cell is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.format import misfit
from rsp_engine.io.sinks.term_text import TermTexts
from rsp_engine.model.answers import Answer, Boolean, Interval, Row, Solutions

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.terms.term import Term

__all__ = ["Dialect", "Table"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The syntax of a table: cell separator, row end, and the text of column names and values."""

    name: str
    separator: str
    end: str
    column: Callable[[str], str]
    term: Callable[[Term], str]
    score: Callable[[float], str]


class Table:
    """Serializes answers as rows of one table."""

    def __init__(self, dialect: Dialect, time: Callable[[int], str] = str) -> None:
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
