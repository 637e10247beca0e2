"""Everything, read page by page.

A server may cut a page where it likes: the next one goes on from there, and only a page with
nothing new is the end. Each page repeats the last row of the one before. If its key is not there,
rows came or went in between, and the reading starts again; a new value of a key moves nothing. So
it does where the same page comes again: a server that takes no heed of OFFSET would never end.
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
    from rsp_engine.replica.sparql_client.rows import ResultRow

__all__ = ["Pages", "Rows"]

_MOST_DIVIDED = 100  # a server that refuses even such a part of a page refuses more than its size


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one request; `is_capped` if the server says that it cuts at so many."""

    rows: Sequence[ResultRow]
    is_capped: bool = False


class _End(Enum):
    ALL = auto()
    PART = auto()
    CHANGED = auto()


@dataclass(frozen=True, slots=True)
class Pages:
    """How a clause is read: so many rows a page, and so often again if it changes meanwhile."""

    pattern: RemotePattern
    page_rows: int
    again: int

    def read(
        self, ask: Callable[[str], Rows | Act], faults: Counter[str]
    ) -> tuple[Sequence[ResultRow], bool]:
        """Return the rows, keys in order, and whether these are all."""
        rows: Sequence[ResultRow] = ()
        for _ in range(self.again + 1):
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
            again = min(len(rows), 1)
            text = page_text(self.pattern, limit + again, len(rows) - again, is_nested=is_nested)
            page = ask(text)
            if isinstance(page, Rows):
                is_next = not again or self._is_continued(rows[-1], page.rows)
                if not is_next or _are_repeated(last, page.rows):
                    return rows, _End.CHANGED
                if len(page.rows) > again:
                    rows += page.rows[again:]
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
        return bool(page) and self._named(last) == self._named(page[0])

    def _named(self, row: ResultRow) -> list[Term | None]:
        """Return what must be there again; the names of blank nodes need not."""
        names = self.pattern.keys or self.pattern.variables
        terms = [row.get(name) for name in names]
        return [None if isinstance(term, BlankNode) else term for term in terms]


def _are_repeated(last: Sequence[ResultRow], page: Sequence[ResultRow]) -> bool:
    """Tell whether a page is the one before: in order, it could not begin with the last row."""
    return page == last and any(row != page[0] for row in page)
