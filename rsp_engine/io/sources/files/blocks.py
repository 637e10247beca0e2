"""Blocks of whole lines, each with the number of its first line.

A `Gap` reports a line longer than `LONGEST`, or the point where the input breaks off; the lines
around it are kept. A line ends with LF; the last one need not.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from rsp_engine.io.sources.inputs import InputBroken
from rsp_engine.model.streams import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.inputs import Input

__all__ = ["LONGEST", "Gap", "TextBlock", "lines", "text_blocks"]

LONGEST = 64 << 20
"""The longest line, in bytes."""

_SHOWN = 1_000  # bytes of a line that is too long, for its dead letter
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole lines, and the number of the first."""

    data: bytes
    line: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that could not be read; `is_end` if nothing can be read after them."""

    letter: DeadLetter
    is_end: bool


def text_blocks(source: Input, line: int = 1) -> Iterator[TextBlock | Gap]:
    """Read an input in blocks of whole lines; `line` is the number of the first line."""
    start = _LineStart()
    try:
        for chunk in _without_mark(source.chunks()):
            first = chunk.find(b"\n") + 1
            if not first:
                start.add(chunk)
                continue
            rest = chunk
            if start.size + first > LONGEST:
                start.add(chunk[:first])
                yield _too_long(source.name, line, start)
                start, rest = _LineStart(), chunk[first:]
                line += 1
            cut = rest.rfind(b"\n") + 1
            if cut:
                data = start.joined(rest[:cut])
                yield TextBlock(data, line)
                start = _LineStart()
                line += data.count(b"\n")
            start.add(rest[cut:])
    except InputBroken as broken:
        yield Gap(DeadLetter(source.name, line, start.joined(), str(broken)), is_end=True)
        return
    if start.size > LONGEST:
        yield _too_long(source.name, line, start)
    elif start.size:
        yield TextBlock(start.joined(), line)


def lines(block: TextBlock) -> Iterator[tuple[int, bytes]]:
    r"""Return the lines of a block, with their numbers and line ends.

    >>> list(lines(TextBlock(b"a\nb", 7)))
    [(7, b'a\n'), (8, b'b')]
    """
    return enumerate(BytesIO(block.data), block.line)


class _LineStart:
    """The start of an incomplete line; of a line that is too long, only the first bytes."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []

    def add(self, data: bytes) -> None:
        self.size += len(data)
        if self.size <= LONGEST:
            self._parts.append(data)
        else:
            self._parts = [b"".join(self._parts)[:_SHOWN] or data[:_SHOWN]]

    def joined(self, end: bytes = b"") -> bytes:
        return b"".join((*self._parts, end))


def _too_long(name: str, line: int, start: _LineStart) -> Gap:
    shown = start.joined()[:_SHOWN]
    reason = f"the line is longer than {LONGEST} bytes; only its start is kept"
    return Gap(DeadLetter(name, line, shown, reason), is_end=False)


def _without_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Remove the byte order mark that some editors write before UTF-8."""
    start = b""
    for chunk in chunks:
        start += chunk
        if not _BYTE_ORDER_MARK.startswith(start[:3]) or len(start) >= 3:
            break
    if start:
        yield start.removeprefix(_BYTE_ORDER_MARK)
    yield from chunks
