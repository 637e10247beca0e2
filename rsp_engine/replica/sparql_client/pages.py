"""Paged reads of a whole clause.

A server may cut a page anywhere: the next page continues from there, and only a page without new
rows is the end. Each page overlaps with the last row of the page before. If the key of that row is
missing, rows were added or removed in between, and the read restarts; a changed value of a key does
not matter. The read also restarts if a page repeats the one before, since it would never end with a
server that ignores OFFSET.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode

from rsp_engine.replica.sparql_client.faults import CHANGED, ROWS_CUT
from rsp_engine.replica.sparql_client.request_text import page_text
from rsp_engine.replica.sparql_client.retry_decision import Act

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.pattern import RemotePattern
    from rsp_engine.replica.sparql_client.result_table import ResultRow

__all__ = ["Pages", "Rows"]

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
        limit, is_nested = self.page_rows, False
        while True:
            overlap = min(len(rows), 1)
            offset = len(rows) - overlap
            text = page_text(self.pattern, limit + overlap, offset, is_nested=is_nested)
            page = ask(text)
            if isinstance(page, Rows):
                is_next = not overlap or self._is_continued(rows[-1], page.rows)
                if not is_next or _is_repeated(last, page.rows):
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

    def _is_continued(self, last: ResultRow, page: Sequence[ResultRow]) -> bool:
        return bool(page) and self._overlap_terms(last) == self._overlap_terms(page[0])

    def _overlap_terms(self, row: ResultRow) -> list[Term | None]:
        """Return the terms that overlapping rows share. Blank node labels differ between pages."""
        names = self.pattern.keys or self.pattern.variables
        terms = [row.get(name) for name in names]
        return [None if isinstance(term, BlankNode) else term for term in terms]


def _is_repeated(last: Sequence[ResultRow], page: Sequence[ResultRow]) -> bool:
    """Return whether a page repeats the last one: a next page would begin with its last row."""
    return page == last and any(row != page[0] for row in page)
