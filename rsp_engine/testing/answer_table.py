"""Answer tables: what a test expects of answers, as text.

    open  close  rank  ?room  ?degrees  exact
    0     10000  1     :b     25        true
    0     10000  2     :a     20        true

The first line names the columns, of which you choose those that matter:

    query, open, close             the query, the edges of the window
    rank, score, age               of a row of a ranked answer
    ?name                          a variable of a SELECT
    subject, predicate, object     a triple of a CONSTRUCT
    answer                         the value of an ASK
    exact, budget_spent, ...       any figure of the statistics of an answer

Cells are separated by two blanks or more, or by `|`. Terms are written as in Turtle, with the
prefixes of the query; `-` stands for what is absent: an unbound variable, or the row of an answer
that has none. Times may have a unit. The rows of an answer that is not ranked have no order. With
none of the columns of a row, an answer is one line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import CaseError
from rsp_engine.testing.difference import difference
from rsp_engine.testing.term_cells import NOTHING, TermCells, instant_cell, number_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Line = tuple[str, ...]
    Lines = list[Line]

__all__ = ["AnswerRecord", "AnswerTable"]

AnswerRecord = dict[str, Any]
"""An answer as JSON lines have it: its query, window, rows, graph or boolean, and statistics."""

_CELL = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s"|]|(?<=\S) (?=\S))+')
_RULE = re.compile(r"[\s|:-]+")
"""The line below the header of a table in Markdown."""
_ANSWER = ("query", "open", "close")
_ROW = ("rank", "score", "age", "subject", "predicate", "object", "answer")
_TRIPLE = ("subject", "predicate", "object")


class AnswerTable:
    r"""A table of answers, and its comparison with those of a run.

    >>> table = AnswerTable("open  close  ?room \n  0  10s  :a", {"": "http://example.org/"})
    >>> room = {"room": {"type": "uri", "value": "http://example.org/b"}}
    >>> answer = {"query": "q", "window": {"open": 0, "close": 10000}, "rows": [{"bindings": room}]}
    >>> print(table.compare([answer]))
    answers: - expected, + found
      open  close  ?room
    - 0     10000  :a
    ?               ^
    + 0     10000  :b
    ?               ^
    """

    def __init__(self, text: str, prefixes: Mapping[str, str]) -> None:
        """Read a table.

        Raises:
            CaseError: If the text has no header, or a line has more or fewer cells than it.
        """
        self._cells = TermCells(prefixes)
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            raise CaseError("a table needs a header", "name its columns: open  close  ?variable")
        self.header, *rows = (
            tuple(_CELL.findall(line)) for line in lines if not _is_rule(line, lines)
        )
        for row in rows:
            if len(row) != len(self.header):
                raise CaseError(
                    f"the line `{'  '.join(row)}` has {len(row)} cells, the header has"
                    f" {len(self.header)}",
                    "two blanks separate cells, and - stands for what is absent",
                )
        self._expected = [tuple(map(self._written, self.header, row)) for row in rows]

    def compare(self, records: Sequence[AnswerRecord]) -> str:
        """Return the differences from the answers of a run; nothing if there are none."""
        ranked = {self._group(line) for r in records if _is_ranked(r) for line in self._lines(r)}
        found = [line for record in records for line in self._lines(record)]
        known = {self._group(line) for line in found}
        free = known - ranked
        both = [_sorted(lines, free, self._group) for lines in (self._expected, found)]
        columns = zip(self.header, *both[0], *both[1], strict=True)
        widths = [max(map(len, column)) for column in columns]
        expected, printed = (
            [_padded(line, widths) for line in (self.header, *lines)] for lines in both
        )
        return difference("answers", expected, printed)

    def _group(self, line: Line) -> Line:
        """Return the cells of a line that say which answer it is of."""
        return tuple(cell for name, cell in zip(self.header, line, strict=True) if name in _ANSWER)

    def _written(self, name: str, cell: str) -> str:
        """Return a cell as it was written by the user, in the form of those that are found."""
        if name in ("open", "close", "age"):
            return instant_cell(cell)
        if name == "query" or name.startswith("?") or name in _TRIPLE:
            return self._cells.read(cell)
        return number_cell(cell)

    def _lines(self, record: AnswerRecord) -> Iterator[Line]:
        """Yield the lines of an answer."""
        if not any(name in _ROW or name.startswith("?") for name in self.header):
            yield tuple(self._of_answer(name, record) for name in self.header)
            return
        for row in self._rows(record) or [{}]:
            yield tuple(
                row.get(name, NOTHING)
                if name in _ROW or name.startswith("?")
                else self._of_answer(name, record)
                for name in self.header
            )

    def _of_answer(self, name: str, record: AnswerRecord) -> str:
        match name:
            case "query":
                return self._cells.of({"type": "uri", "value": record["query"]})
            case "open" | "close":
                return str(record["window"][name])
            case _:
                return number_cell(record.get("stats", {}).get(name))

    def _rows(self, record: AnswerRecord) -> list[dict[str, str]]:
        """Return the rows of an answer, each as cells by the names of their columns."""
        if "boolean" in record:
            return [{"answer": number_cell(record["boolean"])}]
        if "graph" in record:
            triples = self._cells.triples(record["graph"])
            return [dict(zip(_TRIPLE, map(self._cells.of_term, t), strict=True)) for t in triples]
        return [self._row(row) for row in record["rows"]]

    def _row(self, row: AnswerRecord) -> dict[str, str]:
        cells = {f"?{name}": self._cells.of(term) for name, term in row["bindings"].items()}
        return cells | {name: number_cell(row.get(name)) for name in ("rank", "score", "age")}


def _is_rule(line: str, lines: Sequence[str]) -> bool:
    return len(lines) > 1 and line is lines[1] and "|" in line and bool(_RULE.fullmatch(line))


def _is_ranked(record: AnswerRecord) -> bool:
    return any("rank" in row for row in record.get("rows", ()))


def _sorted(lines: Lines, free: set[Line], group: Any) -> Lines:  # noqa: ANN401 - a method
    """Return lines with those of answers that have no order sorted, each in a place of theirs."""
    waiting = {key: iter(sorted(line for line in lines if group(line) == key)) for key in free}
    return [next(waiting[key]) if (key := group(line)) in free else line for line in lines]


def _padded(line: Line, widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)).rstrip()
