"""Quads of numbered lines: those located as columns, joined with those of parsed lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.io.canonical_literals import canonical_triples
from rsp_engine.io.sources.columns.plain_lines import locate
from rsp_engine.io.sources.columns.quad_lines import QuadLines, ReadQuads
from rsp_engine.io.sources.columns.written_quads import write_quads
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyoxigraph as ox

    from rsp_engine.io.sources.columns.plain_lines import LineForm
    from rsp_engine.io.sources.columns.quad_lines import Rename
    from rsp_engine.model.arrays import Integers

    ParseLine = Callable[[int, bytes], Element | DeadLetter]

__all__ = ["NumberedQuads", "with_parsed_lines"]

_MOST_OTHERS = 0.3  # of the lines: to parse all lines is then cheaper


class NumberedQuads(NamedTuple):
    """Quads, and the number of the line of each."""

    lines: QuadLines
    numbers: Integers

    @classmethod
    def none(cls) -> NumberedQuads:
        """Return no quads."""
        return cls(QuadLines.none(), np.empty(0, dtype=np.int64))

    @classmethod
    def of_graphs(
        cls, text: bytes, counts: Integers, times: Integers, form: LineForm
    ) -> NumberedQuads:
        """Return the quads of graphs of plain triples only, each triple of a graph once.

        The text has a triple on each line; `counts` says how many each graph has. The number of a
        quad is that of its graph.
        """
        plain, numbers, others = locate(text, form)
        graphs = np.repeat(np.arange(len(counts)), counts)
        is_whole = np.ones(len(counts), dtype=np.bool_)
        is_whole[graphs[[number for number, _, _ in others]]] = False
        graphs = graphs[numbers]
        plain = plain.with_times(times[graphs]).by_number(graphs)
        if not is_whole.all():
            plain, graphs = plain.at(is_whole[graphs]), graphs[is_whole[graphs]]
        kept = plain.distinct()
        if kept is not None:
            plain, graphs = plain.at(kept), graphs[kept]
        return cls(plain, graphs)

    def joined(self, others: NumberedQuads) -> NumberedQuads:
        """Return these quads and others, in the order of their lines."""
        if not len(self.numbers) or not len(others.numbers):
            return self if len(self.numbers) else others
        lines = self.lines.and_quads(self.numbers, others.lines, others.numbers)
        return NumberedQuads(lines, np.sort(np.concatenate((self.numbers, others.numbers))))


def with_parsed_lines(
    found: NumberedQuads,
    count: int,
    line_of: Callable[[int], bytes],
    parse: ParseLine,
    rename: Rename,
) -> ReadQuads | None:
    """Return the quads of all of `count` lines; None if they must be read as elements.

    `parse` reads a line of which no quad was found, given its number, from 1.
    """
    are_others = np.ones(count, dtype=np.bool_)
    are_others[found.numbers] = False
    others = np.flatnonzero(are_others)
    if len(others) > _MOST_OTHERS * count:
        return None
    elements: list[tuple[int, Element]] = []
    letters: list[tuple[int, DeadLetter]] = []
    for number in others.tolist():
        line = line_of(number)
        if not line.strip():
            continue
        item = parse(1 + number, line)
        if isinstance(item, DeadLetter):
            letters.append((number, item))
        elif item.triples:
            elements.append((number, item))
        else:
            return None  # columns have no element without triples
    if elements:
        found = found.joined(_write(elements, rename))
    places = np.searchsorted(found.numbers, [number for number, _ in letters]).tolist()
    quads = found.lines.by_number(found.numbers)
    return ReadQuads(quads, [*zip(places, (letter for _, letter in letters), strict=True)])


def _write(elements: Sequence[tuple[int, Element]], rename: Rename) -> NumberedQuads:
    """Write parsed elements in the form of the engine."""
    triples: list[ox.Triple] = []
    times: list[int] = []
    numbers: list[int] = []
    for number, element in elements:
        named = rename(element.timestamp, canonical_triples(element.triples))
        triples.extend(named)
        times.extend([element.timestamp] * len(named))
        numbers.extend([number] * len(named))
    return NumberedQuads(write_quads(triples, times), np.array(numbers, dtype=np.int64))
