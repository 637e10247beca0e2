"""The rows of a SPARQL result by column: whole columns are read, checked and sorted at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

from rsp_engine.model.terms.term import Term

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ResultRow", "ResultTable", "Unbound"]

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
