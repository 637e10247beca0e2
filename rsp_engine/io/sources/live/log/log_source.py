"""A log as a live source: `log://FOLDER`. Another process may write it meanwhile."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from rsp_engine.errors import DriverError, SourceError
from rsp_engine.io.sources.live.log.declaration import read_declaration
from rsp_engine.io.sources.live.log.log_reader import LogReader
from rsp_engine.io.sources.live.receiver import TroubleLog
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.io.sources.live.spooled import SpoolPart, SpoolReader
from rsp_engine.io.sources.predicate_sample import MOST_SAMPLED, PredicateSample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.io.sources.live.kafka.watch import Start
    from rsp_engine.io.sources.live.spooled import MessageFormat
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.io.sources.splits import Split

__all__ = ["LogSource", "open_log"]

_POLL_S = 0.01
"""How often a waiting reader looks for new messages."""


class LogSource(LiveSource):
    """A log, read from an offset on; it is its own only partition."""

    can_be_cut = True
    start: int | None = None

    def __init__(  # noqa: PLR0913 - all but the log have a default
        self,
        folder: Path,
        payloads: MessageFormat,
        *,
        start: Start | None = None,
        offset: int | None = None,
        ends: bool = False,
        idle: int = 10_000,
    ) -> None:
        """Set where to start: at an offset, or where `start` says when it begins to be read.

        With `ends`, the stream ends where the log ends at that time. `idle` is the silence in
        milliseconds after which other streams stop waiting for this one.
        """
        self.name = payloads.source
        self.start = offset
        self._folder = folder.absolute()
        self._payloads = payloads
        self._start = start
        self._ends = ends
        self._idle = idle
        self._reader = LogReader(self._folder, self.name)
        self._last: int | None = None
        """The offset at which the stream ends, if it does."""
        self._seen_to = -1
        self._heard = time.monotonic()
        self._trouble = TroubleLog(self.name)

    def begin(self, folder: Path, *, is_kept: bool) -> None:
        """Find the start; nothing is written to the folder."""
        del folder, is_kept
        if not self._folder.is_dir():
            raise DriverError(f"{self.name}: {self._folder} is not there", "check the path")
        if self.start is None:
            self.start = self._offset()
        if self._ends:
            self._last = self._reader.end().offset
        self._heard = time.monotonic()

    def _offset(self) -> int:
        match self._start:
            case "latest":
                return self._reader.end().offset
            case int(instant):
                return self._reader.offset_for(instant)
            case _:
                return self._reader.starts()[0]

    def end(self) -> None:
        """End the stream where the log ends now."""
        end = self._reader.end().offset
        self._last = end if self._last is None else min(end, self._last)

    def close(self) -> None:
        """Close the log."""
        self._reader.close()

    @property
    def has_ended(self) -> bool:
        """Whether no more messages will follow."""
        return self._last is not None

    @property
    def is_silent(self) -> bool:
        """Whether the idle timeout has passed without a message."""
        return time.monotonic() - self._heard > self._idle / 1000

    @property
    def is_full(self) -> bool:
        """Return False: no sender waits for readers."""
        return False

    def partitions(self) -> Sequence[LogSource]:
        """Return the source itself."""
        return (self,)

    def is_at_hand(self, split: Split) -> bool:
        """Return True: what can be read is on disk."""
        return split.end is not None

    def report(self, trouble: str) -> None:
        """Log a failure once."""
        self._trouble.report(trouble)

    def bytes_in(self, split: Split) -> int:
        """Return how many bytes a split has."""
        return 0 if split.end is None else split.end - split.start

    def wait(self, since: Split | None, seconds: float) -> None:
        """Wait until there are messages after a split, or the time is up."""
        after = self._after(since)
        until = time.monotonic() + seconds
        while self._reader.end().offset <= after and time.monotonic() < until:
            time.sleep(_POLL_S)

    def go_on(self, since: Split) -> None:
        """Check that the log still has what follows a split; raise `SourceError` if not."""
        begin, end = self._reader.starts()[0], self._reader.end().offset
        if since.end is None or begin <= since.end <= end:
            return
        side = f"ends at {end}" if end < since.end else f"keeps what follows {begin}"
        raise SourceError(
            f"{self.name}: its log {side}, and was read up to {since.end}",
            "start with an empty checkpoint, or keep more of the stream",
        )

    def release(self, until: int) -> None:
        """Do nothing: a log is kept by time and size."""

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of the messages so far; a later call may yield more."""
        for split in self._reader.cut(size, self._after(since)):
            if self._last is not None and split.start >= self._last:
                return
            self._heard = time.monotonic()
            yield split

    def _after(self, since: Split | None) -> int:
        return (self.start or 0) if since is None or since.end is None else since.end

    def part(self, split: Split) -> SpoolPart:
        """Return the messages of a split."""
        return SpoolPart(self._folder, self._payloads, split)

    def predicates(self) -> PredicateSample:
        """Return the predicates of the first messages."""
        sample = PredicateSample(is_cut=True)
        left = MOST_SAMPLED
        for _, record in self._reader.records(self.start or 0):
            items = list(self._payloads.elements(record))
            deque(sample.take(items), maxlen=0)
            left -= max(len(items), 1)
            if left <= 0:
                break
        return sample

    def __reduce__(self) -> tuple[type[SpoolReader], tuple[Path, MessageFormat]]:
        """Pickle as a `SpoolReader`: executors only read."""
        return SpoolReader, (self._folder, self._payloads)


def open_log(spec: Spec, folder: str, start: Start) -> LogSource:
    """Return a source that reads the log in a folder."""
    path = Path(folder)
    declaration = read_declaration(path)
    ends = spec.choice("end", ("never", "here")) == "here"
    return LogSource(
        path,
        declaration.payloads(path),
        start=start,
        ends=ends,
        idle=spec.duration("idle", declaration.options.get("idle", "10s")),
    )
