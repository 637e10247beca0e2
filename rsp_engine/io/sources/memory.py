"""In-memory streams: pairs of a timestamp and a Turtle text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyoxigraph as ox

from rsp_engine.io.sources.files.rdf import MalformedRdfError, graph_of
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MemorySource"]


@dataclass(frozen=True, slots=True)
class MemorySource:
    """A stream from an iterable of `(timestamp in milliseconds, Turtle text)` pairs."""

    pairs: Iterable[tuple[int, str]]
    name: str = "<memory>"
    blank_node_scope: Literal["element", "stream"] = "element"

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        for position, (timestamp, text) in enumerate(self.pairs, start=1):
            yield self.read(position, timestamp, text)

    def read(self, position: int, timestamp: int, text: str) -> Element | DeadLetter:
        """Read the element at a position, counted from 1."""
        raw = text.encode()
        try:
            triples = graph_of(raw, ox.RdfFormat.TURTLE)
        except MalformedRdfError as error:
            return DeadLetter(self.name, position, raw, f"malformed: {error}")
        return Element(timestamp, triples, self.name, position, raw)
