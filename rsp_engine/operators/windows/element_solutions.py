"""The solutions of WINDOW blocks within single elements, described as triples.

    an element    :b :free 28 ; :rain 0.32 .
    a block       WINDOW :w { ?s :free ?f ; :rain ?r }
    its solution  <...:solution:e1> <...:block:0:s> :b ; <...:block:0:f> 28 ; <...:block:0:r> 0.32

The node of a solution is a hash of the block, the solution, and the number of equal solutions that
precede it in the element. So a solution that several elements give appears once, or as often as the
element that gives it most often, and leaves a window with the last of them. Where the query needs
arrival times, the node also has those of its elements: `<...:solution:e1> <...:came> 3000, 5000`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyoxigraph as ox

from rsp_engine.model.terms.lazy_text import WrittenTriples
from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.operators.sparql.element_query import ElementQuery, ElementText

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["CAME_PREDICATE", "ElementBlock", "SolutionDescriber"]

_SOLUTION = "urn:rsp-engine:solution:"
_BLOCK = "urn:rsp-engine:block:"
CAME_PREDICATE = "urn:rsp-engine:came"
"""The property for the arrival time of an element that gives a solution."""
_TRUE = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'


@dataclass(frozen=True, slots=True)
class ElementBlock:
    """A WINDOW block: its number in the query, its variables, and the query over an element.

    `is_marked` if a solution may have no bindings at all. `reads_graphs` if the block reads static
    graphs. `is_timed` if the answer depends on the arrival times of solutions.
    """

    number: int
    names: tuple[str, ...]
    store_query: ElementText
    is_marked: bool = False
    reads_graphs: bool = False
    is_timed: bool = False

    def iri(self, name: str) -> str:
        """Return the property for the value of a variable; the empty name is the mark."""
        return f"{_BLOCK}{self.number}:{quote(name)}"


class SolutionDescriber:
    """The description of solutions of several blocks. The store contains the static graphs."""

    def __init__(self, blocks: Sequence[ElementBlock], store: ox.Store) -> None:
        self._blocks = [_BlockDescriber(block, store) for block in blocks]

    def together(
        self, triples: Sequence[ox.Triple], sizes: Sequence[int], times: Sequence[int]
    ) -> WrittenTriples:
        """Return the solutions of elements with these sizes and times, each triple once."""
        lines = dict.fromkeys(line for each in self._lines(triples, sizes, times) for line in each)
        return WrittenTriples("\n".join(lines))

    def one_by_one(
        self, triples: Sequence[ox.Triple], sizes: Sequence[int], times: Sequence[int]
    ) -> list[WrittenTriples]:
        """Return the solutions of each element."""
        return [WrittenTriples("\n".join(lines)) for lines in self._lines(triples, sizes, times)]

    def _lines(
        self, triples: Sequence[ox.Triple], sizes: Sequence[int], times: Sequence[int]
    ) -> list[list[str]]:
        lines: list[list[str]] = [[] for _ in sizes]
        for block in self._blocks:
            for place, line in block.lines(triples, sizes, times):
                lines[place].append(line)
        return lines


class _BlockDescriber:
    def __init__(self, block: ElementBlock, store: ox.Store) -> None:
        self._number = block.number
        self._query = ElementQuery(block.store_query, store)
        self._width = len(block.names)
        self._properties = [f"<{block.iri(name)}>" for name in block.names]
        self._mark = f"<{block.iri('')}> {_TRUE}" if block.is_marked else None
        self._is_timed = block.is_timed

    def lines(
        self, triples: Sequence[ox.Triple], sizes: Sequence[int], times: Sequence[int]
    ) -> Iterator[tuple[int, str]]:
        """Yield the triples of all solutions as text, each with the index of its element."""
        seen: Counter[tuple[int, str]] = Counter()
        for place, row in self._query.rows(triples, sizes, now=0):
            terms = row[: self._width]
            text = row_text(terms)
            node = self._node(text, seen[place, text])
            seen[place, text] += 1
            if self._mark is not None:
                yield place, f"{node} {self._mark}"
            if self._is_timed:
                yield place, f"{node} <{CAME_PREDICATE}> {ox.Literal(times[place])}"
            for verb, term in zip(self._properties, terms, strict=True):
                if term is not None:
                    yield place, f"{node} {verb} {term}"

    def _node(self, text: str, number: int) -> str:
        digest = blake2b(f"{self._number} {number} {text}".encode(), digest_size=16)
        return f"<{_SOLUTION}{digest.hexdigest()}>"
