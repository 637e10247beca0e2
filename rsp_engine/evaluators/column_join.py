"""The column-join evaluator: triple patterns that are joined on arrays, over all panes of a window.

A query that only projects the solutions, or aggregates groups of them, is answered from the
columns. For any other, the join finds the triples that can contribute to an answer, and Oxigraph
evaluates the query over these: what is left out is in no solution, so the answer is that of the
general path. Where most triples contribute, the general path itself is cheaper, and takes the next
windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.model.terms.lazy_text import WrittenTriples
from rsp_engine.model.terms.matched_triples import MatchedTriples
from rsp_engine.model.terms.ntriples import read_terms
from rsp_engine.operators.joins.column_join import ColumnJoin, TooManySolutionsError
from rsp_engine.operators.joins.row_order import RowOrder
from rsp_engine.operators.sparql.sparql_query import answer_content, as_row
from rsp_engine.operators.windows.distinct_count import DistinctCount

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    import pyoxigraph as ox

    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.model.answers import Boolean, Graph, Row, Solutions
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.joins.column_join import JoinConfig, JoinedColumns
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.scan import Contents

__all__ = ["ColumnJoinConfig", "ColumnJoinEvaluator"]

CodeRow = tuple[int, ...]

_GENERAL_WINDOWS = 15
"""How many windows the general path takes after one in which most triples contribute."""


_OLD_ROWS = 1_000
"""How many rows of earlier windows are kept besides twice those of the last one."""


@dataclass(frozen=True, slots=True)
class ColumnJoinConfig:
    """The query as on the general path, and the join of its window."""

    tag: ClassVar[str] = "ColumnJoin"
    scan_kind: ClassVar[ScanKind] = "triples"

    query: SparqlConfig
    join: JoinConfig

    def evaluator(self, context: EvaluatorContext) -> ColumnJoinEvaluator:
        """Return the evaluator of a run."""
        general = SparqlEvaluator(self.query, context.store(), context.windows)
        return ColumnJoinEvaluator(self, general)


class ColumnJoinEvaluator:
    """Joins the patterns of one window. Memory: its triples that match, and those of Oxigraph.

    From one window to the next, only panes that enter or leave are encoded, and only triples that
    begin or cease to contribute are given to Oxigraph. All triples are counted.
    """

    def __init__(self, config: ColumnJoinConfig, general: SparqlEvaluator) -> None:
        self.config = config
        self._general = general
        self._join = ColumnJoin(config.join)
        self._count = DistinctCount()
        self._number = 0  # of the last window that was joined
        self._left_to_general = 0
        self._stats: dict[str, int | bool] = {}
        self._codes = self._join.codes
        self._order = RowOrder(len(config.query.variables))
        self._known: dict[CodeRow, Row] = {}  # those of the last windows

    @property
    def may_give_blank_nodes(self) -> bool:
        return self._general.may_give_blank_nodes

    def stats(self) -> dict[str, int | bool]:
        """Return the statistics of the last answer."""
        return self._stats

    def answer(self, scans: Sequence[Contents], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the only scan, at an instant."""
        [scan] = scans
        panes = dict(_matched(scan))
        count = self._count.move({key: pane.fingerprints for key, pane in panes.items()})
        self._stats = {"triples": count, "exact": True}
        if self._left_to_general:
            self._left_to_general -= 1
        elif (answer := self._joined(panes, now)) is not None:
            return answer
        return self._general.answer(scans, now)

    def _joined(
        self, panes: Mapping[Hashable, MatchedTriples], now: int
    ) -> Solutions | Graph | Boolean | None:
        """Return the answer by the join; None if the general path is cheaper."""
        self._join.move(panes)
        try:
            joined = self._join.solutions()
            if self.config.join.is_complete:
                return self._rows(self._join.with_optionals(joined))
            triples = self._join.contributing(joined)
        except TooManySolutionsError:
            return None
        if 2 * len(triples) > len(self._join):
            self._left_to_general = _GENERAL_WINDOWS
            return None
        self._number += 1
        return self._general.answer([_Part(self._number, triples)], now)

    def state(self) -> StateData:
        """Return the state as plain data: that of the general path."""
        return self._general.state()

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self._general.restore(state)

    def _rows(self, joined: JoinedColumns) -> Solutions | Graph:
        """Return the projected rows, sorted by text. Known rows are not read again."""
        query = self.config.query
        columns = self._join.columns(joined, query.variables)
        if self._join.codes is not self._codes:
            self._codes, self._known = self._join.codes, {}
            self._order = RowOrder(len(columns))
        order = self._order.of(columns, self._codes.texts())
        rows = list(zip(*(column[order].tolist() for column in columns), strict=True))
        if self.config.join.is_distinct:
            rows = list(dict.fromkeys(rows))
        if self._codes.has_blank_nodes and not self.may_give_blank_nodes:
            self._general.may_give_blank_nodes = self._have_blank_nodes(rows)
        offset, limit = query.cut
        rows = rows[offset : None if limit is None else offset + limit]
        known = self._known
        new = [row for row in rows if row not in known]
        known.update(zip(new, self._read(new), strict=True))
        found = list(map(known.__getitem__, rows))
        if len(known) > 2 * len(rows) + _OLD_ROWS:
            self._known = dict(zip(rows, found, strict=True))
        return answer_content(query, found)

    def _have_blank_nodes(self, rows: Iterable[CodeRow]) -> bool:
        texts = self._codes.texts()
        return any("_:" in texts[code] for code in set().union(*rows))

    def _read(self, rows: Sequence[CodeRow]) -> Iterator[Row]:
        """Read rows; most terms are in several, and read once."""
        query, texts = self.config.query, self._codes.texts()
        codes = list(set().union(*rows))
        names = [texts[code] for code in codes]
        read = iter(read_terms([name for name in names if name]))
        terms: dict[int, Term | None] = {
            code: next(read) if name else None for code, name in zip(codes, names, strict=True)
        }
        return (as_row(query, [terms[code] for code in row]) for row in rows)


def _matched(scan: Contents) -> Iterator[tuple[Hashable, MatchedTriples]]:
    """Yield the panes of a window, whose scan selects triples."""
    for key, pane in scan.content():
        assert isinstance(pane, MatchedTriples), "the plan has a selection"  # noqa: S101
        yield key, pane


@dataclass(frozen=True, slots=True)
class _Part:
    """The content of a window as one part of its own, given as lines of text."""

    number: int
    lines: list[str]

    def content(self) -> Iterable[tuple[Hashable, Sequence[ox.Triple]]]:
        return [(self.number, WrittenTriples("\n".join(self.lines)))]
