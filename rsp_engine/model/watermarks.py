"""Watermarks: the progress of event time, per stream and per query.

The watermark of a stream is the largest timestamp seen, less `max_delay`; an element before it is
late. The watermark of a query is the minimum over its streams. A live stream without elements for
`idle_timeout` is idle, and does not hold back the watermark of a query.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Watermarks"]


@dataclass(slots=True)
class _Progress:
    watermark: float = -inf
    last_seen: float = -inf
    """Wall-clock time of the last element; before the first one, of the first `Watermarks.of`."""
    is_resting: bool = False
    """Whether the stream was declared idle by `Watermarks.rest`, without an element since."""


class Watermarks:
    """The watermarks of all streams. Callers pass the wall-clock time; no clock is read here.

    >>> marks = Watermarks(["a", "b"], max_delay=5)
    >>> marks.see("a", 100), marks.see("b", 20), marks.see("b", 10)
    (True, True, False)
    >>> marks.of(["a"]), marks.of(["a", "b"])
    (95, 15)
    """

    def __init__(
        self, streams: Iterable[str], max_delay: int = 0, idle_timeout: float = inf
    ) -> None:
        if max_delay < 0:
            raise ValueError("max_delay must not be negative")
        self._max_delay = max_delay
        self._idle_timeout = idle_timeout
        self._streams = {stream: _Progress() for stream in streams}
        self._reached: dict[tuple[str, ...], float] = {}

    def see(self, stream: str, timestamp: int, now: float = -inf) -> bool:
        """Advance a stream by an element, and return whether its watermark rises."""
        progress = self._streams[stream]
        progress.last_seen = now
        progress.is_resting = False
        watermark = timestamp - self._max_delay
        if watermark <= progress.watermark:
            return False
        progress.watermark = watermark
        return True

    def rest(self, stream: str) -> None:
        """Mark a live stream as idle until its next element."""
        self._streams[stream].is_resting = True

    def raise_to(self, stream: str, watermark: float) -> None:
        """Raise the watermark of a stream; a lower one changes nothing."""
        progress = self._streams[stream]
        progress.watermark = max(progress.watermark, watermark)

    def end(self, stream: str) -> None:
        """Mark a stream as ended: its watermark is infinite."""
        self.raise_to(stream, inf)

    def of(self, streams: Sequence[str], now: float = -inf) -> float:
        """Return the watermark of a query over these streams; it never falls.

        Streams that have ended do not count. If all others are idle, the furthest of them counts,
        so that the query does not stall.
        """
        if len(streams) == 1:
            return self._streams[streams[0]].watermark
        query = tuple(streams)
        watermark = max(self._least(query, now), self._reached.get(query, -inf))
        self._reached[query] = watermark
        return watermark

    def seen(self, streams: Sequence[str]) -> float:
        """Return the watermark of a query without updating it, for other threads.

        Idle streams count here.
        """
        reached = self._reached.get(tuple(streams), -inf)
        marks = [self._streams[stream].watermark for stream in streams]
        return max(min((mark for mark in marks if mark < inf), default=inf), reached)

    def state(self) -> dict[str, Any]:
        """Return the watermarks of streams and queries as plain data.

        `last_seen` is left out: wall-clock times mean nothing to a later run.
        """
        return {
            "max_delay": self._max_delay,
            "streams": {name: progress.watermark for name, progress in self._streams.items()},
            "reached": [[list(query), reached] for query, reached in self._reached.items()],
            "resting": [name for name, progress in self._streams.items() if progress.is_resting],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state; raise `StateError` if its streams or its `max_delay` are others."""
        delay, streams = state["max_delay"], state["streams"]
        if delay != self._max_delay:
            own = self._max_delay
            raise StateError(f"this state is of a max_delay of {delay} ms, not of {own} ms")
        if set(streams) != set(self._streams):
            was, is_now = (", ".join(sorted(names)) for names in (streams, self._streams))
            raise StateError(f"this state is of the streams {was}, not of {is_now}")
        self._streams = {name: _Progress(streams[name]) for name in self._streams}
        for name in state.get("resting", ()):
            self._streams[name].is_resting = True
        self._reached = {tuple(query): reached for query, reached in state["reached"]}

    def _least(self, streams: tuple[str, ...], now: float) -> float:
        live = [p for p in map(self._streams.__getitem__, streams) if p.watermark < inf]
        for progress in live:
            if progress.last_seen == -inf:
                progress.last_seen = now
        deadline = now - self._idle_timeout
        active = [p.watermark for p in live if not p.is_resting and p.last_seen >= deadline]
        return min(active) if active else max((p.watermark for p in live), default=inf)
