"""The local driver: one process, no JVM.

It reads the same splits as the Spark driver, in micro-batches, and commits the same states if there
is a checkpoint. A commit follows every half second, once the answers before it are emitted: sooner
while back-pressure blocks a sender, later when commits take long. A commit that fails, on a full
disk for instance, is logged and retried.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING

from rsp_engine.drivers.splits.split_run import SplitDriver
from rsp_engine.errors import DriverError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from rsp_engine.drivers.checkpoint.commits import CheckpointSpec
    from rsp_engine.drivers.splits.split_reducer import ReducedSplit
    from rsp_engine.drivers.splits.split_run import SplitRun
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.model.answers import Answer

__all__ = ["LocalDriver"]

_LOG = logging.getLogger("rsp")
_COMMIT_S = 0.5
"""The usual interval between two commits, in seconds."""
_QUICK_S = 0.125
"""A longer commit delays the next one: commits take at most a fifth of the time."""
_HURRIED_S = 0.05
"""The least interval between two commits, in seconds, while back-pressure blocks a sender."""
_SPLITS = 4
"""How many splits of a source one micro-batch reads."""
_MOST_SPLIT_BYTES = 2 << 20
"""The largest split: a larger one is not read faster, but takes more memory."""
_ITEMS = 20_000
"""How many items one micro-batch takes of sources that cannot be split."""


class LocalDriver(SplitDriver):
    """A driver that runs queries in micro-batches until their sources end, or it is stopped."""

    def __init__(
        self, run: SplitRun, checkpoint: CheckpointSpec | None = None, *, split_bytes: int = 2 << 20
    ) -> None:
        super().__init__(run, checkpoint)
        self._split_bytes = min(split_bytes, _MOST_SPLIT_BYTES)
        self._committed = self._next_commit = -float("inf")
        self._is_failing = False
        self._is_dirty = False
        """Whether something was merged since the last commit."""

    def run(self) -> Generator[Answer]:
        """Yield the answers of all queries, those of each query in order."""
        with closing(self._commits):
            self._commits.restore(is_strict=False)
            while not (self._run.is_done or self._is_stopping):
                self._wait_for_outputs()
                yield from self._answers()
                if self._commits.folder is None or self._is_time_to_commit():
                    self._commit()
            self._commit(is_last=True)

    def _answers(self) -> Iterator[Answer]:
        planned = self._run.wait_for_splits(
            self._commits.planned,
            self._split_bytes,
            _SPLITS,
            lambda: self._is_stopping or (self._is_dirty and self._is_time_to_commit()),
        )
        reduced: list[tuple[int, Split, ReducedSplit]] = []
        away: set[int] = set()
        for number, split in planned:
            if number in away or not self._run.is_at_hand(number, split):
                away.add(number)  # and its later splits wait, too
                continue
            reduced.append((number, split, self._run.reduce(number, split)))
            self._commits.planned[number] = split
            if self._is_time_to_commit():
                break  # the other splits are planned again
        self._is_dirty = True
        for answer in self._run.merge(reduced, _ITEMS, self._is_enough):
            self._commits.note()
            yield answer

    def _while_full(self) -> None:
        """Commit: only what is committed leaves the outputs."""
        if self._is_dirty and self._is_time_to_commit():
            self._commit()

    def _is_enough(self) -> bool:
        """Return whether the rest of the micro-batch is left to the next one."""
        return self._is_time_to_commit() or (self._is_patient and self._commits.is_full)

    def _is_time_to_commit(self) -> bool:
        now = time.monotonic()
        is_urgent = now >= self._committed + _HURRIED_S and (
            self._run.is_full or self._commits.is_full
        )
        return self._commits.folder is not None and (now >= self._next_commit or is_urgent)

    def _commit(self, *, is_last: bool = False) -> None:
        """Commit; log the first of several failures, and retry with the next commit."""
        start = time.monotonic()
        try:
            self._commits.commit()
        except DriverError as error:
            if is_last:
                raise
            if not self._is_failing:
                _LOG.warning("%s; the run continues, and retries", error.message)
            self._is_failing = True
        else:
            self._is_failing = self._is_dirty = False
        finally:
            self._committed = time.monotonic()
            slow = max(1, (self._committed - start) / _QUICK_S)
            self._next_commit = self._committed + _COMMIT_S * slow
