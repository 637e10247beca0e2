"""Static graphs: files that are read once, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.errors import SourceError
from rsp_engine.runtime.blank_nodes import ElementNames
from rsp_engine.runtime.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.plan.physical import StaticGraph

__all__ = ["load_graphs"]


def load_graphs(store: ox.Store, graphs: Iterable[StaticGraph]) -> None:
    """Load the files of static graphs; their blank nodes are kept apart."""
    names = ElementNames("static graphs")
    for number, graph in enumerate(graphs):
        name = ox.DefaultGraph() if graph.name is None else ox.NamedNode(graph.name)
        if ox.RdfFormat.from_extension(graph.path.suffix.removeprefix(".")) is None:
            hint = "name it after its format: .ttl, .nt, .rdf, .jsonld"
            raise SourceError(f"{graph.path}: the format of this graph is not known", hint)
        try:
            quads = ox.parse(path=graph.path, without_named_graphs=True)
            triples = names.rename(number, canonical([quad.triple for quad in quads]))
        except (OSError, SyntaxError, ValueError) as error:
            raise SourceError(f"{graph.path}: this graph cannot be read: {error}") from None
        store.extend(ox.Quad(t.subject, t.predicate, t.object, name) for t in triples)
