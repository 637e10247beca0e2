"""The per-pane evaluator: for queries of which each solution comes from a single triple.

A query of one triple pattern over one window has no solution that spans two panes, so each pane is
evaluated once, and a window has the rows of its panes. The variables of the pattern identify its
triple, so equal rows of two panes come from a triple that is in both, and count once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import pyoxigraph as ox

from rsp_engine.evaluators.shared_panes import SharedPanes
from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.sparql.sparql_query import (
    SparqlQuery,
    answer_content,
    as_row,
)
from rsp_engine.operators.windows.window_content import WindowContent

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.evaluators.shared_panes import SharedPane
    from rsp_engine.model.answers import Graph, Row, Solutions
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.sparql.one_pattern import OnePattern
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["PerPaneConfig", "PerPaneEvaluator"]


@dataclass(frozen=True, slots=True)
class PerPaneConfig:
    """The text of the query reads the default graph and has no ORDER BY.

    `pattern` is set if the rows are just the solutions of a triple pattern: then Oxigraph is not
    needed.
    """

    tag: ClassVar[str] = "PaneWise"
    scan_kind: ClassVar[ScanKind] = "triples"

    query: SparqlConfig
    pattern: OnePattern | None

    def evaluator(self, context: EvaluatorContext) -> PerPaneEvaluator:
        """Return the evaluator of a run. Static graphs are not loaded: the query reads none."""
        [scan] = context.scans
        assert isinstance(scan.frame, TimeFrame), "panes are parts of time windows"  # noqa: S101
        return PerPaneEvaluator(self, context.panes, (scan.stream, scan.frame.cut))


class PerPaneEvaluator:
    """Evaluates a query once per pane. Memory: the triples and rows of the panes of open windows.

    Rows are kept by their text, which identifies and orders them. From one window to the next, only
    the rows of panes that enter or leave are touched.
    """

    def __init__(
        self, config: PerPaneConfig, shared: SharedPanes | None = None, cut: Hashable = None
    ) -> None:
        self.config = config
        self._shared, self._cut = shared or SharedPanes(), cut
        self._shared.join(cut)
        self.may_give_blank_nodes = config.query.template is not None
        self._query = SparqlQuery(config.query)
        self._others = WindowContent[ox.Triple]()
        self._texts = WindowContent[str]()
        self._rows: dict[str, Row] = {}

    def stats(self) -> dict[str, int | bool]:
        """Return the statistics of the last answer."""
        rows = 0 if self.config.pattern is None else len(self._rows)
        return {"triples": rows + len(self._others), "exact": True}

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph:
        """Return the answer over the only scan, at an instant."""
        [scan] = scans
        panes, rows = dict(scan.content()), self._rows
        for key in self._others.going(panes):
            self._others.remove(key)
            for text in self._texts.remove(key):
                del rows[text]
        for key in self._others.coming(panes):
            triples = list(panes[key])
            self._others.add(key, self._not_in_rows(triples))
            pane = self._shared.at(self._cut, triples)
            new = pane.rows(self.config.query, partial(self._pane_rows, now=now))
            if not self.may_give_blank_nodes:
                self.may_give_blank_nodes = any("_:" in text for text in new)
            # Sorted runs make the sort of the whole window fast.
            for text in self._texts.add(key, sorted(new)):
                rows[text] = new[text]
        return answer_content(self.config.query, [rows[text] for text in sorted(rows)])

    def state(self) -> StateData:
        """Return the state as plain data; the rows are computed again from the panes."""
        return {"may_give_blank_nodes": self.may_give_blank_nodes}

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self.may_give_blank_nodes = state["may_give_blank_nodes"]

    def _not_in_rows(self, triples: Sequence[ox.Triple]) -> Sequence[ox.Triple]:
        """Return the triples without a row. With a `pattern`, each row is a triple."""
        return triples if self.config.pattern is None else self.config.pattern.others(triples)

    def _pane_rows(self, pane: SharedPane, now: int) -> dict[str, Row]:
        """Return the rows of a pane by their text."""
        query = self.config.query
        return {row_text(terms): as_row(query, terms) for terms in self._solutions(pane, now)}

    def _solutions(self, pane: SharedPane, now: int) -> Iterable[tuple[Term | None, ...]]:
        if self.config.pattern is not None:
            return self.config.pattern.solutions(pane.triples, self.config.query.variables)
        solutions = self._query.ask(pane.store, now)
        assert isinstance(solutions, ox.QuerySolutions), "the text is a SELECT query"  # noqa: S101
        return map(tuple, solutions)
