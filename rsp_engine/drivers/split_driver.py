"""The base of the drivers that read split by split and commit: the local one and Spark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rsp_engine.drivers.checkpoint.commits import CheckpointSpec, Commits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.drivers.splits.split_run import SplitRun
    from rsp_engine.io.sources.predicate_sample import PredicateSample
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.monitor.run_monitor import Counts

__all__ = ["SplitDriver"]

_WAIT_S = 0.02
"""How often a driver looks whether full outputs have room, in seconds."""


class SplitDriver:
    """A split run, its commits, and its progress, which other threads may read."""

    def __init__(self, run: SplitRun, checkpoint: CheckpointSpec | None = None) -> None:
        self._run = run
        self._commits = Commits(run, checkpoint or CheckpointSpec())
        self._is_stopping = False
        self._is_patient = True
        """Whether full outputs stop the input."""

    @property
    def counts(self) -> Counts:
        """How many elements, triples and answers have passed through the run so far."""
        return self._run.counts

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._is_stopping

    @property
    def passes(self) -> int:
        """How often the run has looked for something to read; it is stuck if this stands still."""
        return self._run.passes

    def watermarks(self) -> dict[str, float]:
        """Return the watermark of each query. Other threads may call this."""
        return self._run.watermarks()

    def evaluated(self) -> Mapping[str, int]:
        """Return how many windows the driver and executors have evaluated, where both can."""
        evaluation = self._run.evaluation
        return {} if evaluation is None else evaluation.evaluated.copy()

    def sample(self, number: int) -> PredicateSample | None:
        """Return the predicates that were sampled of a source that can be read only once."""
        return self._run.sample(number)

    def read_to(self) -> Mapping[int, Split]:
        """Return the last split that was read of each source, by the number of the source."""
        return self._commits.planned.copy()

    def stop(self) -> None:
        """End the run after the current micro-batch."""
        self._is_stopping = True

    def take_the_rest(self) -> None:
        """Read on although outputs are full: the sources are about to end."""
        self._is_patient = False

    def _wait_for_outputs(self) -> None:
        """Wait while an output is full, unless the run is to end."""
        while self._is_patient and not self._is_stopping and self._commits.is_full:
            self._while_full()
            time.sleep(_WAIT_S)

    def _while_full(self) -> None:
        """Do what is due while the input waits."""
