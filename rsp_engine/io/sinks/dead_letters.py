"""Dead letters as JSON lines.

{"source", "position", "reason", "raw"}          what was set aside, as text
{"source", "position", "reason", "raw_base64"}   what was set aside, where it is not UTF-8
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.destinations import File
from rsp_engine.io.sinks.json_text import json_text

if TYPE_CHECKING:
    from rsp_engine.model.streams import DeadLetter

__all__ = ["DeadLetterFile", "dead_letter_json"]


class DeadLetterFile:
    """A file of dead letters, emptied when it is opened and flushed after every letter."""

    def __init__(self, path: str, *, keep: bool = False) -> None:
        """Open the file; it is emptied, unless it is kept until `go_back` says what counts."""
        if path in ("", "-"):
            raise SinkError("dead letters go to a file", "name one")
        self._file = File(path, keep=keep)

    def write(self, letter: DeadLetter) -> None:
        """Write a dead letter."""
        self._file.put_line(dead_letter_json(letter))

    def position(self) -> int:
        """Return how long the file is, once it is on disk."""
        return self._file.position()

    def go_back(self, position: int | None) -> None:
        """Cut the file off after so many bytes."""
        self._file.go_back(position)

    def close(self) -> None:
        """Close the file; a second time, nothing happens."""
        self._file.close()


def dead_letter_json(letter: DeadLetter) -> str:
    r"""Return the line of a dead letter.

    >>> from rsp_engine.model.streams import DeadLetter
    >>> dead_letter_json(DeadLetter("in.jsonl", 7, b"{", "it is no JSON"))
    '{"source":"in.jsonl","position":7,"reason":"it is no JSON","raw":"{"}\n'
    """
    fields = {"source": letter.source, "position": letter.position, "reason": letter.reason}
    try:
        raw = {"raw": letter.raw.decode()}
    except UnicodeDecodeError:
        raw = {"raw_base64": base64.b64encode(letter.raw).decode()}
    return json_text(fields | raw) + "\n"
