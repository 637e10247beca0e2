"""Plain triples: the abbreviations of triple patterns expanded (SPARQL 1.1, section 4.2)."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from rsp_engine.grammar.tree import (
    BlankNode,
    BlankNodeProperties,
    Collection,
    Iri,
    Literal,
    Path,
    Property,
    TriplesBlock,
    TriplesNode,
    Var,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.grammar.tree import Node as Construct

    PlainTerms = tuple[Construct, Construct, Construct]

__all__ = ["PlainTerms", "PlainTriple", "TripleNode", "plain_terms", "plain_triples"]

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TripleNode = Var | Iri | Literal | BlankNode
PlainTriple = tuple[TripleNode, Var | Path, TripleNode]


def plain_triples(block: TriplesBlock, labels: Iterator[int] | None = None) -> list[PlainTriple]:
    """Return the triples of a block with collections and property lists expanded.

    Anonymous nodes get labels that no query can contain. Pass one iterator of `labels` for several
    blocks to keep their labels distinct.

    >>> from rsp_engine.grammar import parse
    >>> [block] = parse("ASK { ?s ?p [ ?q 1 ], 2 }").form.where.elements
    >>> [value for _, _, value in plain_triples(block)]
    [BlankNode(label='.0'), Literal(lexical='1', ...), Literal(lexical='2', ...)]
    """
    return _Expansion(count() if labels is None else labels).block(block)


def plain_terms(elements: Sequence[Construct]) -> tuple[PlainTerms, ...]:
    """Return the triples of a group of plain triple patterns.

    The result is empty if the group has other elements, blank nodes or paths.
    """
    blocks = [element for element in elements if isinstance(element, TriplesBlock)]
    if len(blocks) < len(elements):
        return ()
    triples = tuple(triple for block in blocks for triple in plain_triples(block))
    terms = (term for triple in triples for term in triple)
    return triples if all(isinstance(term, Var | Iri | Literal) for term in terms) else ()


class _Expansion:
    """The expansion of one block, with the triples so far."""

    def __init__(self, labels: Iterator[int]) -> None:
        self._labels = labels
        self._triples: list[PlainTriple] = []

    def block(self, block: TriplesBlock) -> list[PlainTriple]:
        for subject in block.subjects:
            self._properties(self._node(subject.subject), subject.properties)
        return self._triples

    def _properties(self, subject: TripleNode, properties: tuple[Property, ...]) -> None:
        for pattern in properties:
            for value in pattern.objects:
                place = len(self._triples)
                node = self._node(value)
                self._triples.insert(place, (subject, pattern.verb, node))

    def _node(self, node: TriplesNode) -> TripleNode:
        if isinstance(node, BlankNodeProperties):
            fresh = self._fresh()
            self._properties(fresh, node.properties)
            return fresh
        return self._list(node.items) if isinstance(node, Collection) else node

    def _list(self, items: tuple[TriplesNode, ...]) -> TripleNode:
        cells: list[TripleNode] = [self._fresh() for _ in items]
        cells.append(Iri(_RDF + "nil"))
        for cell, item, rest in zip(cells, items, cells[1:], strict=False):
            self._triples.append((cell, Iri(_RDF + "first"), self._node(item)))
            self._triples.append((cell, Iri(_RDF + "rest"), rest))
        return cells[0]

    def _fresh(self) -> BlankNode:
        return BlankNode(f".{next(self._labels)}")
