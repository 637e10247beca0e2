"""Static graphs: files that are read once, before the query runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.errors import SourceError
from rsp_engine.io.blank_nodes import ElementNames
from rsp_engine.io.canonical_literals import canonical_triples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.evaluators.physical_plan import StaticGraph
    from rsp_engine.operators.windows.element_solutions import ElementBlock

__all__ = ["block_graphs", "load_graphs"]


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
            raise SourceError(f"{graph.path}: this graph cannot be read: {error}") from None
        store.add_graph(name)
        store.extend(ox.Quad(t.subject, t.predicate, t.object, name) for t in triples)


def block_graphs(blocks: Iterable[ElementBlock], graphs: Iterable[StaticGraph]) -> ox.Store:
    """Return a store with the static graphs if a block reads them, else an empty store."""
    store = ox.Store()
    if any(block.reads_graphs for block in blocks):
        load_graphs(store, graphs)
    return store
