"""The last panes that queries evaluate by themselves, with stores and rows for all of them.

Queries whose windows cut a stream at the same instants meet the same panes, one after another. The
triples of a pane are compared, not only its place: late elements may be in the windows of one query
alone. A pane is kept only where several queries read the stream.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

import pyoxigraph as ox

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from rsp_engine.model.answers import Row
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig

    Rows = dict[str, Row]
    """The rows of a pane by their text."""

__all__ = ["SharedPane", "SharedPanes"]


class SharedPane:
    """The triples of a pane, with what was made of them. Nothing of it may be changed."""

    def __init__(self, triples: Sequence[ox.Triple]) -> None:
        self.triples = triples
        self._rows: list[tuple[SparqlConfig, Rows]] = []

    @cached_property
    def store(self) -> ox.Store:
        """A store with the triples in its default graph."""
        store = ox.Store()
        store.extend([ox.Quad(t.subject, t.predicate, t.object) for t in self.triples])
        return store

    def rows(self, query: SparqlConfig, evaluate: Callable[[SharedPane], Rows]) -> Rows:
        """Return the rows of a query, evaluated once."""
        for other, rows in self._rows:
            if other == query:
                return rows
        rows = evaluate(self)
        self._rows.append((query, rows))
        return rows


class SharedPanes:
    """The last panes of a run, one for each way in which windows cut a stream.

    >>> triple = ox.Triple(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.NamedNode("urn:o"))
    >>> panes = SharedPanes()
    >>> for _ in range(2):
    ...     panes.join("urn:stream")
    >>> panes.at("urn:stream", [triple]) is panes.at("urn:stream", [triple])
    True
    """

    def __init__(self) -> None:
        self._readers: Counter[Hashable] = Counter()
        self._last: dict[Hashable, SharedPane] = {}

    def join(self, cut: Hashable) -> None:
        """Add a reader of the panes of a cut, before the first pane."""
        self._readers[cut] += 1

    def at(self, cut: Hashable, triples: Sequence[ox.Triple]) -> SharedPane:
        """Return the pane with these triples."""
        last = self._last.get(cut)
        if last is not None and last.triples == triples:
            return last
        pane = SharedPane(triples)
        if self._readers[cut] > 1:
            self._last[cut] = pane
        return pane
