"""Rows of terms as columns, which stay unread until they are needed; most never are.

A column has the codes of its terms in a dictionary of texts, or float64 numbers with their
datatypes. Numbers are in columns of their own only if each has exactly one canonical text: integers
below 10**15, and decimals and doubles with at most six digits on either side of the point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from rsp_engine.model.terms.ntriples import read_rows
from rsp_engine.model.terms.numerals import SURE
from rsp_engine.model.terms.xsd import XSD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers

__all__ = [
    "DECIMAL_KIND",
    "DOUBLE_KIND",
    "INTEGER_KIND",
    "MOST_DIGITS",
    "ColumnRows",
    "NumberColumn",
    "TermColumn",
    "TermsColumn",
    "number_in",
]

INTEGER_KIND, DECIMAL_KIND, DOUBLE_KIND = 1, 2, 3
MOST_DIGITS = 6
"""Most digits on either side of a decimal point: the division by a power of ten is then exact."""

_NAMES = {INTEGER_KIND: "integer", DECIMAL_KIND: "decimal", DOUBLE_KIND: "double"}
_KINDS = {name: kind for kind, name in _NAMES.items()}
_SUFFIXES = {kind: f'"^^<{XSD}{name}>' for kind, name in _NAMES.items()}
_INTEGER = rf"0|-?[1-9][0-9]{{0,{SURE - 2}}}"
_FRACTION = r"0|-?0\.[0-9]{0,5}[1-9]|-?[1-9][0-9]{0,5}(?:\.[0-9]{0,5}[1-9])?"
_NUMBER = re.compile(
    rf'"(?:({_INTEGER})"\^\^<{re.escape(XSD)}(integer)|({_FRACTION})"\^\^<{re.escape(XSD)}'
    r"(decimal|double))>"
)


class TermColumn(NamedTuple):
    """Terms as codes: the text of code n is `texts[n]`. Different codes may have the same text."""

    codes: Integers
    texts: Sequence[str]

    def at(self, places: NDArray[Any]) -> TermColumn:
        """Return the terms of some rows."""
        return TermColumn(self.codes[places], self.texts)

    def written(self) -> list[str]:
        """Return the text of each term."""
        texts = self.texts
        return [texts[code] for code in self.codes.tolist()]


class NumberColumn(NamedTuple):
    """Numbers with their datatypes."""

    values: Floats
    kinds: Integers

    def at(self, places: NDArray[Any]) -> NumberColumn:
        """Return the numbers of some rows."""
        return NumberColumn(self.values[places], self.kinds[places])

    def written(self) -> list[str]:
        """Return the text of each number.

        >>> NumberColumn(np.array([5.0, 0.25]), np.array([1, 2])).written()[1]
        '"0.25"^^<http://www.w3.org/2001/XMLSchema#decimal>'
        """
        pairs = zip(self.values.tolist(), self.kinds.tolist(), strict=True)
        return [number_text(value, kind) for value, kind in pairs]


TermsColumn = TermColumn | NumberColumn


def number_text(value: float, kind: int) -> str:
    """Return a number as a literal."""
    if value.is_integer():
        return f'"{int(value)}{_SUFFIXES[kind]}'
    return f'"{value:.{MOST_DIGITS}f}'.rstrip("0") + _SUFFIXES[kind]


@lru_cache(maxsize=65_536)
def number_in(text: str) -> tuple[float, int] | None:
    """Return the number and the datatype of a literal; None if it is no number for a column.

    >>> number_in('"-0.5"^^<http://www.w3.org/2001/XMLSchema#double>'), number_in('"7"')
    ((-0.5, 3), None)
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    whole, integer, fraction, other = found.groups()
    return float(whole or fraction), _KINDS[integer or other]


class ColumnRows(Sequence[tuple[Any, ...]]):
    """Rows of terms, by column.

    >>> rows = ColumnRows((TermColumn(np.array([0, 0]), ["<urn:a>"]),
    ...                    NumberColumn(np.array([1.0, 2.0]), np.array([1, 1]))))
    >>> [str(term) for term in rows[1]]
    ['<urn:a>', '"2"^^<http://www.w3.org/2001/XMLSchema#integer>']
    """

    __slots__ = ("columns",)

    def __init__(self, columns: tuple[TermsColumn, ...]) -> None:
        self.columns = columns

    @property
    def width(self) -> int:
        """The number of terms of a row."""
        return len(self.columns)

    @property
    def texts(self) -> list[str]:
        """The rows as lines of text."""
        return ["\t".join(row) for row in zip(*(c.written() for c in self.columns), strict=True)]

    def __len__(self) -> int:
        return len(self.columns[0][0])

    @overload
    def __getitem__(self, place: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[Any, ...]]: ...
    def __getitem__(self, place: int | slice) -> tuple[Any, ...] | list[tuple[Any, ...]]:
        """Parse one row, or the rows of a slice."""
        if isinstance(place, slice):
            return list(self.at(np.arange(len(self))[place]))
        [row] = self.at(np.array([place]))
        return row

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Parse all rows at once."""
        return iter(read_rows(self.texts, self.width))

    def at(self, places: Any) -> ColumnRows:  # noqa: ANN401 - array-like
        """Return the rows at some places, still unread."""
        chosen = np.asarray(places, dtype=np.int64)
        return ColumnRows(tuple(column.at(chosen) for column in self.columns))

    def column(self, *places: int) -> list[str]:
        """Return the text of one term per row; join several terms with tabs."""
        if len(places) == 1:
            return self.columns[places[0]].written()
        return ColumnRows(tuple(self.columns[place] for place in places)).texts

    @classmethod
    def joined(cls, parts: Sequence[ColumnRows]) -> ColumnRows:
        """Return the rows of several parts as one."""
        return cls(tuple(map(_joined, zip(*(part.columns for part in parts), strict=True))))


def _joined(parts: Sequence[TermsColumn]) -> TermsColumn:
    numbers = [part for part in parts if isinstance(part, NumberColumn)]
    if len(numbers) == len(parts):
        return NumberColumn(*map(np.concatenate, zip(*numbers, strict=True)))
    codes, texts = [], list[str]()
    for part in parts:
        column = part if isinstance(part, TermColumn) else _as_terms(part)
        codes.append(column.codes + len(texts))
        texts.extend(column.texts)
    return TermColumn(np.concatenate(codes), texts)


def _as_terms(numbers: NumberColumn) -> TermColumn:
    return TermColumn(np.arange(len(numbers.values)), numbers.written())
