"""The graph store: updates by which the graphs of windows replace, or add to, a named graph.

SPARQL 1.1 Update (https://www.w3.org/TR/sparql11-update/). An update that is repeated changes
nothing more: blank nodes, which a server would make anew each time, become IRIs where a graph is
added to (skolemization, RDF 1.1 Concepts, section 3.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, NamedNode, Triple

from rsp_engine.io.sinks.delivery.webhook import HttpPost
from rsp_engine.io.sinks.format import graph_refusal
from rsp_engine.io.sinks.nquads import graph_name
from rsp_engine.model.answers import Boolean, Graph

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from rsp_engine.io.sinks.delivery.courier import Delivery
    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.model.answers import Answer

    WriteMode = Literal["replace", "add"]

__all__ = ["GraphStore", "GraphUpdates"]


class GraphUpdates:
    """Writes answers as updates of a named graph, or of one for each window without a name.

    >>> from pyoxigraph import Literal
    >>> from rsp_engine.model.answers import Answer, Interval
    >>> triple = Triple(BlankNode("b"), NamedNode("http://e/p"), Literal("x"))
    >>> answer = Answer("http://e/q", Interval(0, 5), Graph((triple,)), {})
    >>> print(GraphUpdates("replace", None)(answer, "q/0/5"))
    DROP SILENT GRAPH <http://e/q/5> ;
    INSERT DATA { GRAPH <http://e/q/5> {
    _:b <http://e/p> "x" .
    } }
    >>> print(GraphUpdates("add", NamedNode("http://e/all"))(answer, "q/0/5"))
    INSERT DATA { GRAPH <http://e/all> {
    <urn:rsp-engine:node:q/0/5:b> <http://e/p> "x" .
    } }
    """

    def __init__(self, mode: WriteMode, graph: NamedNode | None) -> None:
        self._mode = mode
        self._graph = graph

    def __call__(self, answer: Answer, name: str) -> str:
        """Return the update for an answer with an id."""
        if not isinstance(answer.content, Graph):
            raise graph_refusal("ASK" if isinstance(answer.content, Boolean) else "SELECT")
        graph = self._graph or graph_name(answer.query, answer.window.close)
        triples = answer.content.triples
        if self._mode == "add":
            triples = tuple(_with_iris(triple, name) for triple in triples)
        lines = "".join(f"{triple} .\n" for triple in triples)
        insertion = f"INSERT DATA {{ GRAPH {graph} {{\n{lines}}} }}"
        return insertion if self._mode == "add" else f"DROP SILENT GRAPH {graph} ;\n{insertion}"


def _with_iris(term: Any, name: str) -> Any:  # noqa: ANN401 - a term or a triple, and the same again
    """Replace the blank nodes of a triple by IRIs that its answer makes unique."""
    match term:
        case Triple():
            subject, value = _with_iris(term.subject, name), _with_iris(term.object, name)
            return Triple(subject, term.predicate, value)
        case BlankNode():
            return NamedNode(f"urn:rsp-engine:node:{name}:{term.value}")
        case _:
            return term


class GraphStore:
    """Sends updates, one at a time and in their order."""

    most = 1

    def __init__(self, address: Address, timeout: float) -> None:
        self._post = HttpPost(address, timeout)

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Send the only update, as a form, since not every server accepts it as the body."""
        for delivery in deliveries:
            self._post.send({"update": delivery.body.decode()}, {})

    def close(self) -> None:
        """Close the connection."""
        self._post.close()
