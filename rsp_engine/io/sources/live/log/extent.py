"""The extent of a part of a log: how much it holds, and its least and greatest event time."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import SourceError
from rsp_engine.io.atomic_file import write_file
from rsp_engine.model.streams import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rsp_engine.io.sources.live.records import SpoolRecord
    from rsp_engine.model.streams import Element

__all__ = ["LogExtent", "LogIndex", "message_extent", "read_index"]

_INDEX = "index.json"


@dataclass(frozen=True, slots=True)
class LogExtent:
    """What a part of a log holds. Times are milliseconds.

    >>> LogExtent(messages=1, elements=1, least=5, greatest=5) + LogExtent(messages=1, least=2)
    LogExtent(messages=2, elements=1, triples=0, unreadable=0, least=2, greatest=5, arrival=0)
    """

    messages: int = 0
    elements: int = 0
    triples: int = 0
    unreadable: int = 0
    """The number of dead letters: messages, or parts of them, that hold no element."""
    least: int | None = None
    greatest: int | None = None
    arrival: int = 0
    """When the last message arrived."""

    def __add__(self, other: LogExtent) -> LogExtent:
        """Return the extent of two parts."""
        return LogExtent(
            self.messages + other.messages,
            self.elements + other.elements,
            self.triples + other.triples,
            self.unreadable + other.unreadable,
            min((t for t in (self.least, other.least) if t is not None), default=None),
            max((t for t in (self.greatest, other.greatest) if t is not None), default=None),
            max(self.arrival, other.arrival),
        )


def message_extent(record: SpoolRecord, items: Iterable[Element | DeadLetter]) -> LogExtent:
    """Return the extent of a message, given what it holds."""
    times, triples, unreadable = [], 0, 0
    for item in items:
        if isinstance(item, DeadLetter):
            unreadable += 1
        else:
            times.append(item.timestamp)
            triples += len(item.triples)
    return LogExtent(
        1,
        len(times),
        triples,
        unreadable,
        min(times, default=None),
        max(times, default=None),
        record.arrival,
    )


@dataclass(slots=True)
class LogIndex:
    """The extents of the files of a log that are no longer written, by the start of the file."""

    removed: LogExtent = field(default_factory=LogExtent)
    """What the retention has removed."""
    files: dict[int, LogExtent] = field(default_factory=dict)

    def first_for(self, time: int) -> int | None:
        """Return the start of the first file that may hold elements at or after a time.

        None is the file that is still written.
        """
        later = (s for s, e in sorted(self.files.items()) if (e.greatest or time - 1) >= time)
        return next(later, None)

    def write(self, folder: Path) -> None:
        """Write the index of a log."""
        files = {str(start): asdict(extent) for start, extent in sorted(self.files.items())}
        text = json.dumps({"removed": asdict(self.removed), "files": files})
        write_file(folder / _INDEX, [text.encode()])


def read_index(folder: Path) -> LogIndex:
    """Read the index of a log; it is empty if the log has a single file."""
    path = folder / _INDEX
    try:
        saved: dict[str, Any] = json.loads(path.read_bytes())
        files = {int(start): LogExtent(**extent) for start, extent in saved["files"].items()}
        return LogIndex(LogExtent(**saved["removed"]), files)
    except FileNotFoundError:
        return LogIndex()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{path} is damaged: {error}", "restore it from a copy") from None
