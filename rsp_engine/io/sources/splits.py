"""Splits: parts of a source that executors read independently.

A file of lines is split between two lines of different elements, a folder between two files. The
splits of a source, read in order, give the same elements as the source itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.inputs import BLOCK_SIZE, FileInput
from rsp_engine.io.sources.source import ElementSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rsp_engine.io.sources.inputs import Input

__all__ = ["Split", "SplitPart", "Splittable", "is_splittable", "part_of", "split_lines"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Split:
    """A range of a source: bytes of a file, or files of a folder.

    An `end` of `None` is the end of the source. `line` is the number of the first line, counted
    from the start of the source.
    """

    start: int
    end: int | None
    line: int = 1
    data: bytes | None = field(default=None, compare=False, repr=False)
    """The bytes of the range, if planning the split has read them."""

    def without_data(self) -> Split:
        """Return the range alone."""
        return Split(self.start, self.end, self.line)


@runtime_checkable
class Splittable(Protocol):
    """A source that may be divided into splits."""

    @property
    def can_be_cut(self) -> bool:
        """Return whether this source can be split: a file can, standard input cannot."""

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of about `size` bytes, in order; `since` is the split to continue after."""

    def part(self, split: Split) -> SplitPart:
        """Return a split as a source of its own."""


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
        if self._split.data is not None:
            yield self._split.data
            return
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

    `is_boundary` gets two consecutive lines, and returns whether a split may end between them.
    """
    assert isinstance(source, FileInput), "only files are split"  # noqa: S101
    begin = Split(0, None) if since is None else since
    start, line = begin.start, begin.line
    with source.path.open("rb") as stream:
        if since is not None:
            if since.end is None:
                return
            stream.seek(start)
            line += _count_lines(since.data or stream.read(since.end - start))
            start = since.end
        while True:
            stream.seek(start)
            data = stream.read(size)
            if len(data) < size:
                break
            rest = stream.readline()
            data += rest
            before = data[data.rfind(b"\n", 0, len(data) - 1) + 1 :]
            pieces = [data]
            while after := stream.readline():
                if not after.startswith(_BYTE_ORDER_MARK) and is_boundary(before, after):
                    break
                pieces.append(after)
                before = after
            else:
                break
            whole = b"".join(pieces) if len(pieces) > 1 else data
            yield Split(start, start + len(whole), line, whole)
            line += _count_lines(whole)
            start += len(whole)
    if data:
        yield Split(start, None, line)


def _count_lines(data: bytes) -> int:
    """Count newlines, which `bytes.count` does several times slower."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")))
