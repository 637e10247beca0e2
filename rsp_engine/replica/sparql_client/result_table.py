"""The rows of a SPARQL result by column: whole columns are read, checked and sorted at once.

The rows of most results are written alike; they differ only in the values of their variables:

    {"user":{"type":"uri","value":"http://a.org/1"},"n":{"type":"literal","value":"7"}},
    {"user":{"type":"uri","value":"http://a.org/2"},"n":{"type":"literal","value":"9"}}

So a pattern made of the first row finds the values of all at once. The text is not parsed as JSON,
which would make four objects for each value. The pattern must match from the first character of the
rows to their last; any other text is left to the parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from rsp_engine.model.terms.term import Term

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AlikeRows", "ResultRow", "ResultTable", "Unbound", "alike_rows"]

ResultRow = Mapping[str, Term | None]
"""A row as received. Unbound variables are absent; an unreadable term is None."""


class Unbound(Enum):
    """The cell of a variable that a row does not bind."""

    UNBOUND = auto()


class ResultTable(Sequence[ResultRow]):
    """Rows that can be read one by one, and by column.

    >>> table = ResultTable.of([{"a": None}, {}])
    >>> table.columns, table[1], list(table)
    ({'a': [None, <Unbound.UNBOUND: 1>]}, {}, [{'a': None}, {}])
    """

    __slots__ = ("_size", "columns")

    def __init__(self, columns: Mapping[str, list[Any]], size: int) -> None:
        self.columns = columns
        self._size = size

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> ResultTable:
        """Return the table of rows."""
        if isinstance(rows, ResultTable):
            return rows
        names = dict.fromkeys(chain.from_iterable(rows))
        unbound = Unbound.UNBOUND
        return cls({name: [row.get(name, unbound) for row in rows] for name in names}, len(rows))

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> ResultRow: ...

    @overload
    def __getitem__(self, place: slice) -> list[ResultRow]: ...

    def __getitem__(self, place: int | slice) -> ResultRow | list[ResultRow]:
        if isinstance(place, slice):
            return [*self.take(range(*place.indices(self._size))).rows(self.columns)]
        range(self._size)[place]  # raises IndexError, also without columns
        cells = ((name, column[place]) for name, column in self.columns.items())
        return {name: cell for name, cell in cells if cell is not Unbound.UNBOUND}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def column(self, name: str) -> list[Any]:
        """Return the cells of a variable; they are unbound if no row binds it."""
        return self.columns.get(name) or [Unbound.UNBOUND] * self._size

    def take(self, places: Sequence[int]) -> ResultTable:
        """Return the rows at some places, in their order."""
        columns = {name: [cells[n] for n in places] for name, cells in self.columns.items()}
        return ResultTable(columns, len(places))

    def kinds(self, names: Iterable[str]) -> set[type]:
        """Return the types of the cells of these variables."""
        return {kind for name in names for kind in set(map(type, self.columns[name]))}

    def rows(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return all rows, with these variables only."""
        names = list(names)
        columns = [self.columns[name] for name in names]
        if Unbound in self.kinds(names):
            unbound = Unbound.UNBOUND
            named = (zip(names, cells, strict=True) for cells in zip(*columns, strict=True))
            return [{n: cell for n, cell in row if cell is not unbound} for row in named]
        match names:
            case []:
                return [{} for _ in range(self._size)]
            case [name]:
                return [{name: cell} for cell in self.columns[name]]
        return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


_ARRAY = re.compile(r'"bindings"\s*:\s*\[\s*')
_TEXT = r'([^"\\\x00-\x1f]*+)'
_VALUE = re.compile(r'"value"\s*:\s*"' + _TEXT + '"')
_BETWEEN = re.compile(r"\s*,\s*")
_DECODER = json.JSONDecoder()


class AlikeRows(NamedTuple):
    """The texts of each variable, and what the cells of a variable have in common."""

    forms: Mapping[str, Mapping[str, object]]
    """The first cell of each variable."""
    columns: Mapping[str, Sequence[str]]
    size: int


def alike_rows(text: str) -> AlikeRows | None:
    r"""Return the rows of a document; None if they are not alike, or not valid.

    >>> cell = '{"type":"literal","value":"%s"}'
    >>> row = '{"a":' + cell + "}"
    >>> alike_rows('{"results":{"bindings":[%s,%s]}}' % (row % 1, row % 2)).columns
    {'a': ('1', '2')}
    >>> alike_rows('{"results":{"bindings":[%s,{}]}}' % (row % 1))
    """
    array = _ARRAY.search(text)
    if array is None or not text.startswith("{", array.end()):
        return None
    start, end = array.end(), text.rfind("]")
    while end > start and text[end - 1].isspace():
        end -= 1
    try:
        first, stop = _DECODER.raw_decode(text, start)
        around = text[:start] + text[end:]
        is_result = json.loads(around)["results"]["bindings"] == []
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    if not is_result or around.count('"bindings"') > 1:
        return None
    between = _BETWEEN.match(text, stop)
    pattern = _pattern(text[start:stop], len(first), between[0] if between else ",")
    if pattern is None:
        return None
    rows = pattern.findall(text, start, end)
    if not rows:
        return None
    columns = list(zip(*rows, strict=True)) if len(first) > 1 else [tuple(rows)]
    fixed = stop - start - sum(len(column[0]) for column in columns)
    size = sum(len("".join(column)) for column in columns) + fixed * len(rows)
    if size + (len(rows) - 1) * (len(between[0]) if between else 0) != end - start:
        return None
    return AlikeRows(first, dict(zip(first, columns, strict=True)), len(rows))


def _pattern(row: str, variables: int, between: str) -> re.Pattern[str] | None:
    """Return a pattern of rows like one, with a group for each value; None if there is none."""
    values = list(_VALUE.finditer(row))
    if not variables or len(values) != variables or "\\" in row:
        return None
    edges = [0, *(edge for value in values for edge in value.span(1)), len(row)]
    fixed = [re.escape(row[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return re.compile(f"{_TEXT.join(fixed)}(?:{re.escape(between)}|\\Z)")
