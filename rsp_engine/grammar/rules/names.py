"""Rules about names: prefixes, streams, functions, and static graphs, declared and read."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from rsp_engine.grammar.builtins import BUILTINS
from rsp_engine.grammar.iris import absolute, is_absolute
from rsp_engine.grammar.rules.finding import Finding, error, short, warning
from rsp_engine.grammar.tree import (
    AGGREGATE_NAMES,
    ConstructForm,
    From,
    FromNamed,
    FromWindow,
    GraphPattern,
    Iri,
    NamedCall,
    Node,
    PrefixDecl,
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

__all__ = [
    "default_graph_has_content",
    "functions_are_spelt",
    "graph_is_read",
    "graph_is_static",
    "iris_are_absolute",
    "names_are_distinct",
    "prefix_is_declared_once",
    "query_does_not_read_itself",
]


# Functions of SQL and other languages, and the SPARQL function that does the same.
_FOREIGN_FUNCTIONS = {
    "AVERAGE": "AVG",
    "ISNULL": "!BOUND",
    "LENGTH": "STRLEN",
    "LOWER": "LCASE",
    "MEAN": "AVG",
    "UPPER": "UCASE",
}


def names_are_distinct(query: QueryUnit) -> Iterator[Finding]:
    """A name identifies one window or one graph."""
    seen: dict[str, str] = {}
    for clause in query.form.dataset:
        if isinstance(clause, From):
            continue
        if isinstance(clause, FromWindow):
            name, kind = clause.window, "window"
        else:
            name, kind = clause.graph, "graph"
        earlier = seen.get(name.value)
        if earlier == kind == "window":
            hint = "give this window another name"
            yield error(f"window {short(query, name)} is declared twice", name, hint)
        elif earlier == kind:
            yield warning(f"graph {short(query, name)} is declared twice", name)
        elif earlier is not None:
            yield error(f"{short(query, name)} is both a {earlier} and a {kind}", name)
        seen[name.value] = kind


def query_does_not_read_itself(query: QueryUnit) -> Iterator[Finding]:
    """A query that reads its own output stream would never end."""
    if query.register is None or not isinstance(query.register.name, Iri):
        return
    for clause in query.windows:
        if clause.stream == query.register.name:
            message = f"the query reads {short(query, clause.stream)}, its own answer"
            yield error(message, clause.stream)


def prefix_is_declared_once(query: QueryUnit) -> Iterator[Finding]:
    """The last declaration of a prefix applies to the whole query, even to names before it."""
    seen: dict[str, str] = {}
    for declaration in query.prologue:
        if not isinstance(declaration, PrefixDecl):
            continue
        earlier = seen.setdefault(declaration.prefix, declaration.iri.value)
        if earlier != declaration.iri.value:
            message = f"prefix `{declaration.prefix}:` is declared again with another IRI"
            yield warning(message, declaration, "this declaration applies to the whole query")


def functions_are_spelt(query: QueryUnit) -> Iterator[Finding]:
    """A bare name that resembles a built-in, or is one of another language, is a likely typo."""
    for call in find(query, NamedCall):
        name = call.name.upper()
        close = get_close_matches(name, (*BUILTINS, *AGGREGATE_NAMES), n=1, cutoff=0.8)
        if meant := _FOREIGN_FUNCTIONS.get(name) or next(iter(close), None):
            message = f"{call.name} is not a function of SPARQL: it must be registered"
            yield warning(message, call, f"did you mean {meant}?")


def iris_are_absolute(query: QueryUnit) -> Iterator[Finding]:
    """A relative IRI becomes a `file:` path, which is rarely meant outside FROM."""
    files = {id(c.graph) for c in query.form.dataset if not isinstance(c, FromWindow)}
    named = {c.graph.value for c in query.form.dataset if isinstance(c, FromNamed)}
    files |= {
        id(g.name)
        for g in find(query, GraphPattern)
        if isinstance(g.name, Iri) and g.name.value in named
    }
    for iri in find(query, Iri):
        if id(iri) not in files and not is_absolute(iri.value):
            hint = "write the full IRI, or add BASE <http://...> at the top"
            message = (
                f"<{iri.value}> is relative without a BASE: it resolves to <{absolute(iri.value)}>"
            )
            yield warning(message, iri, hint)


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
