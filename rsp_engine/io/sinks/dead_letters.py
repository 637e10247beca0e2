"""Dead letters as JSON lines.

{"source", "position", "reason", "raw"}          input that is UTF-8 text
{"source", "position", "reason", "raw_base64"}   input that is not
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.destinations import File
from rsp_engine.io.sinks.term_text import json_text

if TYPE_CHECKING:
    from rsp_engine.model.streams import DeadLetter

__all__ = ["DeadLetterFile", "dead_letter_json"]


class DeadLetterFile:
    """A file of dead letters, flushed after every letter."""

    def __init__(self, path: str, *, keep: bool = False) -> None:
        """Open the file and truncate it, unless `keep` is set: `go_back` then truncates it."""
        if path in ("", "-"):
            raise SinkError("dead letters go to a file", "name one")
        self._file = File(path, keep=keep)

    def write(self, letter: DeadLetter) -> None:
        """Write a dead letter."""
        self._file.put_line(dead_letter_json(letter))

    def position(self) -> int:
        """Sync the file to disk, and return its length in bytes."""
        return self._file.position()

    def go_back(self, position: int | None) -> None:
        """Truncate the file to a length in bytes; `None` is 0."""
        self._file.go_back(position)

    def close(self) -> None:
        """Close the file; closing it again has no effect."""
        self._file.close()


def dead_letter_json(letter: DeadLetter) -> str:
    r"""Return a dead letter as a line of JSON.

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
