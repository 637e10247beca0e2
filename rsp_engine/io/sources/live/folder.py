"""Watched folders: each file that appears in the folder is a message.

Files are read in the order of their names, which must increase: a file whose name sorts before one
that was already read is skipped with a warning. A file is read once its size is the same in two
consecutive scans; to be safe, write it elsewhere and move it into the folder. Files whose names
start with a dot or end in `.tmp` or `.part` are considered unfinished.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rsp_engine.io.sources.live.receiver import POLL_S, SenderUnreachable
from rsp_engine.io.sources.live.records import Message

if TYPE_CHECKING:
    from pathlib import Path

    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["FolderLink"]

_UNFINISHED = (".tmp", ".part")


class FolderLink:
    """A link that polls a folder for new files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}
        self._taken: set[str] | None = None

    def listen(self, inbox: Inbox) -> None:
        """Deliver files as they appear, until the inbox is closed."""
        while not inbox.is_closed:
            try:
                names = self._finished(inbox)
                for name in names:
                    inbox.put([self._message(name, inbox.largest)])
            except OSError as error:
                raise SenderUnreachable(
                    f"the folder cannot be read: {error.strerror or error}"
                ) from None
            inbox.is_well()
            if not names:
                inbox.pause(POLL_S)

    def _message(self, name: str, largest: int) -> Message:
        """Return a file as a message; only the start of a file that is too large."""
        with (self._folder / name).open("rb") as stream:
            payload = stream.read(largest + 1)
            size = os.fstat(stream.fileno()).st_size if len(payload) > largest else 0
        return Message(payload, id=name, size=size)

    def _finished(self, inbox: Inbox) -> list[str]:
        """Return the names of new files whose sizes no longer change, in order."""
        sizes = {
            entry.name: entry.stat().st_size
            for entry in os.scandir(self._folder)
            if not entry.name.startswith(".")
            and not entry.name.endswith(_UNFINISHED)
            and entry.is_file()
        }
        before, self._sizes = self._sizes, sizes
        passed = {name for name in sizes if name <= inbox.last_id}
        self._taken = passed if self._taken is None else self._taken
        for name in sorted(passed - self._taken):
            self._taken.add(name)
            inbox.report(f"{name} is left out: its name is before {inbox.last_id}, which was taken")
        finished: list[str] = []
        for name in sorted(sizes.keys() - passed):
            if before.get(name) != sizes[name]:
                break  # keep the order: later files wait for this one
            finished.append(name)
        self._taken.update(finished)
        return finished
