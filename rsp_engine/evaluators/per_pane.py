"""R2R pane by pane: for queries whose solutions each come from one triple.

A query of one triple pattern over one window has no solution that spans two panes, so each pane is
asked once, and a window has the rows of its panes. The variables of the pattern tell its triple, so
equal rows of two panes come from one triple that is in both, and count once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyoxigraph as ox

from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.operators.sparql.sparql_query import (
    SparqlConfig,
    SparqlQuery,
    answer_content,
    as_row,
)
from rsp_engine.operators.windows.window_content import WindowContent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.model.answers import Graph, Row, Solutions
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.sparql.one_pattern import OnePattern
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["PerPaneConfig", "PerPaneEvaluator"]


@dataclass(frozen=True, slots=True)
class PerPaneConfig(SparqlConfig):
    """As for the general path; the text is asked of the default graph, and orders nothing.

    A query that asks for nothing beyond the solutions of its `pattern` has it here, and the text
    need not be asked.
    """

    tag: ClassVar[str] = "PaneWise"

    pattern: OnePattern | None = None


class PerPaneEvaluator:
    """Evaluates a query once per pane. Memory: the triples and rows of the panes of open windows.

    The rows of the window before are kept by their text, which tells them apart and orders them:
    only those of panes that come and go are touched.
    """

    def __init__(self, config: PerPaneConfig) -> None:
        self.config = config
        self.may_give_blank_nodes = config.template is not None
        self._asking = SparqlQuery(config)
        self._others = WindowContent[ox.Triple]()
        self._texts = WindowContent[str]()
        self._rows: dict[str, Row] = {}

    def stats(self) -> dict[str, int | bool]:
        """Return how many triples the window holds, and that the answer is exact."""
        rows = 0 if self.config.pattern is None else len(self._rows)
        return {"triples": rows + len(self._others), "exact": True}

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph:
        """Return the answer over the content of the only scan, at an instant."""
        [scan] = scans
        panes, rows = dict(scan.content()), self._rows
        for key in self._others.going(panes):
            self._others.remove(key)
            for text in self._texts.remove(key):
                del rows[text]
        for key in self._others.coming(panes):
            triples = list(panes[key])
            self._others.add(key, self._not_told_by_rows(triples))
            found = self._asked(triples, now)
            # What is in order pane by pane is quick to sort.
            for text in self._texts.add(key, sorted(found)):
                rows[text] = found[text]
        return answer_content(self.config, [rows[text] for text in sorted(rows)])

    def state(self) -> StateData:
        """Return what the window does not tell: its panes are asked again."""
        return {"may_give_blank_nodes": self.may_give_blank_nodes}

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
        self.may_give_blank_nodes = state["may_give_blank_nodes"]

    def _not_told_by_rows(self, triples: Sequence[ox.Triple]) -> Sequence[ox.Triple]:
        """Return the triples to count beside the rows: each solution of a pattern is a triple."""
        return triples if self.config.pattern is None else self.config.pattern.others(triples)

    def _asked(self, triples: Sequence[ox.Triple], now: int) -> dict[str, Row]:
        """Return the rows of a pane by their text."""
        solutions = self._solutions(triples, now)
        rows = {row_text(terms): as_row(self.config, terms) for terms in solutions}
        if not self.may_give_blank_nodes:
            self.may_give_blank_nodes = any("_:" in text for text in rows)
        return rows

    def _solutions(
        self, triples: Sequence[ox.Triple], now: int
    ) -> Iterable[tuple[Term | None, ...]]:
        if self.config.pattern is not None:
            return self.config.pattern.solutions(triples, self.config.variables)
        store = ox.Store()
        store.extend([ox.Quad(t.subject, t.predicate, t.object) for t in triples])
        solutions = self._asking.ask(store, now)
        assert isinstance(solutions, ox.QuerySolutions), "only SELECT is asked here"  # noqa: S101
        return map(tuple, solutions)
