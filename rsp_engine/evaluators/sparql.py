"""R2R on the general path: the content of the windows, asked by Oxigraph in full SPARQL 1.1.

The order of rows is part of the answer: Oxigraph's order among ties is arbitrary, so an ordered
query carries conditions that leave no ties, and rows of any other are sorted here: by their text
in N-Triples.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Any

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
)
from rsp_engine.operators.windows.arrival_times import ArrivalTimes
from rsp_engine.operators.windows.window_graph import WindowGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.windows.insertion_order import OrderedGraph
    from rsp_engine.operators.windows.scan import Contents

__all__ = ["SparqlEvaluator"]

_MANY = 10_000  # quads that are gone: before that, a new store is not worth its while
_MADE_NAME = re.compile(r"(?<![^\t])_:made[0-9a-f]{16}x[0-9]+x[0-9]+(?![^\t])")
_MADE_NODE = re.compile(r"(?<![^\t])_:[0-9a-f]{1,32}(?![^\t])")


class SparqlEvaluator:
    """Evaluates a query over the windows as named graphs of a store, beside the static ones.

    Where the answer depends on the order of triples, those of static graphs are in term order.
    """

    def __init__(self, config: SparqlConfig, store: ox.Store, windows: Sequence[str]) -> None:
        self.config = config
        self.may_give_blank_nodes = config.template is not None
        self._static = [ox.DefaultGraph(), *store.named_graphs()]
        self._size = len(store)
        order = config.needs_order
        self.store = self._emptied(store) if order and self._size else store
        """It is another one from time to time."""
        self._times = ArrivalTimes()
        self._latest = (
            None if config.latest is None else LatestSolutions(config.latest, self._times)
        )
        self._asking = SparqlQuery(config, {CAME: self._came, LATEST: self._is_latest})
        self._graphs = [WindowGraph(self.store, name, in_order=order) for name in windows]
        self._held: list[OrderedGraph] = [*self._graphs]
        self._known: dict[str, tuple[str, Row]] = {}

    def stats(self) -> dict[str, int | bool]:
        """Return how many triples the windows hold, each by itself; the answer is exact."""
        return {"triples": sum(map(len, self._graphs)), "exact": True}

    def answer(self, scans: Sequence[Contents], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the content of the scans, at an instant."""
        self.move(scans)
        return self.ask(now)

    def move(self, scans: Sequence[Contents]) -> None:
        """Give the windows the content of the scans."""
        for graph, scan in zip(self._graphs, scans, strict=True):
            graph.move(scan.content())
        if self.config.timed is not None:
            self._times.move(scans[self.config.timed])
        self.tidy()

    def hold(self, graph: OrderedGraph) -> None:
        """Let another graph stand beside the windows; it has its data from elsewhere."""
        self._held.append(graph)

    def tidy(self) -> None:
        """Fill a new store if this one is out of order, or keeps too much that is gone."""
        gone = sum(graph.gone for graph in self._held)
        is_full = gone > _MANY + self._size + sum(map(len, self._held))
        order = self.config.needs_order
        if not is_full and not (order and not all(g.is_in_order() for g in self._held)):
            return
        self.store = self._emptied(self.store)
        for graph in self._held:
            graph.move_to(self.store)

    def _emptied(self, store: ox.Store) -> ox.Store:
        """Return a new store that holds the static graphs only."""
        quads = [
            q for name in self._static for q in store.quads_for_pattern(None, None, None, name)
        ]
        made = ox.Store()
        for name in self._static:
            made.add_graph(name)
        made.extend(sorted(quads, key=str) if self.config.needs_order else quads)
        return made

    def ask(self, now: int) -> Solutions | Graph | Boolean:
        """Return the answer over what the store holds, at an instant."""
        if self._latest is not None:
            self._latest.move(self.store, now)
        result = self._asking.ask(self.store, now)
        if isinstance(result, ox.QueryBoolean):
            return Boolean(bool(result))
        return answer_content(self.config, self._rows(result))

    def _came(self, *terms: Any) -> ox.Literal | None:  # noqa: ANN401 - of a triple, or a node
        came = self._times.of([ox.Triple(*terms) if len(terms) > 1 else terms[0]])
        return None if came is None else ox.Literal(came)

    def _is_latest(self, *terms: Term) -> ox.Literal:
        return ox.Literal(self._latest is None or self._latest.holds(terms))

    def state(self) -> StateData:
        """Return what the windows do not tell: they are filled again from the scans."""
        return {"may_give_blank_nodes": self.may_give_blank_nodes}

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
        self.may_give_blank_nodes = state["may_give_blank_nodes"]

    def _rows(self, solutions: ox.QuerySolutions) -> list[Row]:
        """Return the solutions in order.

        Oxigraph writes them as text much faster than it hands them over, and windows overlap: only
        lines that the evaluation before did not have are read.
        """
        text = (solutions.serialize(format=ox.QueryResultsFormat.TSV) or b"").decode()
        self.may_give_blank_nodes |= "\n_:" in text or "\t_:" in text
        header, *lines = text[:-1].split("\n")
        if self.config.makes_nodes:
            lines = _with_named_nodes(sorted(lines, key=_without_made_nodes))
        known = self._known
        unknown = dict.fromkeys(line for line in lines if line not in known)
        fresh = dict(zip(unknown, self._read(header, unknown), strict=True))
        self._known = {line: known.get(line) or fresh[line] for line in lines}
        found = list(map(self._known.__getitem__, lines))
        if not self.config.is_ordered:
            found.sort(key=_order_of_made if self.config.makes_nodes else itemgetter(0))
        offset, limit = self.config.cut
        return [row for _, row in found[offset : None if limit is None else offset + limit]]

    def _read(self, header: str, lines: Iterable[str]) -> Iterator[tuple[str, Row]]:
        """Return the rows of some lines, each with the text that orders it."""
        table = "\n".join([header, *lines, ""]).encode()
        read = ox.parse_query_results(table, format=ox.QueryResultsFormat.TSV)
        assert isinstance(read, ox.QuerySolutions), "a table holds solutions"  # noqa: S101
        return ((row_text(terms), as_row(self.config, terms)) for terms in map(tuple, read))


def _without_made_nodes(line: str) -> str:
    """Return what orders a row: BNODE makes labels of chance, so they do not count."""
    return _MADE_NODE.sub("_:", line)


def _order_of_made(row: tuple[str, Row]) -> str:
    return _MADE_NAME.sub("_:", row[0])


def _with_named_nodes(lines: list[str]) -> list[str]:
    """Return rows whose made nodes are named after their row: the same in every evaluation."""
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
