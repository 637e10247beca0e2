"""Runs over splits in this process: what the Spark driver does, without Spark."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa

from rsp_engine.drivers.spark.arrow_codec import from_rows, to_rows
from rsp_engine.drivers.splits.split_run import SplitRun
from rsp_engine.evaluators.step import Step
from rsp_engine.monitor.run_monitor import Counts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rsp_engine.drivers.replay_clock import ReplayClock
    from rsp_engine.drivers.splits.split_reducer import ReducedSplit
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter

__all__ = ["SplitTestDriver", "in_splits"]


class SplitTestDriver:
    """A driver that reads splits of `size` bytes, `count` of them in each micro-batch.

    Before the micro-batches in `cuts`, the state is saved, and another run resumes from it. If
    `are_compared`, the restored state must equal the saved one; it does not with NaN, nor with SAP,
    which forgets empty partitions.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[ElementSource]],
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int = 0,
        replay_clock: ReplayClock | None = None,
        *,
        size: int = 1,
        count: int = 2,
        at_most: int = 3,
        cuts: Collection[int] = (),
        are_sent: bool = True,
        are_compared: bool = True,
    ) -> None:
        self.counts = Counts()
        self.splits: list[tuple[int, Split, ReducedSplit]] = []
        self._steps = steps
        self._arguments = sources, dead_letter, max_delay, replay_clock
        self._run = SplitRun(steps, *self._arguments)
        self._size, self._count, self._at_most = size, count, at_most
        self._cuts = cuts
        self._are_sent = are_sent
        self._are_compared = are_compared

    def run(self) -> Iterator[Answer]:
        steps, run = self._steps, self._run
        planned: dict[int, Split] = {}
        batch = 0
        while not run.is_done:
            if batch in self._cuts:
                written = _written(run)
                steps = [Step(step.plan) for step in steps]
                run = SplitRun(steps, *self._arguments)
                run.restore(json.loads(written), planned)
                assert not self._are_compared or _read(_written(run)) == _read(written), (
                    "nothing is lost"
                )
            batch += 1
            splits = list(run.plan(planned, self._size, self._count))
            reduced = [(number, split, run.reduce(number, split)) for number, split in splits]
            self.splits += reduced
            planned.update(splits)
            yield from run.merge(_send(reduced) if self._are_sent else reduced, self._at_most)
        for field in fields(Counts):
            setattr(self.counts, field.name, getattr(run.counts, field.name))


def _read(text: str) -> object:
    """Read a state; NaN is the same as itself."""
    return json.loads(text, parse_constant=str)


def _written(run: SplitRun) -> str:
    """Return the state of a run as text: no NaN is equal to another."""
    return json.dumps(run.state(), sort_keys=True)


def _send(
    splits: Sequence[tuple[int, Split, ReducedSplit]],
) -> list[tuple[int, Split, ReducedSplit]]:
    """Return splits encoded and decoded as executors send them."""
    rows = [to_rows(seq, *each) for seq, each in enumerate(splits)]
    return from_rows(pa.Table.from_batches(rows)) if rows else []


@contextmanager
def in_splits(
    size: int = 1,
    count: int = 2,
    cuts: Collection[int] = (),
    *,
    are_sent: bool = True,
    are_compared: bool = True,
) -> Iterator[None]:
    """Patch engines to read their sources in splits; `are_sent` as rows, or as they are."""
    how = {"size": size, "count": count, "cuts": cuts}
    made = partial(SplitTestDriver, are_sent=are_sent, are_compared=are_compared, **how)  # type: ignore[arg-type]
    with patch("rsp_engine.engine.LocalDriver", made):
        yield
