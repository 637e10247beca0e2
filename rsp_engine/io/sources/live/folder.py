"""A folder that is watched: each file that appears in it is a message.

Files are taken in the order of their names, which must rise: one whose name is before that of a
file that was taken is left out, and told. A file is taken when its size has stayed the same for a
while; better still, it is written elsewhere and moved here. Names that begin with a dot, or end in
`.tmp` or `.part`, are those of files that somebody is still writing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rsp_engine.io.sources.live.receiver import POLL_S, Away
from rsp_engine.io.sources.live.records import Message

if TYPE_CHECKING:
    from pathlib import Path

    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["FolderLink"]

_UNFINISHED = (".tmp", ".part")


class FolderLink:
    """Watches a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}
        self._taken: set[str] | None = None

    def listen(self, inbox: Inbox) -> None:
        """Take files as they appear, until it is closed."""
        while not inbox.is_closed:
            try:
                found = self._settled(inbox)
                for name in found:
                    inbox.put([self._message(name, inbox.largest)])
            except OSError as error:
                raise Away(f"the folder cannot be read: {error.strerror or error}") from None
            inbox.is_well()
            if not found:
                inbox.pause(POLL_S)

    def _message(self, name: str, largest: int) -> Message:
        """Return a file as a message; of one that is too large, the start."""
        with (self._folder / name).open("rb") as stream:
            payload = stream.read(largest + 1)
            size = os.fstat(stream.fileno()).st_size if len(payload) > largest else 0
        return Message(payload, id=name, size=size)

    def _settled(self, inbox: Inbox) -> list[str]:
        """Return the names of new files that nobody writes any more, in order."""
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
            inbox.tell(f"{name} is left out: its name is before {inbox.last_id}, which was taken")
        found: list[str] = []
        for name in sorted(sizes.keys() - passed):
            if before.get(name) != sizes[name]:
                break  # those after it have to wait for it
            found.append(name)
        self._taken.update(found)
        return found
