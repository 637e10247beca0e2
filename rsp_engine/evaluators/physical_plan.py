"""The physical plan: configurations of windows, evaluators and services, as plain values.

A saved state can be restored only into a plan of equal identity. Static graphs are files that are
read once, before the query runs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from rsp_engine.errors import SourceError
from rsp_engine.io.blank_nodes import ElementNames
from rsp_engine.io.canonical_literals import canonical_triples
from rsp_engine.io.sources.files.rdf import parse_reason

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rsp_engine.evaluators.protocol import EvaluatorConfig
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.grammar.tree import RegisteredR2S
    from rsp_engine.model.windows import Bounds, CountFrame, TimeFrame
    from rsp_engine.operators.joins.triple_selection import TripleSelection
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.element_solutions import ElementBlock
    from rsp_engine.options import ReportKind

__all__ = [
    "PhysicalPlan",
    "StaticGraph",
    "WindowScan",
    "block_graphs",
    "load_graphs",
    "plan_identity",
]


@dataclass(frozen=True, slots=True)
class WindowScan:
    """A window over a stream.

    With `blocks`, it holds solutions of its elements, not triples. With a `selection`, it holds
    only the triples that the query can match.
    """

    window: str
    stream: str
    frame: TimeFrame | CountFrame
    blocks: tuple[ElementBlock, ...] = ()
    selection: TripleSelection | None = None


@dataclass(frozen=True, slots=True)
class StaticGraph:
    """A file with the triples of a named graph, or of the default graph if `name` is None.

    `base` is the IRI in FROM or FROM NAMED: relative IRIs in the file are resolved against it.
    """

    name: str | None
    path: Path
    base: str


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """The plan of a query. `why` is the reason for the choice of the operator."""

    name: str
    scans: tuple[WindowScan, ...]
    graphs: tuple[StaticGraph, ...]
    operator: EvaluatorConfig
    why: str
    r2s: RegisteredR2S
    report: ReportKind
    bounds: Bounds
    feeds: str | None = None
    """The IRI of the stream of answers, if other queries can read it."""
    services: tuple[ServicePlan, ...] = ()
    """The plans of the SERVICE clauses, in the order in which the operator evaluates them."""


_TEXTS = ("sparql", "store_query")  # fields with generated text, which is no option


def plan_identity(plan: PhysicalPlan) -> dict[str, Any]:
    """Return everything that a saved state of the plan depends on, as plain data."""
    operator = plan.operator
    return {
        "query": plan.name,
        "operator": operator.tag,
        "windows": list(map(_window, plan.scans)),
        "options": {**_options(operator.query), **_options(operator)},
        "text": operator.query.sparql,
        "functions": sorted(operator.query.functions),
        "r2s": plan.r2s,
        "report": plan.report,
        "bounds": plan.bounds,
        "feeds": plan.feeds,
        "graphs": [graph.name for graph in plan.graphs],
        "services": list(map(_service, plan.services)),
    }


def _window(scan: WindowScan) -> list[Any]:
    """Return the stream and frame of a window, and the queries of its blocks, if any."""
    texts = [block.store_query.alone.sparql for block in scan.blocks]
    return [scan.window, scan.stream, asdict(scan.frame), *([texts] if texts else [])]


def _options(config: SparqlConfig | EvaluatorConfig) -> dict[str, Any]:
    """Return the numbers, strings and booleans of a configuration."""
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    plain = (str, int, float, type(None))
    return {n: v for n, v in values.items() if isinstance(v, plain) and n not in _TEXTS}


def _service(plan: ServicePlan) -> dict[str, Any]:
    pattern = {n: list(v) if isinstance(v, tuple) else v for n, v in asdict(plan.pattern).items()}
    return {
        **pattern,
        "policy": plan.policy.name,
        "budget": plan.options.budget,
        "n": plan.options.n,
        "limits": asdict(plan.limits),
        "seed": plan.options.seed,
        "snapshot": plan.options.replica == "snapshot",
        "capacity": plan.options.capacity,
        "estimation": asdict(plan.estimation),
        "is_pushed": plan.is_pushed,
        "modified": plan.modified,
    }


def load_graphs(store: ox.Store, graphs: Iterable[StaticGraph]) -> None:
    """Load the files of static graphs, even empty ones; blank nodes of files are kept distinct."""
    names = ElementNames("static graphs")
    for number, graph in enumerate(graphs):
        name = ox.DefaultGraph() if graph.name is None else ox.NamedNode(graph.name)
        if ox.RdfFormat.from_extension(graph.path.suffix.removeprefix(".")) is None:
            hint = "name it after its format: .ttl, .nt, .rdf, .jsonld"
            raise SourceError(f"{graph.path}: the format of this graph is not known", hint)
        try:
            quads = ox.parse(path=graph.path, base_iri=graph.base, without_named_graphs=True)
            triples = names.rename(number, canonical_triples([quad.triple for quad in quads]))
        except (OSError, SyntaxError, ValueError) as error:
            reason = parse_reason(error)
            raise SourceError(f"{graph.path}: this graph cannot be read: {reason}") from None
        store.add_graph(name)
        store.extend(ox.Quad(t.subject, t.predicate, t.object, name) for t in triples)


def block_graphs(blocks: Iterable[ElementBlock], graphs: Iterable[StaticGraph]) -> ox.Store:
    """Return a store with the static graphs if a block reads them, else an empty store."""
    store = ox.Store()
    if any(block.reads_graphs for block in blocks):
        load_graphs(store, graphs)
    return store
