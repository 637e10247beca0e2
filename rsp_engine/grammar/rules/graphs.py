"""Rules about static graphs: each is declared, and each is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.grammar.rules.finding import Finding, error, short, warning
from rsp_engine.grammar.tree import (
    ConstructForm,
    From,
    FromNamed,
    GraphPattern,
    Node,
    QueryUnit,
    ServicePattern,
    TriplesBlock,
    Var,
    WindowPattern,
    children,
    find,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["default_graph_has_content", "graph_is_read", "graph_is_static"]


def default_graph_has_content(query: QueryUnit) -> Iterator[Finding]:
    """A triple pattern outside WINDOW, GRAPH and SERVICE reads the graphs of FROM."""
    if not query.windows or any(isinstance(c, From) for c in query.form.dataset):
        return
    for block in _blocks_of_default_graph(query):
        hint = "put it into WINDOW :w { ... }, or name a static graph with FROM"
        yield warning("this pattern reads no window, and the query has no FROM graph", block, hint)


def _blocks_of_default_graph(query: QueryUnit) -> Iterator[TriplesBlock]:
    """Yield the triple patterns outside WINDOW, GRAPH and SERVICE; skip the template."""
    template = query.form.template if isinstance(query.form, ConstructForm) else None
    waiting: list[Node] = [part for part in children(query.form) if part is not template]
    waiting.reverse()
    while waiting:
        node = waiting.pop()
        if isinstance(node, TriplesBlock):
            yield node
        elif not isinstance(node, WindowPattern | GraphPattern | ServicePattern):
            waiting.extend(reversed(children(node)))


def graph_is_static(query: QueryUnit) -> Iterator[Finding]:
    """`GRAPH` reads static graphs that the query declares, never a window."""
    windows = {clause.window.value for clause in query.windows}
    named = {c.graph.value for c in query.form.dataset if isinstance(c, FromNamed)}
    for name in (graph.name for graph in _local_graphs(query)):
        if isinstance(name, Var):
            if not named:
                hint = "declare a graph with FROM NAMED <...>; WINDOW ?w reads the windows"
                yield warning("no graph is declared, so GRAPH reads nothing", name, hint)
        elif name.value in windows:
            shown = short(query, name)
            hint = f"write WINDOW {shown} {{ ... }}"
            yield error(f"{shown} is a window: GRAPH reads static graphs only", name, hint)
        elif name.value not in named:
            shown = short(query, name)
            hint = f"declare it: FROM NAMED {shown}"
            yield warning(f"graph {shown} is not declared, so it is empty", name, hint)


def graph_is_read(query: QueryUnit) -> Iterator[Finding]:
    """A static graph that no pattern reads is useless."""
    names = [graph.name for graph in _local_graphs(query)]
    is_default_read = any(True for _ in _blocks_of_default_graph(query))
    for clause in query.form.dataset:
        match clause:
            case From(graph) if not is_default_read:
                hint = "read it with a pattern outside WINDOW, GRAPH and SERVICE, or remove it"
            case FromNamed(graph) if not any(isinstance(n, Var) or n == graph for n in names):
                hint = f"read it with GRAPH {short(query, graph)} {{ ... }}, or remove it"
            case _:
                continue
        yield warning(f"graph {short(query, graph)} is declared but never read", graph, hint)


def _local_graphs(query: QueryUnit) -> Iterator[GraphPattern]:
    """Yield the GRAPH clauses, except those inside SERVICE, which name remote graphs."""
    remote = {
        id(graph)
        for service in find(query, ServicePattern)
        for graph in find(service, GraphPattern)
    }
    return (graph for graph in find(query, GraphPattern) if id(graph) not in remote)
