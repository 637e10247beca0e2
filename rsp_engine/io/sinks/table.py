"""Tables, one row a solution: what csv and tsv have in common.

The columns are `open` and `close` of the window, then `rank` and `score` where the query ranks,
then the variables of the projection. An ASK has `open`, `close` and `boolean`. One of the first
columns that has the name of a variable gets an underscore in front: no name stands twice, since
readers refuse that or lose a column. The header is written once, before the first answer. A cell
without a value is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.format import misfit
from rsp_engine.io.sinks.terms import TermTexts
from rsp_engine.model.answers import Answer, Boolean, Interval, Row, Solutions

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.terms.term import Term

__all__ = ["Dialect", "Table"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a table is written: what stands between cells, ends a row, and is in a cell."""

    name: str
    separator: str
    end: str
    column: Callable[[str], str]
    term: Callable[[Term], str]
    score: Callable[[float], str]


class Table:
    """It writes answers as rows of one table."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._texts = TermTexts(dialect.term)
        self.header: str | None = None
        """The line that was written first, if any was."""

    def __call__(self, answer: Answer) -> str:
        """Return the rows of an answer, after the header if it is the first one."""
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
                    window + self._place(solutions, row) + self._cells(solutions, row) + end
                    for row in solutions.rows
                ]
            case Boolean(value):
                return [f"{window}{separator}{_truth(value)}{end}"]
            case content:
                raise misfit(self._dialect.name, content)

    def _window(self, window: Interval) -> str:
        return f"{window.open}{self._dialect.separator}{window.close}"

    def _place(self, solutions: Solutions, row: Row) -> str:
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
            first = ["open", "close", *(("rank", "score") if ranked else ())]
            return [*(_free(column, variables) for column in first), *variables]
        case Boolean():
            return ["open", "close", "boolean"]
        case content:
            raise misfit(name, content)


def _free(column: str, variables: tuple[str, ...]) -> str:
    while column in variables:
        column = f"_{column}"
    return column


def _truth(value: bool | None) -> str:
    return "" if value is None else "true" if value else "false"
