"""Parsed quads as columns: they are written again, in the form of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.io.sources.columns.plain_lines import QUADS, TRIPLES, locate
from rsp_engine.io.sources.columns.quad_lines import NO_NUMBER, LineEdges, Objects, QuadLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyoxigraph as ox

__all__ = ["write_quads"]


def write_quads(
    triples: Sequence[ox.Triple], times: Sequence[int], graphs: Sequence[str] | None = None
) -> QuadLines:
    """Write canonical triples with their times and, if they have any, the names of their graphs."""
    names = [()] * len(triples) if graphs is None else [(name,) for name in graphs]
    rows = [
        (str(triple.subject), str(triple.predicate), str(triple.object), *name)
        for triple, name in zip(triples, names, strict=True)
    ]
    form = TRIPLES if graphs is None else QUADS
    text = "".join([f"{' '.join(row)} .\n" for row in rows]).encode()
    sizes = np.array([[len(term.encode()) + 1 for term in row] for row in rows], dtype=np.int64)
    sizes = sizes.reshape(-1, form.terms)
    starts = np.r_[0, np.cumsum(sizes.sum(axis=1) + len(".\n"))][:-1]
    ends = [starts + size - 1 for size in np.cumsum(sizes, axis=1).T]
    edges = LineEdges(starts, ends[0], ends[1], ends[2], ends[-1])
    values = np.full(len(rows), np.nan)
    kinds = np.full(len(rows), NO_NUMBER)
    plain = locate(text, form)
    values[plain.numbers], kinds[plain.numbers] = plain.lines.values, plain.lines.kinds
    return QuadLines.of(text, edges, np.array(times, dtype=np.int64), Objects(values, kinds))
