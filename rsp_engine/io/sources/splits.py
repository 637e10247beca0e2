"""Sources that can be cut: places at which others can start to read, each by itself.

A file of lines is cut between two lines that belong to different elements, a folder of files
between two files. What all places hold, one after the other, is what the source holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.inputs import BLOCK_SIZE, FileInput
from rsp_engine.io.sources.source import ElementSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rsp_engine.io.sources.inputs import Input

__all__ = ["Split", "SplitPart", "Splittable", "is_splittable", "part_of", "split_lines"]

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Split:
    """From where to where to read: bytes of a file, or files of a folder; no end means to its end.

    `line` is the number of the first line, as the whole source counts them.
    """

    start: int
    end: int | None
    line: int = 1


@runtime_checkable
class Splittable(Protocol):
    """A source that may be read in several places at once."""

    @property
    def can_be_cut(self) -> bool:
        """Tell whether this one can: a file can, standard input cannot."""

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield places of about so many bytes, in order, after the end of one of them."""

    def part(self, place: Split) -> SplitPart:
        """Return what is in a place, as a source."""


class SplitPart(ElementSource, Protocol):
    """What is in a place of a source."""

    @property
    def leans_on_others(self) -> bool:
        """Tell, once it is read, whether it has to be read together with the other places."""


def is_splittable(source: Input) -> bool:
    """Tell whether an input is a file of plain bytes."""
    return isinstance(source, FileInput) and source.is_plain()


def part_of(source: Input, place: Split) -> Input:
    """Return the bytes of a place."""
    assert isinstance(source, FileInput), "only files are cut"  # noqa: S101
    return _Bytes(source.name, source.path, place)


class _Bytes:
    """Some bytes of a file."""

    def __init__(self, name: str, path: Path, place: Split) -> None:
        self.name = name
        self._path = path
        self._place = place

    def chunks(self) -> Iterator[bytes]:
        start, end = self._place.start, self._place.end
        try:
            with self._path.open("rb") as stream:
                stream.seek(start)
                left = None if end is None else end - start
                while data := stream.read(BLOCK_SIZE if left is None else min(BLOCK_SIZE, left)):
                    left = None if left is None else left - len(data)
                    yield data
        except OSError as error:
            # Others read the other places: what is missing here would be missed by nobody.
            message = f"{self.name}: it cannot be read: {error.strerror}"
            raise SourceError(message, "every executor must be able to read the file") from None


def split_lines(
    source: Input, size: int, since: Split | None, parts: Callable[[bytes, bytes], bool]
) -> Iterator[Split]:
    """Cut a file between two lines that `parts` tells apart, so many bytes on or a little later."""
    assert isinstance(source, FileInput), "only files are cut"  # noqa: S101
    begin = Split(0, None) if since is None else since
    start, line = begin.start, begin.line
    with source.path.open("rb") as stream:
        if since is not None:
            if since.end is None:
                return
            stream.seek(start)
            line += stream.read(since.end - start).count(b"\n")
            start = since.end
        while True:
            stream.seek(start)
            data = stream.read(size)
            if len(data) < size:
                break
            rest = stream.readline()
            data += rest
            before = data[data.rfind(b"\n", 0, len(data) - 1) + 1 :]
            more = [data]
            while after := stream.readline():
                if not after.startswith(_MARK) and parts(before, after):
                    break
                more.append(after)
                before = after
            else:
                break
            whole = b"".join(more)
            yield Split(start, start + len(whole), line)
            line += whole.count(b"\n")
            start += len(whole)
    if data:
        yield Split(start, None, line)
