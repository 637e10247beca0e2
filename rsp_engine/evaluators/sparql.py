"""The SPARQL evaluator, the general path: Oxigraph evaluates full SPARQL 1.1 over the windows.

The order of rows is part of the answer, and Oxigraph's order among ties is arbitrary. So a query
with ORDER BY gets further conditions that leave no ties, and the rows of any other query are sorted
by their N-Triples text.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import pyoxigraph as ox

from rsp_engine.model.answers import Boolean, Graph, Row, Solutions
from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.operators.sparql.latest_solutions import LatestSolutions
from rsp_engine.operators.sparql.sparql_query import (
    CAME,
    LATEST,
    SparqlConfig,
    SparqlQuery,
    answer_content,
    as_row,
    read_lines,
    solution_lines,
)
from rsp_engine.operators.windows.arrival_times import ArrivalTimes
from rsp_engine.operators.windows.window_graph import WindowGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.windows.insertion_order import OrderedGraph
    from rsp_engine.operators.windows.scan import Contents

__all__ = ["GeneralConfig", "SparqlEvaluator"]

_MANY = 10_000  # removed quads below which a new store does not pay off
_BLANK_NODE = re.compile(r"(?<![^\t])_:")
_MADE_NAME = re.compile(r"(?<![^\t])_:made[0-9a-f]{16}x[0-9]+x[0-9]+(?![^\t])")
_MADE_NODE = re.compile(r"(?<![^\t])_:[0-9a-f]{1,32}(?![^\t])")


@dataclass(frozen=True, slots=True)
class GeneralConfig:
    """The general path: the query and nothing else."""

    tag: ClassVar[str] = "General"

    query: SparqlConfig

    @property
    def scan_kind(self) -> ScanKind:
        """Triples; with their times if the answer depends on these."""
        return "timed triples" if self.query.is_timed else "triples"

    def evaluator(self, context: EvaluatorContext) -> SparqlEvaluator:
        """Return the evaluator of a run."""
        return SparqlEvaluator(self.query, context.store(), context.windows)


class SparqlEvaluator:
    """Evaluates a query over a store with the windows and the static graphs as named graphs.

    If the answer depends on the insertion order of triples, static graphs are in term order.
    """

    def __init__(self, config: SparqlConfig, store: ox.Store, windows: Sequence[str]) -> None:
        self.config = config
        self.may_give_blank_nodes = config.template is not None
        self._static = [ox.DefaultGraph(), *store.named_graphs()]
        self._size = len(store)
        order = config.needs_order
        self.store = self._static_store(store) if order and self._size else store
        """The store, which `tidy` replaces from time to time."""
        self._times = ArrivalTimes()
        self._latest = (
            None if config.latest is None else LatestSolutions(config.latest, self._times)
        )
        self._query = SparqlQuery(config, {CAME: self._came, LATEST: self._is_latest})
        self._graphs = [WindowGraph(self.store, name, in_order=order) for name in windows]
        self._all_graphs: list[OrderedGraph] = [*self._graphs]
        self._known: dict[str, tuple[str, Row]] = {}

    def stats(self) -> dict[str, int | bool]:
        """Return the statistics of the last answer. A triple in two windows counts twice."""
        return {"triples": sum(map(len, self._graphs)), "exact": True}

    def answer(self, scans: Sequence[Contents], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the scans, at an instant."""
        self.move(scans)
        return self.ask(now)

    def move(self, scans: Sequence[Contents]) -> None:
        """Move the window graphs to the content of the scans."""
        for graph, scan in zip(self._graphs, scans, strict=True):
            graph.move(scan.content())
        if self.config.timed is not None:
            self._times.move(scans[self.config.timed])
        self.tidy()

    def hold(self, graph: OrderedGraph) -> None:
        """Add another graph to the store, which its owner fills."""
        self._all_graphs.append(graph)

    def tidy(self) -> None:
        """Bring the store up to date; rebuild it if that is cheaper, or if it is out of order."""
        if not (self._is_full() or self._is_out_of_order()):
            for window in self._graphs:
                window.update_store()
            return
        self.store = self._static_store(self.store)
        for graph in self._all_graphs:
            graph.move_to(self.store)

    def _is_full(self) -> bool:
        """Return whether more quads are to remove, or were removed, than a new store would hold."""
        live = self._size + sum(map(len, self._all_graphs))
        entering = sum(graph.entering for graph in self._graphs)
        leaving = sum(graph.leaving for graph in self._graphs)
        gone = sum(graph.gone for graph in self._all_graphs)
        return leaving > live - entering or gone > live + _MANY

    def _is_out_of_order(self) -> bool:
        return self.config.needs_order and not all(g.is_in_order() for g in self._all_graphs)

    def _static_store(self, store: ox.Store) -> ox.Store:
        """Return a new store with the static graphs only."""
        quads = [
            q for name in self._static for q in store.quads_for_pattern(None, None, None, name)
        ]
        fresh = ox.Store()
        for name in self._static:
            fresh.add_graph(name)
        fresh.extend(sorted(quads, key=str) if self.config.needs_order else quads)
        return fresh

    def ask(self, now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the current content of the store, at an instant."""
        if self._latest is not None:
            self._latest.move(self.store, now)
        result = self._query.ask(self.store, now)
        if isinstance(result, ox.QueryBoolean):
            return Boolean(bool(result))
        return answer_content(self.config, self._rows(result))

    def _came(self, *terms: Any) -> ox.Literal | None:  # noqa: ANN401 - three terms, or one node
        time = self._times.of([ox.Triple(*terms) if len(terms) > 1 else terms[0]])
        return None if time is None else ox.Literal(time)

    def _is_latest(self, *terms: Term) -> ox.Literal:
        return ox.Literal(self._latest is None or self._latest.holds(terms))

    def state(self) -> StateData:
        """Return the state as plain data; the store is rebuilt from the scans."""
        return {"may_give_blank_nodes": self.may_give_blank_nodes}

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self.may_give_blank_nodes = state["may_give_blank_nodes"]

    def _rows(self, solutions: ox.QuerySolutions) -> list[Row]:
        """Return the solutions in order. Lines of the last evaluation are not read again."""
        header, lines = solution_lines(solutions)
        if self.config.makes_nodes:
            lines = _with_named_nodes(sorted(lines, key=_without_made_nodes))
        known = self._known
        unknown = dict.fromkeys(line for line in lines if line not in known)
        if not self.may_give_blank_nodes:
            self.may_give_blank_nodes = any(map(_BLANK_NODE.search, unknown))
        fresh = dict(zip(unknown, self._read(header, unknown), strict=True))
        self._known = {line: known.get(line) or fresh[line] for line in lines}
        rows = list(map(self._known.__getitem__, lines))
        if not self.config.is_ordered:
            rows.sort(key=_order_of_made if self.config.makes_nodes else itemgetter(0))
        offset, limit = self.config.cut
        return [row for _, row in rows[offset : None if limit is None else offset + limit]]

    def _read(self, header: str, lines: Iterable[str]) -> Iterator[tuple[str, Row]]:
        """Return the rows of lines, each with the text that orders it."""
        read = read_lines(header, lines)
        return ((row_text(terms), as_row(self.config, terms)) for terms in read)


def _without_made_nodes(line: str) -> str:
    """Return the sort key of a row, without the random labels of BNODE."""
    return _MADE_NODE.sub("_:", line)


def _order_of_made(row: tuple[str, Row]) -> str:
    return _MADE_NAME.sub("_:", row[0])


def _with_named_nodes(lines: list[str]) -> list[str]:
    """Return rows with the labels of BNODE derived from the row: equal in every evaluation."""
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()
    named = []
    for line in lines:
        row = hashlib.sha256(_without_made_nodes(line).encode()).hexdigest()[:16]
        seen[row] += 1
        for place, label in enumerate(_MADE_NODE.findall(line)):
            names.setdefault(label, f"_:made{row}x{seen[row]}x{place}")
        named.append(_MADE_NODE.sub(lambda label: names[label[0]], line))
    return named
