"""The local driver for what has no end, or must not be lost: place by place, in this process.

The same places, states and checkpoints as on Spark. A state is written at most every half second,
when every answer that came of it has left; a disk that is full is told, and tried again.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING

from rsp_engine.errors import DriverError
from rsp_engine.runtime.placed_driver import PlacedDriver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.answers import Answer
    from rsp_engine.runtime.commits import Kept
    from rsp_engine.runtime.placed import PlacedRun

__all__ = ["SteadyDriver"]

_LOG = logging.getLogger("rsp")
_COMMIT_S = 0.5
_PLACES = 4
_READ_HERE = 20_000


class SteadyDriver(PlacedDriver):
    """Runs queries over sources until these end, or somebody stops it."""

    def __init__(
        self, run: PlacedRun, kept: Kept | None = None, *, place_bytes: int = 1 << 20
    ) -> None:
        super().__init__(run, kept)
        self._place_bytes = place_bytes
        self._committed = -float("inf")
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
        self._is_dirty = self._is_dirty or bool(places)
        given = [(number, place, self._run.reduce(number, place)) for number, place in places]
        for number, place, _ in given:
            self._commits.planned[number] = place
        for answer in self._run.take(given, _READ_HERE):
            self._commits.note()
            yield answer

    def _is_time_to_commit(self) -> bool:
        is_kept = self._commits.folder is not None
        return is_kept and time.monotonic() - self._committed >= _COMMIT_S

    def _commit(self, *, is_last: bool = False) -> None:
        """Commit what was taken; what cannot be written is told once, and tried again."""
        self._committed = time.monotonic()
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
