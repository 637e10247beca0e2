"""Paged reads of a whole clause.

A server may cut a page anywhere: the next page continues from there, and only a page without new
rows is the end. Each page overlaps with the last row of the page before. If the key of that row is
missing, rows were added or removed in between, and the read restarts; a changed value of a key does
not matter. A page that repeats the one before brings nothing new. Then one row far behind the end
is asked for: a server that sends one ignores OFFSET, and the read ends with this fault. With any
other server the read goes on, if all these rows are equal, or restarts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode

from rsp_engine.http_client.faults import CHANGED, OFFSET_IGNORED, ROWS_CUT
from rsp_engine.replica.sparql_client.request_text import page_text
from rsp_engine.replica.sparql_client.retry_decision import Act

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.pattern import RemotePattern
    from rsp_engine.replica.sparql_client.result_table import ResultRow

__all__ = ["Pages", "Rows"]

_FAR = 10**9  # an OFFSET behind the end of any clause that is read in pages
_MOST_DIVIDED = 100  # a server that refuses 1/100 of a page does not refuse because of its size


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one request; `is_capped` if the server announces a maximum number of rows."""

    rows: Sequence[ResultRow]
    is_capped: bool = False


class _End(Enum):
    ALL = auto()
    PART = auto()
    CHANGED = auto()


@dataclass(frozen=True, slots=True)
class Pages:
    """A read in pages of `page_rows`, restarted up to `restarts` times if the data change."""

    pattern: RemotePattern
    page_rows: int
    restarts: int

    def read(
        self, ask: Callable[[str], Rows | Act], faults: Counter[str]
    ) -> tuple[Sequence[ResultRow], bool]:
        """Return the rows, in key order, and whether they are complete."""
        rows: Sequence[ResultRow] = ()
        for _ in range(self.restarts + 1):
            rows, end = self._read_once(ask, faults)
            if end is not _End.CHANGED:
                return rows, end is _End.ALL
            faults[CHANGED] += 1
        return rows, False

    def _read_once(
        self, ask: Callable[[str], Rows | Act], faults: Counter[str]
    ) -> tuple[Sequence[ResultRow], _End]:
        rows: list[ResultRow] = []
        last: Sequence[ResultRow] = ()
        limit, is_nested, may_ignore = self.page_rows, False, True
        while True:
            overlap = min(len(rows), 1)
            offset = len(rows) - overlap
            text = page_text(self.pattern, limit + overlap, offset, is_nested=is_nested)
            page = ask(text)
            if isinstance(page, Rows):
                is_next = not overlap or self._is_continued(rows[-1], page.rows)
                if is_next and page.rows and _alike(last, page.rows):
                    if may_ignore and self._is_offset_ignored(ask):
                        faults[OFFSET_IGNORED] += 1
                        return rows, _End.PART
                    may_ignore = False
                    is_next = _are_equal(page.rows)
                if not is_next:
                    return rows, _End.CHANGED
                if len(page.rows) > overlap:
                    rows += page.rows[overlap:]
                    last = page.rows
                elif page.is_capped:
                    faults[ROWS_CUT] += 1
                    return rows, _End.PART
                else:
                    return rows, _End.ALL
            elif page is Act.LESS and limit * _MOST_DIVIDED > self.page_rows and limit > 1:
                limit, is_nested = limit // 2, True
            else:
                return rows, _End.PART

    def _is_offset_ignored(self, ask: Callable[[str], Rows | Act]) -> bool:
        page = ask(page_text(self.pattern, 1, _FAR))
        return isinstance(page, Rows) and bool(page.rows)

    def _is_continued(self, last: ResultRow, page: Sequence[ResultRow]) -> bool:
        return bool(page) and self._overlap_terms(last) == self._overlap_terms(page[0])

    def _overlap_terms(self, row: ResultRow) -> list[Term | None]:
        """Return the terms that overlapping rows share. Blank node labels differ between pages."""
        names = self.pattern.keys or self.pattern.variables
        return _unlabelled({name: row.get(name) for name in names})


def _unlabelled(row: ResultRow) -> list[Term | None]:
    return [None if isinstance(term, BlankNode) else term for term in row.values()]


def _alike(last: Sequence[ResultRow], page: Sequence[ResultRow]) -> bool:
    """Return whether a page repeats the last one, apart from the labels of blank nodes."""
    return len(page) == len(last) and all(
        _unlabelled(row) == _unlabelled(before) for before, row in zip(last, page, strict=True)
    )


def _are_equal(page: Sequence[ResultRow]) -> bool:
    """Return whether all rows of a page are one: any page would repeat it."""
    return all(_unlabelled(row) == _unlabelled(page[0]) for row in page)
