"""Pathway, over CSV: groups of panes, and of windows from them, in its static mode.

Repeated triples count as often as they occur, so sums differ from those of RSP-QL.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import pathway as pw

from benchmarks.peers.task import Task, read_task, write_answers

EVENT = pw.schema_from_types(subject=str, value=int, time=int)


def best(task: Task, rows: tuple[tuple[int, str], ...]) -> tuple[tuple[int, str], ...]:
    """Return the best of rows in ascending order, best first."""
    return rows[-task.limit :][::-1]


def windows(task: Task, panes: pw.Table) -> pw.Table:
    """Return a table with each row of a pane once for each window of it."""
    closes = pw.apply_with_type(
        lambda pane: tuple(range(pane, pane + task.panes)), tuple[int, ...], pw.this.pane
    )
    return panes.select(*pw.this, window=closes).flatten(pw.this.window)


def ranked(task: Task) -> pw.Table:
    """Return the ranked rows of each window, as one tuple."""
    events = pw.io.csv.read(task.csv, schema=EVENT, mode="static")
    step = 1000 * task.step_s
    events = events.select(*pw.this, pane=(pw.this.time + step - 1) // step)
    pair = pw.make_tuple(pw.this.value, pw.this.subject)
    if task.kind == "sum":
        panes = events.groupby(pw.this.pane, pw.this.subject).reduce(
            pw.this.pane, pw.this.subject, value=pw.reducers.sum(pw.this.value)
        )
        rows = windows(task, panes)
        rows = rows.groupby(pw.this.window, pw.this.subject).reduce(
            pw.this.window, pw.this.subject, value=pw.reducers.sum(pw.this.value)
        )
        whole = rows.groupby(pw.this.window).reduce(
            pw.this.window, rows=pw.reducers.sorted_tuple(pair)
        )
    else:
        panes = events.groupby(pw.this.pane).reduce(
            pw.this.pane, rows=pw.reducers.sorted_tuple(pair)
        )
        top = pw.apply(lambda rows: rows[-task.limit :], pw.this.rows)
        panes = panes.select(pw.this.pane, rows=top).flatten(pw.this.rows)
        rows = windows(task, panes)
        whole = rows.groupby(pw.this.window).reduce(
            pw.this.window, rows=pw.reducers.sorted_tuple(pw.this.rows)
        )
    text = pw.apply(
        lambda rows: " ".join(f"{subject},{value}" for value, subject in best(task, rows)),
        pw.this.rows,
    )
    return whole.select(pw.this.window, text=text)


def main() -> None:
    """Answer the task."""
    task = read_task()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        pw.io.csv.write(ranked(task), str(path))
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        with path.open(newline="") as file:
            found = [(int(row["window"]), row["text"]) for row in csv.DictReader(file)]
    step = 1000 * task.step_s
    write_answers(
        task,
        (
            (window * step, [tuple(pair.rsplit(",", 1)) for pair in text.split(" ")])
            for window, text in sorted(found)
        ),
    )


if __name__ == "__main__":
    main()
