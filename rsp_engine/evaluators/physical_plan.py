"""The physical plan: configurations of windows, evaluators and services, as plain values.

A saved state can be restored only into a plan of equal identity. Static graphs are files that are
read once, before the query runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from rsp_engine.errors import SourceError
from rsp_engine.io.blank_nodes import ElementNames
from rsp_engine.io.canonical_literals import canonical_triples
from rsp_engine.io.sources.files.rdf import parse_reason
from rsp_engine.model.option import milliseconds
from rsp_engine.replica.endpoints.endpoint import Endpoint, Limits
from rsp_engine.replica.pattern import RemotePattern
from rsp_engine.replica.store.estimator import DeclaredIntervals, Estimation, LearnedIntervals

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rsp_engine.evaluators.protocol import EvaluatorConfig
    from rsp_engine.grammar.tree import RegisteredR2S
    from rsp_engine.model.windows import Bounds, CountFrame, TimeFrame
    from rsp_engine.operators.joins.triple_selection import TripleSelection
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.element_solutions import ElementBlock
    from rsp_engine.options import ReportKind, ServiceOptions
    from rsp_engine.policies.policy import Policy

__all__ = [
    "Connect",
    "PhysicalPlan",
    "ServicePlan",
    "StaticGraph",
    "WindowScan",
    "block_graphs",
    "changes_stream",
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


Connect = Callable[[RemotePattern], Endpoint]
"""Opens an endpoint for the pattern of a SERVICE clause."""


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """The plan of one SERVICE clause."""

    pattern: RemotePattern
    connect: Connect
    policy: Policy
    options: ServiceOptions
    is_pushed: bool = False
    """Whether a change feed pushes the changes."""
    modified: str | None = None
    """The property with the time of the last modification of a key: the change signal."""
    instead: str | None = None
    """The policy that this one replaces, and why."""
    step: int = 60_000
    """The time between two evaluations in milliseconds: before anything is learned, each key is
    taken to change once in it, so that the first evaluation already refreshes."""

    @property
    def limits(self) -> Limits:
        """The limits of the requests of an evaluation."""
        deadline, budget = self.options.deadline, self.options.budget_ms
        times = [] if deadline is None else [milliseconds(deadline)]
        times += [] if budget is None else [budget]
        return Limits(self.options.max_requests, min(times, default=None))

    @property
    def most_keys(self) -> int | None:
        """The most keys that an evaluation may fetch; None without a limit."""
        if self.policy.proposer is None:
            return 0
        return self.options.most_keys if self.policy.is_bounded else None

    @property
    def estimation(self) -> Estimation:
        """How the change intervals of keys are estimated."""
        interval = self.options.change_interval
        if interval is None:
            return LearnedIntervals(self.step)
        return DeclaredIntervals(milliseconds(interval))


def changes_stream(service: str) -> str:
    """Return the name of the change feed of a service, by which drivers know it."""
    return f"urn:rsp-engine:changes:{service}"


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
        "limits": {
            "max_requests": plan.limits.max_requests,
            "deadline_ms": plan.limits.deadline_ms,
        },
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
