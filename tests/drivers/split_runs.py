"""Runs over splits in this process: what the Spark driver does, without Spark."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Literal
from unittest.mock import patch

import pyarrow as pa

from rsp_engine.drivers.panes.distributed_step import distributed_step
from rsp_engine.drivers.panes.evaluation import Evaluation, EvaluationOptions
from rsp_engine.drivers.panes.evaluation_task import run_task
from rsp_engine.drivers.panes.pane_file import PaneWriter
from rsp_engine.drivers.panes.pane_store import PaneStore
from rsp_engine.drivers.spark.arrow_codec import from_rows, to_rows
from rsp_engine.drivers.splits.split_run import SplitRun
from rsp_engine.evaluators.step import Step
from rsp_engine.evaluators.window_run import can_share_windows
from rsp_engine.monitor.run_monitor import Counts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rsp_engine.drivers.checkpoint.commits import CheckpointSpec
    from rsp_engine.drivers.panes.evaluation_task import EvaluationTask, TaskResult
    from rsp_engine.drivers.splits.split_reducer import ReducedSplit
    from rsp_engine.io.sources import BlankNodeScope, ElementSource
    from rsp_engine.io.sources.predicate_sample import PredicateSample
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter, Element

__all__ = ["OneByOne", "RemakeableRun", "Shared", "SplitTestDriver", "in_splits"]


@dataclass(frozen=True, slots=True)
class OneByOne:
    """A source without splits and batches: its elements are read one by one."""

    source: ElementSource

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def blank_node_scope(self) -> BlankNodeScope:
        return self.source.blank_node_scope

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        return iter(self.source)


@dataclass(frozen=True, slots=True)
class Shared:
    """Windows are evaluated from pane files: by tasks, here, or by turns."""

    where: Literal["driver", "executors", "turns"] = "executors"
    buckets: int = 3
    cores: int = 2
    small_bytes: int = 0
    """The panes of smaller splits are not stored."""


class EvaluationByTurns(Evaluation):
    """An evaluation whose micro-batches are evaluated by tasks and here, by turns."""

    turns = count()

    def _is_for_executors(self, batch: Any) -> bool:
        return next(self.turns) % 3 > 0


class RemakeableRun(SplitRun):
    """A run that can be made again, with the steps of the same plans and the same sources."""

    def __init__(
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[ElementSource]],
        *arguments: Any,
        are_split: bool = True,
        shared: Shared | None = None,
    ) -> None:
        if not are_split:
            sources = {stream: list(map(OneByOne, bound)) for stream, bound in sources.items()}
        read = {stream for step in steps for stream in step.streams}
        if shared is not None and not any(step.plan.feeds in read for step in steps):
            steps = [
                distributed_step(step.plan) if can_share_windows(step.plan) else step
                for step in steps
            ]
        super().__init__(steps, sources, *arguments)
        self._arguments = sources, *arguments
        self._shared = shared

    def remade(self) -> RemakeableRun:
        """Return the run as it was before its first element."""
        steps = [Step(step.plan) for step in self._steps]
        return RemakeableRun(steps, *self._arguments, shared=self._shared)

    def share(self, store: PaneStore) -> None:
        """Let windows be evaluated from files in a folder, if they are to be."""
        shared = self._shared
        if shared is None:
            return
        where, self.buckets = shared.where, self.buckets or shared.buckets
        kind = EvaluationByTurns if where == "turns" else Evaluation
        options = EvaluationOptions(
            lambda: shared.cores,
            self.buckets,
            "auto" if where == "turns" else where,
            small_bytes=shared.small_bytes,
        )

        def run_tasks(tasks: Sequence[EvaluationTask]) -> list[TaskResult]:
            assert self.evaluation is not None
            plans, sent = _pickled((dict(self.evaluation.plans), list(tasks)))
            results, again = (
                [run_task(plans, str(store.folder), task) for task in sent] for _ in range(2)
            )
            assert [each.answers for each in again] == [each.answers for each in results]
            return results

        self.evaluation = kind(self._steps, store, run_tasks, options)

    def stored(self, reduced: ReducedSplit) -> ReducedSplit:
        """Return a split as an executor returns it: with its panes in a file."""
        if self._shared is None or self.evaluation is None:
            return reduced
        with PaneWriter(self.evaluation.files) as writer:
            writer.store_split(reduced)  # of an attempt that fails later
        with PaneWriter(self.evaluation.files) as writer:
            return writer.store_split(reduced)


class SplitTestDriver:
    """A driver that reads splits of `size` bytes, `count` of them in each micro-batch.

    Of a source without splits, a micro-batch reads `at_most` elements. Before the micro-batches in
    `cuts`, the state is saved, and another run resumes from it. If `are_compared`, the restored
    state must equal the saved one; it does not with NaN, nor with SAP, which forgets empty
    partitions.
    """

    is_stopping = False

    def __init__(
        self,
        run: RemakeableRun,
        _: CheckpointSpec | None = None,
        *,
        split_bytes: int = 0,
        size: int = 1,
        count: int = 2,
        at_most: int = 3,
        cuts: Collection[int] = (),
        are_sent: bool = True,
        are_compared: bool = True,
    ) -> None:
        self.counts = Counts()
        self.splits: list[tuple[int, Split, ReducedSplit]] = []
        self._run = run
        self._size, self._count, self._at_most = size, count, at_most
        self._cuts = cuts
        self._are_sent = are_sent
        self._are_compared = are_compared

    def watermarks(self) -> dict[str, float]:
        return self._run.watermarks()

    def evaluated(self) -> dict[str, int]:
        return {}

    def read_to(self) -> dict[int, Split]:
        return {}

    def sample(self, number: int) -> PredicateSample | None:
        return self._run.sample(number)

    def stop(self) -> None:
        raise NotImplementedError

    def run(self) -> Iterator[Answer]:
        with ExitStack() as opened:
            store = PaneStore(None)
            opened.callback(store.close)
            yield from self._answers(store)

    def _answers(self, store: PaneStore) -> Iterator[Answer]:
        run = self._run
        run.share(store)
        planned: dict[int, Split] = {}
        batch = 0
        while not run.is_done:
            if batch in self._cuts:
                written = _written(run)
                run = run.remade()
                run.restore(json.loads(written), planned)
                run.share(store)
                assert not self._are_compared or _read(_written(run)) == _read(written), (
                    "nothing is lost"
                )
            batch += 1
            splits = list(run.plan(planned, self._size, self._count))
            reduced = [(number, split, run.reduce(number, split)) for number, split in splits]
            self.splits += reduced
            planned.update(splits)
            sent = [(number, split, run.stored(each)) for number, split, each in reduced]
            sent = _send(sent) if self._are_sent else sent
            yield from run.merge(sent, self._at_most)
            store.sweep(run.pane_files())
        for field in fields(Counts):
            setattr(self.counts, field.name, getattr(run.counts, field.name))


def _pickled(value: Any) -> Any:
    """Return what an executor receives."""
    from pyspark import cloudpickle

    return cloudpickle.loads(cloudpickle.dumps(value))


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
    *, are_split: bool = True, shared: Shared | None = None, **how: Any
) -> Iterator[None]:
    """Patch engines to run with a `SplitTestDriver`, or without splits, one element at a time."""
    if not are_split:
        how = {"at_most": 1, **how}
    with (
        patch("rsp_engine.engine.LocalDriver", partial(SplitTestDriver, **how)),
        patch(
            "rsp_engine.engine.SplitRun", partial(RemakeableRun, are_split=are_split, shared=shared)
        ),
    ):
        yield
