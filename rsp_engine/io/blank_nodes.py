"""Blank node labels: unique per element on input, numbered per answer on output.

A label has meaning only in the document that contains it. On input, a blank node is renamed after
the stream, the timestamp and the content of its element, so that its label does not depend on how
the stream was split or read. Equal elements get distinct blank nodes. On output, blank nodes are
numbered in the order of the answer.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from pyoxigraph import BlankNode, Triple

from rsp_engine.model.answers import Boolean, Graph, Row, Solutions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ElementNames", "numbered", "within_stream"]


class ElementNames:
    """The blank node labels of one stream, unique per element.

    Memory: one counter per distinct element with blank nodes that is not yet forgotten.
    """

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._seen: dict[int, Counter[str]] = {}

    def rename(self, timestamp: int, triples: Sequence[Triple]) -> Sequence[Triple]:
        """Return the triples of an element with labels that no other element has."""
        order: dict[str, str] = {}
        for triple in triples:
            for term in (triple.subject, triple.object):
                if isinstance(term, BlankNode):
                    order.setdefault(term.value, f"n{len(order)}")
        if not order:
            return triples
        plain = [_renamed(triple, order) for triple in triples]
        text = "\n".join(map(str, plain))
        name = hashlib.sha256(f"{self._stream}\n{timestamp}\n{text}".encode()).hexdigest()[:16]
        seen = self._seen.setdefault(timestamp, Counter())
        number = seen[name]
        seen[name] += 1
        return [_renamed(t, {n: f"e{name}x{number}{n}" for n in order.values()}) for t in plain]

    def meet(self, others: Sequence[tuple[int, str, int]]) -> bool:
        """Add elements that another reader named; return False if an equal one is known here."""
        if any(name in self._seen.get(timestamp, ()) for timestamp, name, _ in others):
            return False
        for timestamp, name, number in others:
            self._seen.setdefault(timestamp, Counter())[name] = number
        return True

    def forget(self, watermark: float) -> None:
        """Forget elements before a watermark: an equal element would now be late."""
        for timestamp in [t for t in self._seen if t < watermark]:
            del self._seen[timestamp]

    def state(self) -> list[list[Any]]:
        """Return the timestamp, the name and the count of each element, as plain data."""
        seen = [[t, name, n] for t, names in self._seen.items() for name, n in names.items()]
        return sorted(seen)

    def restore(self, state: Iterable[Sequence[Any]]) -> None:
        """Restore a state that `state` returned."""
        self._seen = {}
        for timestamp, name, number in state:
            self._seen.setdefault(timestamp, Counter())[name] = number


def within_stream(triples: Sequence[Triple], stream: int) -> Sequence[Triple]:
    """Return the triples with labels that no other stream has."""
    labels = {
        term.value: f"s{stream}x{term.value}"
        for triple in triples
        for term in (triple.subject, triple.object)
        if isinstance(term, BlankNode)
    }
    return [_renamed(triple, labels) for triple in triples] if labels else triples


def _renamed(triple: Triple, names: dict[str, str]) -> Triple:
    subject, value = triple.subject, triple.object
    if isinstance(subject, BlankNode):
        subject = BlankNode(names[subject.value])
    if isinstance(value, BlankNode):
        value = BlankNode(names[value.value])
    return Triple(subject, triple.predicate, value)


def numbered(content: Solutions | Graph | Boolean) -> Solutions | Graph | Boolean:
    """Return an answer whose blank nodes are labelled b0, b1, ... in the order of the answer."""
    names: dict[str, str] = {}

    def name(term: BlankNode) -> BlankNode:
        return BlankNode(names.setdefault(term.value, f"b{len(names)}"))

    match content:
        case Solutions(variables, rows, ranked):
            if not any(isinstance(t, BlankNode) for row in rows for t in row.bindings.values()):
                return content
            renamed = (
                Row(
                    {v: name(t) if isinstance(t, BlankNode) else t for v, t in r.bindings.items()},
                    r.rank,
                    r.score,
                )
                for r in rows
            )
            return Solutions(variables, tuple(renamed), ranked)
        case Graph(triples):
            for triple in triples:
                for term in (triple.subject, triple.object):
                    if isinstance(term, BlankNode):
                        name(term)
            return Graph(tuple(_renamed(t, names) for t in triples)) if names else content
        case _:
            return content
