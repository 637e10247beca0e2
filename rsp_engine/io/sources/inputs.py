"""Inputs: the bytes of a file, of standard input, or of a URL.

Bytes are read in chunks, as they arrive. Gzip is decompressed on the way; it is recognised by its
first two bytes, or by the file extension `.gz`.
"""

from __future__ import annotations

import os
import sys
import zlib
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import unquote, urlsplit

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.spec import STANDARD_INPUT, is_url
from rsp_engine.monitor.redaction import without_secrets
from rsp_engine.monitor.run_monitor import Extent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader

__all__ = [
    "BLOCK_SIZE",
    "FileInput",
    "Input",
    "InputBroken",
    "chunks_of",
    "extent_of_input",
    "local_path",
    "open_input",
    "unzipped",
]

BLOCK_SIZE = 1 << 18
"""The largest chunk, in bytes."""

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib: 15 is the largest window, plus 16 for a gzip header and checksum
_SCHEMES = ("file", "http", "https")


class InputBroken(Exception):  # noqa: N818 - it describes the input, and sources always catch it
    """The input ends early: what was read so far is valid, and the rest cannot be read."""


class Input(Protocol):
    """The bytes of a source."""

    @property
    def name(self) -> str:
        """Return the name of the input, for messages."""

    def chunks(self) -> Iterator[bytes]:
        """Read from the start, decompressed; raise `InputBroken` where the input breaks off."""


def open_input(place: str) -> Input:
    """Open a path, `-` or a URL; raise `SourceError` if it cannot be read."""
    if place == STANDARD_INPUT:
        return StandardInput()
    path = local_path(place)
    if path is not None:
        return FileInput(place, path)
    # Importing the HTTP client is slow: do it only for a URL.
    from rsp_engine.io.sources.files.web import WebInput

    return WebInput(place)


def extent_of_input(source: Input) -> Extent | None:
    """Return how much of an input was read; `None` if it is not a file."""
    return source.extent() if isinstance(source, FileInput) else None


def local_path(place: str) -> Path | None:
    """Return the path of a local place; `None` for one on the web.

    >>> local_path("file:///srv/a%20b.nq").as_posix(), local_path("http://example.org/a.nq")
    ('/srv/a b.nq', None)
    """
    if not is_url(place):
        return Path(place)
    try:
        parts = urlsplit(place)
    except ValueError as error:
        raise SourceError(
            f"{without_secrets(place)}: it is not a URL: {error}", "check the address"
        ) from None
    if parts.scheme not in _SCHEMES:
        known = ", ".join(f"{scheme}:" for scheme in _SCHEMES)
        raise SourceError(
            f"{without_secrets(place)}: streams are not read from {parts.scheme}: addresses",
            f"it can be a path, - for the standard input, or start with one of: {known}",
        )
    if parts.scheme != "file":
        return None
    if parts.netloc not in ("", "localhost"):
        hint = f"write file://{parts.path} for a file of this computer"
        raise SourceError(
            f"{without_secrets(place)}: the file is on another computer, {parts.netloc}", hint
        )
    return Path(unquote(parts.path))


class FileInput:
    """A file; each iteration reads it from the start."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self._done = 0
        try:
            _check_readable(path)
        except FileNotFoundError:
            raise SourceError(
                f"{name}: there is no such file or folder", "check the path"
            ) from None
        except IsADirectoryError:
            hint = "a folder is a stream of the format turtle-files: one graph per file"
            raise SourceError(f"{name}: it is a folder, not a file", hint) from None
        except PermissionError:
            raise SourceError(f"{name}: it cannot be read", "check its permissions") from None
        except (OSError, ValueError) as error:
            raise SourceError(f"{name}: it cannot be read: {_reason(error)}") from None

    def chunks(self) -> Iterator[bytes]:
        """Read the file."""
        self._done = 0
        try:
            with self.path.open("rb") as stream:
                chunks = self._counted(chunks_of(stream.read1))
                yield from unzipped(chunks, self.path.suffix == ".gz")
        except OSError as error:
            raise InputBroken(f"the file cannot be read further: {_reason(error)}") from None

    def extent(self) -> Extent | None:
        """Return how many bytes were read, before decompression; `None` for a pipe."""
        try:
            return Extent(self._done, self.path.stat().st_size) if self.path.is_file() else None
        except OSError:
            return None

    def _counted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._done += len(chunk)
            yield chunk

    def is_plain(self) -> bool:
        """Return whether reading can start at any byte: it is neither a pipe nor gzip."""
        if self.path.suffix == ".gz" or not self.path.is_file():
            return False
        try:
            with self.path.open("rb") as stream:
                return stream.read(len(_GZIP)) != _GZIP
        except OSError:
            return False


class StandardInput:
    """Standard input, which can be read only once."""

    name = STANDARD_INPUT

    def __init__(self) -> None:
        if sys.stdin is None or sys.stdin.closed:
            raise SourceError("the standard input is closed", "send a stream to it, or name a file")
        self._stream = cast("BufferedReader", sys.stdin.buffer)
        self._is_read = False

    def chunks(self) -> Iterator[bytes]:
        """Read bytes as they arrive."""
        if self._is_read:
            raise SourceError("the standard input can be read only once", "save it to a file first")
        self._is_read = True
        try:
            yield from unzipped(chunks_of(self._stream.read1))
        except OSError as error:
            reason = f"the standard input cannot be read further: {_reason(error)}"
            raise InputBroken(reason) from None


def chunks_of(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Call a read function, which takes a maximum size, until it returns no bytes."""
    return iter(lambda: read(BLOCK_SIZE), b"")


def unzipped(chunks: Iterator[bytes], is_gzip: bool = False) -> Iterator[bytes]:
    """Decompress chunks if they are gzip: `is_gzip` is set, or they start with its magic bytes.

    >>> import gzip
    >>> b"".join(unzipped(iter([gzip.compress(b"a"), gzip.compress(b"b")])))
    b'ab'
    """
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start) >= len(_GZIP):
            break
    if not start:
        return iter(())
    whole = chain((start,), chunks)
    return _gunzip(whole) if is_gzip or start.startswith(_GZIP) else whole


def _gunzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress gzip members one after the other, at most `BLOCK_SIZE` bytes at a time."""
    member = zlib.decompressobj(_GZIP_WINDOW)
    for chunk in chunks:
        rest = chunk
        while rest:
            if member.eof:
                rest = rest.lstrip(b"\0")  # some writers pad the last block with zeros
                if not rest:
                    break
                member = zlib.decompressobj(_GZIP_WINDOW)
            try:
                data = member.decompress(rest, BLOCK_SIZE)
            except zlib.error:
                raise InputBroken("the gzip data are damaged here") from None
            rest = member.unconsumed_tail or member.unused_data
            if data:
                yield data
    if not member.eof:
        yield from filter(None, (member.flush(),))
        raise InputBroken("the gzip data end too early: the file was cut off")


def _check_readable(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError
    if path.exists() and not path.is_file():  # opening and closing a pipe would break it
        if not os.access(path, os.R_OK):
            raise PermissionError
        return
    with path.open("rb"):
        pass


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
