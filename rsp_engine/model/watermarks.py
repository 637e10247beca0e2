"""Watermarks: how far the event time of streams has come.

The watermark of a stream is the largest timestamp seen, less `max_delay`; no element before it is
waited for. A query has the least watermark of its streams. A live stream that has been silent for
`idle_timeout` does not hold the others up.
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
    """When it was last heard, by the wall clock; at first, when it was first asked about."""
    is_resting: bool = False
    """Whether somebody said that it is silent, and nothing was heard since."""


class Watermarks:
    """The watermarks of all streams. Times of the wall clock are given, never asked for.

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
        """Learn of an element, and tell whether the watermark of its stream rises."""
        progress = self._streams[stream]
        progress.last_seen = now
        progress.is_resting = False
        watermark = timestamp - self._max_delay
        if watermark <= progress.watermark:
            return False
        progress.watermark = watermark
        return True

    def rest(self, stream: str) -> None:
        """Learn that a live stream is silent: until it is heard again, nobody waits for it."""
        self._streams[stream].is_resting = True

    def raise_to(self, stream: str, watermark: float) -> None:
        """Learn that no element of a stream before the watermark is still to come."""
        progress = self._streams[stream]
        progress.watermark = max(progress.watermark, watermark)

    def end(self, stream: str) -> None:
        """Learn that a stream has ended."""
        self.raise_to(stream, inf)

    def of(self, streams: Sequence[str], now: float = -inf) -> float:
        """Return the watermark of a query over these streams; it never falls.

        Streams that have ended do not count. Where all others are idle, the one that came furthest
        counts: nothing else is waited for.
        """
        if len(streams) == 1:
            return self._streams[streams[0]].watermark
        query = tuple(streams)
        watermark = max(self._least(query, now), self._reached.get(query, -inf))
        self._reached[query] = watermark
        return watermark

    def seen(self, streams: Sequence[str]) -> float:
        """Return the same, but let another thread ask: nothing is learned from it."""
        reached = self._reached.get(tuple(streams), -inf)
        marks = [self._streams[stream].watermark for stream in streams]
        return max(min((mark for mark in marks if mark < inf), default=inf), reached)

    def state(self) -> dict[str, Any]:
        """Return how far streams and queries have come, as plain data.

        When a stream was last heard is not told: the wall clock of another day says nothing.
        """
        return {
            "max_delay": self._max_delay,
            "streams": {name: progress.watermark for name, progress in self._streams.items()},
            "reached": [[list(query), reached] for query, reached in self._reached.items()],
            "resting": [name for name, progress in self._streams.items() if progress.is_resting],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of the same streams and the same `max_delay`."""
        delay, streams = state["max_delay"], state["streams"]
        if delay != self._max_delay:
            found = self._max_delay
            raise StateError(f"this state is of a max_delay of {delay} ms, not of {found} ms")
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
        heard = [p for p in live if not p.is_resting]
        awake = [p.watermark for p in heard if p.last_seen >= now - self._idle_timeout]
        return min(awake) if awake else max((p.watermark for p in live), default=inf)
