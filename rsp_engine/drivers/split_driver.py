"""A driver that reads place by place and commits: what may be asked of it while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.drivers.checkpoint.commits import CheckpointSpec, Commits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.drivers.splits.split_run import SplitRun
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.monitor.run_monitor import Counts

__all__ = ["SplitDriver"]


class SplitDriver:
    """Runs queries until their sources end, or somebody stops it; how, drivers say."""

    def __init__(self, run: SplitRun, kept: CheckpointSpec | None = None) -> None:
        self._run = run
        self._commits = Commits(run, kept or CheckpointSpec())
        self._is_stopping = False

    @property
    def counts(self) -> Counts:
        """What passed through the run so far."""
        return self._run.counts

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has ended the run before its end."""
        return self._is_stopping

    def watermarks(self) -> dict[str, float]:
        """Return how far each query has come; another thread may ask."""
        return self._run.watermarks()

    def read_to(self) -> Mapping[int, Split]:
        """Return the last place of each source that was read in places."""
        return self._commits.planned.copy()

    def stop(self) -> None:
        """End the run after what is in hand."""
        self._is_stopping = True
