"""The reload script: each window is loaded into a new store of Oxigraph, and queried.

It is what one would write without an engine. The triples are loaded as N-Triples text, which is
the fastest form.
"""

from __future__ import annotations

from collections import deque
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox

from benchmarks.peers.task import Task, read_task, write_answers

if TYPE_CHECKING:
    from collections.abc import Iterator


def panes(task: Task) -> Iterator[tuple[int, bytes]]:
    """Yield the panes of a stream: the time at which each ends, and its triples as text."""
    step = 1000 * task.step_s

    def end(line: bytes) -> int:
        time = int(line[line.rindex(b"/") + 1 : line.rindex(b">")])
        return -(-time // step) * step

    with Path(task.stream).open("rb") as lines:
        for close, quads in groupby(lines, end):
            yield close, b"".join(quad[: quad.rindex(b"<")] + b".\n" for quad in quads)


def windows(task: Task) -> Iterator[tuple[int, bytes]]:
    """Yield when each window closes, and its triples as text; every pane has some."""
    content, close = deque[bytes](maxlen=task.panes), 0
    for close, text in panes(task):
        content.append(text)
        if close >= 1000 * task.range_s:
            yield close, b"".join(content)
    while any(list(content)[1:]):
        content.append(b"")
        close += 1000 * task.step_s
        yield close, b"".join(content)


def rows(task: Task, text: bytes) -> list[list[str | None]]:
    """Return the rows of a window."""
    store = ox.Store()
    store.load(text, ox.RdfFormat.N_TRIPLES)
    solutions = store.query(task.query)
    assert isinstance(solutions, ox.QuerySolutions)
    return [[getattr(term, "value", None) for term in solution] for solution in solutions]


if __name__ == "__main__":
    given = read_task()
    write_answers(given, ((close, rows(given, text)) for close, text in windows(given)))
