"""The answers of a query as they come, for any number of clients.

A feed reads the log of answers once for all clients, and keeps the last answers in memory. A client
that is further behind reads the log itself. So a slow client costs nothing but its place: what it
has not read is on disk.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from rsp_engine.io.sources.live.log.log_reader import LogReader
    from rsp_engine.io.sources.live.records import SpoolRecord

__all__ = ["AnswerFeed", "FeedItem", "MissedAnswers"]

_POLL_S, _LONGEST_POLL_S = 0.04, 0.25
"""How long a feed waits before it looks for answers again; each time in vain it waits longer."""
_MOST_KEPT = 512
"""How many answers are kept in memory."""
_MOST_BYTES = 4 << 20
_PIECE = 256
"""How many answers a client that is behind reads at a time."""


class FeedItem(NamedTuple):
    """An answer: its number, the close of its window, and its line."""

    number: int
    close: int
    line: bytes


class MissedAnswers(NamedTuple):
    """Answers that are no longer kept."""

    first: int
    last: int


class AnswerFeed:
    """The answers of a job."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._recent: deque[FeedItem] = deque(maxlen=_MOST_KEPT)
        self._bytes = 0
        self._offset: int | None = None
        self._last = 0
        """The number of the last answer that was read."""
        self._clients = 0
        self._starting = asyncio.Lock()
        self._moved = asyncio.Event()
        """Set once, at the next change. It needs no lock, which clients that are cancelled again
        while they are being cancelled would leave in the wrong hands."""
        self._task: asyncio.Task[None] | None = None

    async def follow(
        self, after: int, is_over: Callable[[], bool]
    ) -> AsyncIterator[FeedItem | MissedAnswers | None]:
        """Yield the answers after a number, for ever; None whenever nothing came for a while."""
        self._clients += 1
        try:
            async with self._starting:  # of clients that come at once, the first one starts it
                if self._task is None:
                    end = await asyncio.to_thread(self._reader.end)
                    self._offset, self._last = end.offset, end.number
                    self._recent.clear()
                    self._task = asyncio.create_task(self._read_on())
            while not is_over():
                if after >= self._last:
                    if not await self._wait(after):
                        yield None
                    continue
                if self._recent and self._recent[0].number <= after + 1:
                    for recent in [each for each in self._recent if each.number > after]:
                        yield recent
                        after = recent.number
                    continue
                async for item in self._from_disk(after):
                    yield item
                    after = item.last if isinstance(item, MissedAnswers) else item.number
        finally:
            self._clients -= 1
            if not self._clients and self._task is not None:
                self._task.cancel()
                self._task = None

    async def wake(self) -> None:
        """Let all clients look whether the query is still there."""
        self._tell()

    def _tell(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def _wait(self, after: int) -> bool:
        """Wait for an answer after a number, or a change of the query; return whether one came."""
        if self._last <= after:
            try:
                async with asyncio.timeout(1.0):
                    await self._moved.wait()
            except TimeoutError:
                return False
        return self._last > after

    async def _from_disk(self, after: int) -> AsyncIterator[FeedItem | MissedAnswers]:
        items = await asyncio.to_thread(_read, self._reader, after + 1, _PIECE)
        first = items[0].number if items else self._last + 1
        if first > after + 1:
            yield MissedAnswers(after + 1, first - 1)
        for item in items:
            yield item

    async def _read_on(self) -> None:
        """Read what is appended to the log, as long as there are clients."""
        pause = _POLL_S
        while True:
            assert self._offset is not None, "it is set before"  # noqa: S101
            if self._reader.end().offset > self._offset:
                items, self._offset = await asyncio.to_thread(
                    _read_from, self._reader, self._offset
                )
                self._recent.extend(items)
                while self._recent and sum(len(i.line) for i in self._recent) > _MOST_BYTES:
                    self._recent.popleft()
                if items:
                    self._last = items[-1].number
                self._tell()
                pause = _POLL_S
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_POLL_S)


def as_item(record: SpoolRecord) -> FeedItem:
    """Return the answer of a record."""
    return FeedItem(record.number, int(record.message.topic), record.message.payload)


def _read(reader: LogReader, number: int, most: int) -> list[FeedItem]:
    return [as_item(record) for _, record in islice(reader.from_number(number), most)]


def _read_from(reader: LogReader, offset: int) -> tuple[list[FeedItem], int]:
    pieces = list(islice(reader.records(offset), _PIECE))
    return [as_item(record) for _, record in pieces], pieces[-1][0] if pieces else offset
