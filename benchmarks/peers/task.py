"""A task: a query over a file, as every peer receives it, and the form of their answers.

A peer is a module that is run by the Python of its own environment. So this module imports nothing
but the standard library.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Kind", "Task", "read_task", "write_answers"]

Kind = Literal["top", "sum", "sparql"]


@dataclass(frozen=True, slots=True)
class Task:
    """A query over sliding windows of a file, and the file to write its answers to.

    `top` ranks the values of one predicate, `sum` the sums of each subject; `sparql` is any other
    query. Windows are those of RSP-QL: open on the left, closed on the right, the first one from 0.
    """

    kind: Kind
    query: str
    """The SPARQL query of a window, for peers that speak SPARQL."""
    stream: str
    """The file of N-Quads; the graph name of a quad ends with its time in ms."""
    output: str
    predicate: str
    range_s: int
    step_s: int
    limit: int = 0
    """How many rows a window has at most, if it is ranked."""
    below: int | None = None
    """Only smaller values match."""
    variant: str = ""
    """What a peer does differently, where it has several ways."""

    @property
    def csv(self) -> str:
        """The same stream as lines `subject,value,time`, for peers that read no RDF."""
        return str(Path(self.stream).with_suffix(".csv"))

    @property
    def panes(self) -> int:
        """How many steps a window has."""
        return self.range_s // self.step_s

    def text(self) -> str:
        """Return the task as an argument of a command."""
        return json.dumps(asdict(self))


def read_task() -> Task:
    """Return the task that is the argument of this process."""
    return Task(**json.loads(sys.argv[1]))


def write_answers(task: Task, answers: Iterable[tuple[int, Iterable[Sequence[object]]]]) -> None:
    """Write the rows of each window, by the time at which it closes, in ms."""
    with Path(task.output).open("w", encoding="utf-8") as file:
        for close, rows in answers:
            cells = [[None if cell is None else str(cell) for cell in row] for row in rows]
            file.write(json.dumps([close, cells]) + "\n")
