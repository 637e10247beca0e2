"""Where text goes: standard output, a file, or a folder with a file for each window."""

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

__all__ = ["Destination", "File", "Folder", "StandardOutput", "destination_of"]

_LONGEST_NAME = 150


class Destination(Protocol):
    """What takes the text of answers, one after the other."""

    kind: ClassVar[str]
    """What it is, in words."""

    def put(self, text: str | bytes, answer: Answer) -> None:
        """Write the text of an answer, and flush it."""

    def close(self) -> None:
        """Let go; a second time, nothing happens."""

    def position(self) -> Any:  # noqa: ANN401 - plain data
        """Bring everything to disk, and return how far it is, as plain data."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Forget what was written after a position; none is the start."""


def destination_of(output: str | None, suffix: str | None, *, keep: bool = False) -> Destination:
    """Open what an output names; a folder is one only for a format whose files have a suffix.

    A file is emptied, unless it is to be kept until somebody says how far it goes back.
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


def _names_folder(output: str) -> bool:
    try:
        return output.endswith("/") or Path(output).is_dir()
    except OSError:
        return False  # opening it will tell what is wrong


class File(Destination):
    """A file, emptied when it is opened, unless it is kept."""

    kind = "a file"

    def __init__(self, path: str, *, keep: bool = False) -> None:
        self._path = path
        self._stream = _open(path, keep=keep)

    def put(self, text: str | bytes, answer: Answer) -> None:
        """Write the text at the end of the file."""
        self.put_line(text)

    def put_line(self, text: str | bytes) -> None:
        """Write text that belongs to no answer."""
        try:
            self._stream.write(_encoded(text))
            self._stream.flush()
        except OSError as error:
            with suppress(OSError):
                self._stream.close()  # it would try again what has just failed
            raise _failure(self._path, error) from None

    def position(self) -> int:
        """Return how long the file is, once it is on disk."""
        try:
            self._stream.flush()
            with suppress(OSError):  # what is no file on a disk cannot be brought there
                os.fsync(self._stream.fileno())
            return self._stream.tell()
        except OSError as error:
            raise _failure(self._path, error) from None

    def go_back(self, position: int | None) -> None:
        """Cut the file off after so many bytes; one that is shorter is not what was written."""
        try:
            size = os.fstat(self._stream.fileno()).st_size
            if position is not None and size < position:
                raise SinkError(
                    f"{self._path} has {size} bytes, and had {position} when the run broke off",
                    "put it back as it was, or start with an empty folder for the checkpoint",
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

    A folder that is missing is made, in a folder that exists. What else is in it stays.
    """

    kind = "a folder"

    def __init__(self, path: str, suffix: str) -> None:
        self._folder = Path(path)
        self._suffix = suffix
        self._last = ""
        self._repeated = 0
        try:
            self._folder.mkdir(exist_ok=True)
        except (OSError, ValueError) as error:
            raise _failure(path, error) from None
        if not os.access(path, os.W_OK | os.X_OK):
            raise _failure(path, PermissionError())

    def put(self, text: str | bytes, answer: Answer) -> None:
        """Write the text into the file of the window."""
        file = File(str(self._folder / self._name(answer)))
        file.put(text, answer)
        file.close()

    def _name(self, answer: Answer) -> str:
        """Return the name of a file; windows that close at one instant are numbered from 2."""
        name = _safe(answer.query) + str(answer.window.close)
        self._repeated = self._repeated + 1 if name == self._last else 1
        self._last = name
        number = f"-{self._repeated}" if self._repeated > 1 else ""
        return f"{name}{number}{self._suffix}"

    def position(self) -> list[Any]:
        """Return the name of the last file, and how often it was needed."""
        return [self._last, self._repeated]

    def go_back(self, position: list[Any] | None) -> None:
        """Go on after a file; those after it are written again."""
        self._last, self._repeated = position or ("", 0)

    def close(self) -> None:
        """Do nothing: every file is closed."""


class StandardOutput(Destination):
    """Standard output, in bytes; it stays open."""

    kind = "standard output"

    def __init__(self) -> None:
        stream: BinaryIO | None = getattr(sys.stdout, "buffer", None)
        if stream is None:
            raise SinkError("standard output takes no bytes here", "name a file")
        sys.stdout.flush()
        self._stream = stream

    def put(self, text: str | bytes, answer: Answer) -> None:
        """Write the text; a reader that has gone away is a BrokenPipeError."""
        try:
            self._stream.write(_encoded(text))
            self._stream.flush()
        except OSError as error:
            _point_at_nothing(self._stream)
            if isinstance(error, BrokenPipeError):
                raise
            raise _failure("standard output", error) from None

    def position(self) -> None:
        """Return nothing: what was printed cannot be taken back."""

    def go_back(self, position: None) -> None:
        """Do nothing: what was printed after the last commit is printed again."""

    def close(self) -> None:
        """Do nothing: everything is flushed."""


def _encoded(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    # Half a character can only come from the name of a file, in JSON, which reads it back.
    return text.encode("utf-8", "backslashreplace")


def _point_at_nothing(stream: BinaryIO) -> None:
    """Let Python flush the rest of a broken stream, at its end, without a complaint."""
    with suppress(OSError, ValueError):
        number = stream.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, number)
        os.close(nothing)


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


def _safe(query: str) -> str:
    """Return the start of the name of a file; two queries never have the same one.

    >>> _safe("http://example.org/alerts"), _safe("")
    ('http%3A%2F%2Fexample.org%2Falerts-', '')
    """
    name = quote(query, safe="", errors="surrogatepass")
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        name = f"{name[:_LONGEST_NAME]}-{digest}"
    return f"{name}-" if name else ""
