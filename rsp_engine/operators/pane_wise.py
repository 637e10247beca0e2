"""R2R pane by pane: for queries whose solutions each come from one triple.

A query of one triple pattern over one window has no solution that spans two panes, so each pane is
asked once, and a window has the rows of its panes. The variables of the pattern tell its triple, so
equal rows of two panes come from one triple that is in both, and count once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.operators.asking import Asking, GeneralConfig, as_row, content_of, row_text
from rsp_engine.operators.content import Content

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from rsp_engine.model.answers import Graph, Row, Solutions
    from rsp_engine.operators.scan import Scan

__all__ = ["PaneWise", "PaneWiseConfig"]


@dataclass(frozen=True, slots=True)
class PaneWiseConfig(GeneralConfig):
    """As for the general path; the text is asked of the default graph, and orders nothing."""


class PaneWise:
    """Evaluates a query once per pane. Memory: the rows of the panes of open windows."""

    def __init__(self, config: PaneWiseConfig) -> None:
        self.config = config
        self.may_give_blank_nodes = config.template is not None
        self._asking = Asking(config)
        self._triples = Content[ox.Triple]()
        self._rows: dict[Hashable, dict[str, Row]] = {}

    @property
    def triples(self) -> int:
        """How many triples the window holds."""
        return len(self._triples)

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph:
        """Return the answer over the content of the only scan, at an instant."""
        [scan] = scans
        panes = dict(scan.content())
        for key in self._triples.going(panes):
            self._triples.remove(key)
            del self._rows[key]
        for key in self._triples.coming(panes):
            self._triples.add(key, panes[key])
            self._rows[key] = self._asked(panes[key], now)
        rows: dict[str, Row] = {}
        for pane in self._rows.values():
            rows |= pane
        return content_of(self.config, [rows[text] for text in sorted(rows)])

    def _asked(self, triples: Sequence[ox.Triple], now: int) -> dict[str, Row]:
        """Return the rows of a pane by their text, which tells them apart and orders them."""
        store = ox.Store()
        store.extend([ox.Quad(t.subject, t.predicate, t.object) for t in triples])
        solutions = self._asking.ask(store, now)
        assert isinstance(solutions, ox.QuerySolutions), "only SELECT is asked here"  # noqa: S101
        rows = {row_text(terms): as_row(self.config, terms) for terms in map(tuple, solutions)}
        if not self.may_give_blank_nodes:
            self.may_give_blank_nodes = any("_:" in text for text in rows)
        return dict(sorted(rows.items()))  # runs that are in order are quick to merge
