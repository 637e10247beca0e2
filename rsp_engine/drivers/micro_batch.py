"""The local driver for what has no end, or must not be lost: place by place, in this process.

The same places, states and checkpoints as on Spark. A state is written every half second, sooner
where a sender waits for room, or less often where that takes long, when every answer that came of
it has left; a disk that is full is told, and tried again.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING

from rsp_engine.drivers.split_driver import SplitDriver
from rsp_engine.errors import DriverError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.drivers.checkpoint.commits import CheckpointSpec
    from rsp_engine.drivers.splits.split_run import SplitRun
    from rsp_engine.model.answers import Answer

__all__ = ["MicroBatchDriver"]

_LOG = logging.getLogger("rsp")
_COMMIT_S = 0.5
_QUICK_S = 0.125
"""Where a commit takes longer, the next comes later: a fifth of the time goes into them at most."""
_HURRIED_S = 0.05
"""How soon a state is written after another where a sender waits for room."""
_PLACES = 4
_READ_HERE = 20_000


class MicroBatchDriver(SplitDriver):
    """Runs queries over sources until these end, or somebody stops it."""

    def __init__(
        self, run: SplitRun, kept: CheckpointSpec | None = None, *, place_bytes: int = 1 << 20
    ) -> None:
        super().__init__(run, kept)
        self._place_bytes = place_bytes
        self._committed = self._next_commit = -float("inf")
        self._is_failing = False
        self._is_dirty = False
        """Whether something was taken that no state knows of."""

    def run(self) -> Iterator[Answer]:
        """Yield the answers of all queries, each query's in order."""
        with closing(self._commits):
            self._commits.restore(is_strict=False)
            while not (self._run.is_done or self._is_stopping):
                yield from self._answers()
                if self._commits.folder is None or self._is_time_to_commit():
                    self._commit()
            self._commit(is_last=True)

    def _answers(self) -> Iterator[Answer]:
        places = self._run.plan_when_there_is_more(
            self._commits.planned,
            self._place_bytes,
            _PLACES,
            lambda: self._is_stopping or (self._is_dirty and self._is_time_to_commit()),
        )
        given = []
        for number, place in places:
            given.append((number, place, self._run.reduce(number, place)))
            self._commits.planned[number] = place
            if self._is_time_to_commit():
                break  # the other places are planned again
        self._is_dirty = True
        for answer in self._run.take(given, _READ_HERE, self._is_time_to_commit):
            self._commits.note()
            yield answer

    def _is_time_to_commit(self) -> bool:
        now = time.monotonic()
        is_urgent = now >= self._committed + _HURRIED_S and self._run.is_full
        return self._commits.folder is not None and (now >= self._next_commit or is_urgent)

    def _commit(self, *, is_last: bool = False) -> None:
        """Commit what was taken; what cannot be written is told once, and tried again."""
        begun = time.monotonic()
        try:
            self._commits.commit()
        except DriverError as error:
            if is_last:
                raise
            if not self._is_failing:
                _LOG.warning("%s; the run goes on, and tries again", error.message)
            self._is_failing = True
        else:
            self._is_failing = self._is_dirty = False
        finally:
            self._committed = time.monotonic()
            slow = max(1, (self._committed - begun) / _QUICK_S)
            self._next_commit = self._committed + _COMMIT_S * slow
