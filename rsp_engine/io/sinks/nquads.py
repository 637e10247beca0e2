r"""N-Quads output: one named graph per window, whose name ends in the close of the window.

The name is `<{query}/{close}>` if the query is named by an IRI, otherwise
`<urn:rsp-engine:answer:{query}:{close}>`. The trailing digits are the time of the graph, so that
the file can be read as a stream.

In N-Quads a blank node label has one meaning in the whole file, but the graphs of two windows are
separate answers. Labels are therefore prefixed with the close of their window: `_:b0` becomes
`_:w5-b0`.

>>> from rsp_engine.model.answers import Answer, Interval
>>> graph = Graph((Triple(BlankNode("b0"), NamedNode("http://example.org/p"), Literal("x")),))
>>> NQUADS.writer()(Answer("my query", Interval(0, 5), graph, {}))
'_:w5-b0 <http://example.org/p> "x" <urn:rsp-engine:answer:my%20query:5> .\n'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never
from urllib.parse import quote

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from rsp_engine.io.sinks.format import SinkFormat, misfit
from rsp_engine.model.answers import Graph

if TYPE_CHECKING:
    from rsp_engine.model.answers import Answer

__all__ = ["NQUADS", "graph_name", "scoped", "write_nquads"]


def write_nquads(answer: Answer) -> str:
    """Return the quads of an answer."""
    if not isinstance(answer.content, Graph):
        raise misfit("nquads", answer.content)
    close = answer.window.close
    name = graph_name(answer.query, close)
    return "".join([f"{scoped(triple, close)} {name} .\n" for triple in answer.content.triples])


def graph_name(query: str, close: int) -> NamedNode:
    """Return the name of the graph that a query answers for the window with this close.

    >>> graph_name("http://example.org/alerts", 5).value, graph_name("alerts", 5).value
    ('http://example.org/alerts/5', 'urn:rsp-engine:answer:alerts:5')
    """
    try:
        return NamedNode(f"{NamedNode(query).value}/{close}")
    except ValueError:
        name = quote(query, safe="", errors="surrogatepass")
        return NamedNode(f"urn:rsp-engine:answer:{name}:{close}")


def scoped(triple: Triple, close: int) -> Triple:
    """Return the triple with blank node labels that are unique to the window."""
    subject, value = triple.subject, triple.object
    if isinstance(subject, NamedNode) and isinstance(value, NamedNode | Literal):
        return triple
    value = value if isinstance(value, Literal) else _scoped_node(value, close)
    return Triple(_scoped_node(subject, close), triple.predicate, value)


def _scoped_node(
    node: NamedNode | BlankNode | Triple, close: int
) -> NamedNode | BlankNode | Triple:
    match node:
        case NamedNode():
            return node
        case BlankNode():
            return BlankNode(f"w{close}-{node.value}")
        case Triple():
            return scoped(node, close)
        case _:
            assert_never(node)


NQUADS = SinkFormat(
    "nquads",
    "the graphs of a CONSTRUCT, named after query and close",
    ("CONSTRUCT",),
    lambda: write_nquads,
    media_type="application/n-quads",
)
