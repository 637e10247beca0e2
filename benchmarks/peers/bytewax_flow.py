"""Bytewax, over CSV: a dataflow in Python that folds events into sliding windows.

It folds an event once for each of its windows. The variant `panes first` folds each event once,
into a pane, and panes into windows: this is faster, and for the user to write. Repeated triples
count as often as they occur, so sums differ from those of RSP-QL.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from heapq import nlargest
from operator import itemgetter
from typing import Any

from bytewax import operators as op
from bytewax.connectors.files import FileSource
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing as wop
from bytewax.testing import TestingSink, run_main

from benchmarks.peers.task import read_task, write_answers

Event = tuple[str, int, int]
"""The subject, the value, and the time in ms."""
START = datetime(1970, 1, 1, tzinfo=UTC)
WAIT = timedelta(minutes=1)  # as the clock of the machine advances the watermark, too
task = read_task()


def event(line: str) -> tuple[str, Event]:
    """Return the event of a line, under the one key of the flow."""
    subject, value, time = line.split(",")
    return "", (subject, int(value), int(time))


def time_of_event(given: Event) -> datetime:
    """Return when an event counts; windows of Bytewax include their left edge, not the right."""
    return START + timedelta(milliseconds=given[2] - 1)


def add_to_sums(pane: dict[str, int], given: Event) -> dict[str, int]:
    """Add an event to the sums of its pane."""
    pane[given[0]] = pane.get(given[0], 0) + given[1]
    return pane


def merge_sums(window: dict[str, int], pane: dict[str, int]) -> dict[str, int]:
    """Add the sums of a pane to those of a window."""
    for subject, value in pane.items():
        window[subject] = window.get(subject, 0) + value
    return window


def add_to_best(pane: list[Event], given: Event) -> list[Event]:
    """Keep an event, if it is among the best of its pane."""
    if len(pane) < task.limit or given[1] > pane[-1][1]:
        pane[:] = nlargest(task.limit, [*pane, given], key=itemgetter(1))
    return pane


def merge_best(window: list[Event], pane: list[Event]) -> list[Event]:
    """Keep the best events of a window and of a pane."""
    return nlargest(task.limit, [*window, *pane], key=itemgetter(1))


def rows(window: Any) -> list[tuple[str, int]]:  # noqa: ANN401 - of either kind
    """Return the ranked rows of a window."""
    if task.kind == "sum":
        return nlargest(task.limit, window.items(), key=itemgetter(1))
    return [(subject, value) for subject, value, _ in window]


def main() -> None:
    """Answer the task."""
    empty, add, merge = (
        (dict, add_to_sums, merge_sums) if task.kind == "sum" else (list, add_to_best, merge_best)
    )
    step, length = timedelta(seconds=task.step_s), timedelta(seconds=task.range_s)
    sliding = wop.SlidingWindower(length=length, offset=step, align_to=START)
    clock = wop.EventClock(time_of_event, WAIT)
    flow, out = Dataflow("peer"), list[Any]()
    lines = op.input("lines", flow, FileSource(task.csv, batch_size=10_000))
    events = op.map("event", op.filter("head", lines, lambda line: line[0] != "s"), event)
    if "panes" in task.variant:
        tumbling = wop.TumblingWindower(length=step, align_to=START)
        pane = wop.fold_window("pane", events, clock, tumbling, empty, add, merge, ordered=False)
        window = wop.fold_window(
            "window",
            pane.down,
            wop.EventClock(lambda given: START + given[0] * step, WAIT),
            sliding,
            empty,
            lambda content, given: merge(content, given[1]),
            merge,
            ordered=False,
        )
    else:
        window = wop.fold_window("window", events, clock, sliding, empty, add, merge, ordered=False)
    op.output("answers", window.down, TestingSink(out))
    run_main(flow)
    closes = (
        (1000 * (number * task.step_s + task.range_s), content) for _, (number, content) in out
    )
    write_answers(task, ((close, rows(content)) for close, content in closes))


if __name__ == "__main__":
    main()
