"""Destinations of answers: standard output, a file, or a folder with a file per window."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol
from urllib.parse import quote

from rsp_engine.errors import SinkError

if TYPE_CHECKING:
    from rsp_engine.model.answers import Answer

__all__ = [
    "Destination",
    "File",
    "Folder",
    "StandardOutput",
    "destination_of",
    "encoded",
    "is_sink_url",
    "query_word",
]

_LONGEST_NAME = 150  # file systems allow 255 bytes; the rest is for the digest, close and suffix


class Destination(Protocol):
    """A place that stores serialized answers, one after the other."""

    kind: ClassVar[str]
    """The kind of destination, as messages name it."""

    def put(self, text: str | bytes, answer: Answer) -> None:
        """Write the text of an answer, and flush it."""

    def close(self) -> None:
        """Close the destination; closing it again has no effect."""

    def position(self) -> Any:  # noqa: ANN401 - plain data
        """Sync to disk, and return the current position as plain data."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Discard what was written after a position; `None` is the start."""


def destination_of(output: str | None, suffix: str | None, *, keep: bool = False) -> Destination:
    """Open an output; only a format with a file suffix can write to a folder.

    A file is truncated, unless `keep` is set: `go_back` then truncates it.
    """
    if output is None or output == "-":
        return StandardOutput()
    if not output:
        raise SinkError("the output has an empty name", "name a file, or - for standard output")
    if not _names_folder(output):
        return File(output, keep=keep)
    if suffix is None:
        example = Path(output) / "answers"
        raise SinkError(f"{output} is a folder, not a file", f"name a file in it, like {example}")
    return Folder(output, suffix)


def is_sink_url(output: str) -> bool:
    """Return whether an output is the URL of a sink, and no path.

    >>> is_sink_url("mqtt://host/topic"), is_sink_url("answers.jsonl"), is_sink_url("-")
    (True, False, False)
    """
    return "://" in output


def _names_folder(output: str) -> bool:
    try:
        return output.endswith("/") or Path(output).is_dir()
    except OSError:
        return False  # opening the file will report the error


class File(Destination):
    """A file, truncated when it is opened, unless `keep` is set."""

    kind = "a file"

    def __init__(self, path: str, *, keep: bool = False) -> None:
        self._path = path
        self._stream = _open(path, keep=keep)

    def put(self, text: str | bytes, answer: Answer) -> None:
        """Append the text to the file."""
        self.put_line(text)

    def put_line(self, text: str | bytes) -> None:
        """Append text that belongs to no answer."""
        try:
            self._stream.write(encoded(text))
            self._stream.flush()
        except OSError as error:
            with suppress(OSError):
                self._stream.close()  # discard the buffer: a later flush would fail again
            raise _failure(self._path, error) from None

    def position(self) -> int:
        """Sync the file to disk, and return its length in bytes."""
        try:
            self._stream.flush()
            with suppress(OSError):  # a pipe or a device cannot be synced
                os.fsync(self._stream.fileno())
            return self._stream.tell()
        except OSError as error:
            raise _failure(self._path, error) from None

    def go_back(self, position: int | None) -> None:
        """Truncate the file to a length in bytes; refuse a file that is shorter than that."""
        try:
            size = os.fstat(self._stream.fileno()).st_size
            if position is not None and size < position:
                raise SinkError(
                    f"{self._path} has {size} bytes, but had {position} when the run stopped",
                    "restore it, or start with an empty folder for the checkpoint",
                )
            self._stream.seek(position or 0)
            self._stream.truncate()
        except OSError as error:
            raise _failure(self._path, error) from None

    def close(self) -> None:
        """Close the file."""
        try:
            self._stream.close()
        except OSError as error:
            raise _failure(self._path, error) from None


class Folder(Destination):
    """A folder with a file for each window: `{query}-{close}{suffix}`, or `{close}{suffix}`.

    A missing folder is created if its parent exists. Other files in the folder are left alone.
    """

    kind = "a folder"

    def __init__(self, path: str, suffix: str) -> None:
        self._folder = Path(path)
        self._suffix = suffix
        self._last = ""
        self._same_close = 0
        try:
            self._folder.mkdir(exist_ok=True)
        except (OSError, ValueError) as error:
            raise _failure(path, error) from None
        if not os.access(path, os.W_OK | os.X_OK):
            raise _failure(path, PermissionError())

    def put(self, text: str | bytes, answer: Answer) -> None:
        """Write the text to the file of the window."""
        file = File(str(self._folder / self._name(answer)))
        file.put(text, answer)
        file.close()

    def _name(self, answer: Answer) -> str:
        """Return a file name; further windows with the same close are numbered from 2."""
        query = query_word(answer.query)
        name = f"{query}-{answer.window.close}" if query else str(answer.window.close)
        self._same_close = self._same_close + 1 if name == self._last else 1
        self._last = name
        number = f"-{self._same_close}" if self._same_close > 1 else ""
        return f"{name}{number}{self._suffix}"

    def position(self) -> list[Any]:
        """Return the name of the last file, and how many windows shared it."""
        return [self._last, self._same_close]

    def go_back(self, position: list[Any] | None) -> None:
        """Continue after a file; the files after it are overwritten."""
        self._last, self._same_close = position or ("", 0)

    def close(self) -> None:
        """Do nothing: each file is closed after it is written."""


class StandardOutput(Destination):
    """Standard output, as bytes; it is never closed."""

    kind = "standard output"

    def __init__(self) -> None:
        stream: BinaryIO | None = getattr(sys.stdout, "buffer", None)
        if stream is None:
            raise SinkError("standard output does not accept bytes here", "name a file")
        sys.stdout.flush()
        self._stream = stream

    def put(self, text: str | bytes, answer: Answer) -> None:
        """Write the text; raise `BrokenPipeError` if the reader has exited."""
        try:
            self._stream.write(encoded(text))
            self._stream.flush()
        except OSError as error:
            _redirect_to_null(self._stream)
            if isinstance(error, BrokenPipeError):
                raise
            raise _failure("standard output", error) from None

    def position(self) -> None:
        """Return `None`: printed text cannot be removed."""

    def go_back(self, position: None) -> None:
        """Do nothing: answers after the last checkpoint are printed again."""

    def close(self) -> None:
        """Do nothing: every answer was flushed."""


def encoded(text: str | bytes) -> bytes:
    """Return the bytes of a text."""
    if isinstance(text, bytes):
        return text
    # A lone surrogate can only come from a file name in JSON, where `\udcXX` is a valid escape.
    return text.encode("utf-8", "backslashreplace")


def _redirect_to_null(stream: BinaryIO) -> None:
    """Let Python flush the rest of a broken stream at exit without an error."""
    with suppress(OSError, ValueError):
        number = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def _open(path: str, *, keep: bool) -> BinaryIO:
    try:
        is_kept = keep and Path(path).is_file()
        return Path(path).open("r+b" if is_kept else "wb")
    except (OSError, ValueError) as error:
        raise _failure(path, error) from None


def _failure(path: str, error: OSError | ValueError) -> SinkError:
    reason = getattr(error, "strerror", None) or str(error) or "it is not allowed"
    return SinkError(f"{path} cannot be written: {reason}", _hint(path, error))


def _hint(path: str, error: OSError | ValueError) -> str | None:
    match error:
        case FileNotFoundError():
            return f"make the folder {Path(path).parent} first"
        case NotADirectoryError() | FileExistsError():
            return "a part of the path is a file, not a folder"
        case IsADirectoryError():
            return f"name a file in it, like {Path(path) / 'answers'}"
        case PermissionError():
            return "choose a path that you may write to"
        case _:
            return None


def query_word(query: str) -> str:
    """Return the name of a query as a part of file names and ids; no two queries share one.

    >>> query_word("http://example.org/alerts")
    'http%3A%2F%2Fexample.org%2Falerts'
    """
    name = quote(query, safe="", errors="surrogatepass")
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        name = f"{name[:_LONGEST_NAME]}-{digest}"
    return name
