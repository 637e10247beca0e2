"""What the engine does not support, and options that no query uses: refused before a run starts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyoxigraph as ox

from rsp_engine.errors import BindingError, Diagnostic
from rsp_engine.evaluators.incomplete.config import IncompleteConfig
from rsp_engine.evaluators.service.config import ServiceConfig
from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import is_aggregate
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.operators.sparql.sparql_query import SparqlQuery
from rsp_engine.plan.services import unbound_service
from rsp_engine.plan.sparql.general import as_term
from rsp_engine.plan.sparql.service_context import correlated_services

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rsp_engine.evaluators.protocol import EvaluatorConfig
    from rsp_engine.operators.windows.element_solutions import ElementBlock
    from rsp_engine.plan.options import QueryOptions

__all__ = [
    "graph_path",
    "refuse_undeclared",
    "refuse_unused_graphs",
    "refused_by_oxigraph",
    "unsupported_features",
]

_CASTS = {
    XSD + name
    for name in (
        "boolean", "date", "dateTime", "dayTimeDuration", "decimal", "double", "duration", "float",
        "integer", "string", "time", "yearMonthDuration",
    )
}  # fmt: skip


def unsupported_features(query: tree.QueryUnit, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each unsupported feature of a query."""
    if not query.windows:
        hint = "declare a window: FROM NAMED WINDOW :w ON STREAM :s [RANGE 9m STEP 3m]"
        yield Diagnostic("semantic", "the query reads no stream", query.form.span, hint)
    for clause, name in correlated_services(query):
        message = f"EXISTS would pass ?{name} into the conditions of this SERVICE"
        hint = f"move the condition on ?{name} out of the SERVICE, into the EXISTS"
        yield Diagnostic("semantic", message, clause.span, hint)
    # The remote service evaluates the content of a SERVICE clause, and decides what it supports.
    services = tree.find(query, tree.ServicePattern)
    remote = {id(inner) for service in services for inner in tree.walk(service.group)}
    for node in tree.walk(query):
        match node:
            case tree.ServicePattern() if id(node) not in remote:
                yield from filter(None, [unbound_service(node, options)])
            case tree.NamedCall(name, _) if id(node) in remote:
                message = f"{name} is a function of this engine, but SERVICE is evaluated remotely"
                hint = "call it outside the SERVICE, on the variables that SERVICE returns"
                yield Diagnostic("semantic", message, node.span, hint)
            case tree.NamedCall(name, _) if name not in options.functions:
                message = f"the function {name} is not registered"
                hint = _definition_hint(name, node)
                yield Diagnostic("semantic", message, node.span, hint)
            case tree.FunctionCall(function, _, _) if id(node) not in remote:
                yield from _refused_function(node, function, options)
            case tree.From(graph) | tree.FromNamed(graph):
                yield from _refused_graph(graph, options)
            case tree.Iri() | tree.Literal() | tree.BlankNode():
                yield from _refused_term(node)
            case _:
                continue


def _refused_function(
    node: tree.FunctionCall, function: tree.Iri, options: QueryOptions
) -> Iterator[Diagnostic]:
    if is_aggregate(node):
        message = f"the aggregate <{function.value}> is not known"
        yield Diagnostic("semantic", message, node.span, "use an aggregate of SPARQL")
    elif function.value not in options.functions and function.value not in _CASTS:
        message = f"the function <{function.value}> is not registered"
        hint = _definition_hint(f"<{function.value}>", node)
        yield Diagnostic("semantic", message, node.span, hint)


def _definition_hint(name: str, call: tree.NamedCall | tree.FunctionCall) -> str:
    """Return a hint on how to define a function."""
    names = ", ".join(f"?{chr(ord('a') + i)}" for i in range(min(len(call.arguments), 26)))
    return f"define it: --function '{name}({names}) = ...', or register it in Python"


def _refused_term(node: tree.Iri | tree.Literal | tree.BlankNode) -> Iterator[Diagnostic]:
    """Yield why a term is invalid that the grammar of SPARQL admits, such as a bad language tag."""
    try:
        as_term(node)
    except ValueError as error:
        message = f"this term cannot be evaluated: {error}"
        yield Diagnostic("semantic", message, node.span)


def _refused_graph(graph: tree.Iri, options: QueryOptions) -> Iterator[Diagnostic]:
    path = graph_path(graph.value, options)
    by_path = graph.value.startswith("file:") and not graph.value.startswith("file:/")
    shown = graph.value.removeprefix("file:") if by_path else graph.value
    if path is None:
        message = f"graph <{graph.value}> has no file"
        hint = f"name its file: --graph {graph.value}=FILE"
        yield Diagnostic("semantic", message, graph.span, hint)
    elif not _may_be_read(graph.value, path, options):
        message = f"graph <{shown}> is a file that is not in the folder of the query"
        hint = f"other files must be named: --graph {shown}=FILE"
        yield Diagnostic("semantic", message, graph.span, hint)
    elif not path.is_file():
        message = f"graph <{shown}> should be in {path}, but there is no such file"
        yield Diagnostic("semantic", message, graph.span, "check the path")


def refused_by_oxigraph(config: EvaluatorConfig, blocks: Iterable[ElementBlock]) -> str | None:
    """Return why Oxigraph rejects a query, by evaluating it over an empty store; None if not."""
    clauses = config.clauses if isinstance(config, ServiceConfig) else ()
    configs = [config.query, *(clause.keys for clause in clauses if clause.keys is not None)]
    configs += (block.store_query.alone for block in blocks)
    try:
        for each in configs:
            SparqlQuery(each).ask(ox.Store(), now=0)
    except (SyntaxError, RuntimeError, ValueError) as error:
        return f"Oxigraph cannot evaluate this query: {error}"
    return None


def _bound_path(iri: str, options: QueryOptions) -> Path | None:
    return options.graphs.get(iri, options.graphs.get(iri.removeprefix("file:")))


def _may_be_read(iri: str, path: Path, options: QueryOptions) -> bool:
    """Return whether the user bound a file, or it is in the folder of the query, links resolved.

    The author of a query may lack the user's right to read files.
    """
    if _bound_path(iri, options) is not None:
        return True
    try:
        return path.resolve().is_relative_to(options.folder.resolve())
    except (OSError, ValueError, RuntimeError):  # an invalid file name, or a cycle of links
        return False


def graph_path(iri: str, options: QueryOptions) -> Path | None:
    """Return the file of a static graph: as bound by the user, or by a `file:` IRI; else None."""
    if (bound := _bound_path(iri, options)) is not None:
        return bound
    parts = urlsplit(iri)
    return options.folder / unquote(parts.path) if parts.scheme == "file" else None


def refuse_unused_graphs(options: QueryOptions, queries: Iterable[tree.QueryUnit]) -> None:
    """Raise if a graph is bound to a file and no query reads it."""
    clauses = (clause for query in queries for clause in query.form.dataset)
    read = {c.graph.value for c in clauses if isinstance(c, tree.From | tree.FromNamed)}
    for iri in sorted(options.graphs):
        if iri not in read and f"file:{iri}" not in read:
            named = ", ".join(f"<{name.removeprefix('file:')}>" for name in sorted(read))
            hint = f"the queries read {named}" if read else "no query has FROM or FROM NAMED"
            raise BindingError(f"no query reads graph <{iri}>", hint)


def refuse_undeclared(options: QueryOptions, chosen: Iterable[EvaluatorConfig]) -> None:
    """Raise if the user sets a range or a bound that no query uses."""
    configs = [config for config in chosen if isinstance(config, IncompleteConfig)]
    hint = "only ranked queries that collect attributes from several streams use this option"
    if options.ranking.max_instances is not None and not any(c.is_approximate for c in configs):
        raise BindingError("no query has instances to bound", hint)
    read = {stream for config in configs for stream in config.streams}
    for stream in sorted(set(options.ranges) - read):
        raise BindingError(f"no query collects attributes from stream <{stream}>", hint)
