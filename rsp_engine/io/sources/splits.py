"""Splits: parts of a source that executors read independently.

A file of lines is split between two lines of different elements, a folder between two files. The
splits of a source, read in order, give the same elements as the source itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable

import numpy as np

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.inputs import BLOCK_SIZE, FileInput
from rsp_engine.io.sources.source import ElementSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rsp_engine.io.sources.inputs import Input

__all__ = [
    "LineCount",
    "Lined",
    "Split",
    "SplitPart",
    "Splittable",
    "is_splittable",
    "part_of",
    "split_lines",
]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_BYTES = 1 << 12  # most lines are shorter


@dataclass(frozen=True, slots=True)
class Split:
    """A range of a source: bytes of a file, or files of a folder.

    An `end` of `None` is the end of the source.
    """

    start: int
    end: int | None


@runtime_checkable
class Splittable(Protocol):
    """A source that may be divided into splits."""

    @property
    def can_be_cut(self) -> bool:
        """Return whether this source can be split: a file can, standard input cannot."""

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of about `size` bytes, in order; `since` is the split to continue after."""

    def part(self, split: Split) -> SplitPart:
        """Return a split as a source of its own, in which lines count from 1."""


@runtime_checkable
class Lined(Protocol):
    """A source whose positions are numbers of lines."""

    def lines_before(self, split: Split) -> int:
        """Return how many lines are before a split; only dead letters need it."""


class SplitPart(ElementSource, Protocol):
    """A source that reads one split."""

    @property
    def leans_on_others(self) -> bool:
        """Return, after reading, whether the split depends on others and cannot be read alone."""


def is_splittable(source: Input) -> bool:
    """Return whether an input is an uncompressed file."""
    return isinstance(source, FileInput) and source.is_plain()


def part_of(source: Input, split: Split) -> Input:
    """Return the bytes of a split as an input."""
    assert isinstance(source, FileInput), "only files are split"  # noqa: S101
    return _FileRange(source.name, source.path, split)


class _FileRange:
    """A range of bytes of a file."""

    def __init__(self, name: str, path: Path, split: Split) -> None:
        self.name = name
        self._path = path
        self._split = split

    def chunks(self) -> Iterator[bytes]:
        start, end = self._split.start, self._split.end
        try:
            with self._path.open("rb") as stream:
                stream.seek(start)
                left = None if end is None else end - start
                while data := stream.read(BLOCK_SIZE if left is None else left):
                    left = None if left is None else left - len(data)
                    yield data
        except OSError as error:
            # The run must fail: other executors read the other splits, and would not miss this one.
            message = f"{self.name}: it cannot be read: {error.strerror}"
            raise SourceError(message, "every executor must be able to read the file") from None


def split_lines(
    source: Input, size: int, since: Split | None, is_boundary: Callable[[bytes, bytes], bool]
) -> Iterator[Split]:
    """Split a file at the first boundary between two lines after every `size` bytes.

    `is_boundary` gets two consecutive lines, and returns whether a split may end between them. Only
    the lines around these places are read.
    """
    assert isinstance(source, FileInput), "only files are split"  # noqa: S101
    start = 0 if since is None else since.end
    with source.path.open("rb") as stream:
        while start is not None and start < _size(stream):
            end = _end(stream, start, size, is_boundary)
            yield Split(start, end)
            start = end


def _size(stream: BinaryIO) -> int:
    return os.fstat(stream.fileno()).st_size


def _end(
    stream: BinaryIO, start: int, size: int, is_boundary: Callable[[bytes, bytes], bool]
) -> int | None:
    """Return the first boundary `size` bytes or more after a start; None for the end of the file.

    The line that these bytes end in, or the next one, still belongs to the split.
    """
    end = start + size
    if end > _size(stream):
        return None
    before = _last_line(stream, start, end) + stream.readline()
    end = stream.tell()
    while after := stream.readline():
        if not after.startswith(_BYTE_ORDER_MARK) and is_boundary(before, after):
            return end
        end += len(after)
        before = after
    return None


def _last_line(stream: BinaryIO, start: int, end: int) -> bytes:
    """Return what is after the last newline of a range, and leave the stream at its end."""
    size, data = 0, b""
    while b"\n" not in data and size < end - start:
        size = min(max(_LINE_BYTES, 2 * size), end - start)
        stream.seek(end - size)
        data = stream.read(size)
    stream.seek(end)
    return data.rpartition(b"\n")[2]


class LineCount:
    """The number of lines before a place of a file, counted on from the place before."""

    def __init__(self, source: Input) -> None:
        self._source = source
        self._place = self._lines = 0

    def before(self, place: int) -> int:
        """Return how many lines end before a place."""
        assert isinstance(self._source, FileInput), "only files are split"  # noqa: S101
        if place < self._place:
            self._place = self._lines = 0
        with self._source.path.open("rb") as stream:
            stream.seek(self._place)
            while data := stream.read(min(BLOCK_SIZE, place - self._place)):
                # `bytes.count` is several times slower.
                are_ends = np.frombuffer(data, dtype=np.uint8) == ord("\n")
                self._lines += int(np.count_nonzero(are_ends))
                self._place += len(data)
        return self._lines
