"""Pane files: a task writes the pane tables of its splits into one file, one after the other.

Where each table is, and its checksum, is in a manifest that the task returns. So a file counts only
if its task has succeeded: those of failed or repeated attempts are in no manifest.
"""

from __future__ import annotations

import os
import secrets
import zlib
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from rsp_engine.drivers.panes.pane_store import folder_error
from rsp_engine.drivers.panes.pane_table import (
    bucketed,
    byte_estimate,
    content_rows,
    decode_pane,
    encode_pane,
)
from rsp_engine.drivers.panes.stored_pane import SUFFIX, StoredPane, TablePlace
from rsp_engine.drivers.splits.segments import PaneContent, Segment
from rsp_engine.errors import DriverError
from rsp_engine.operators.sparql.pane_matcher import PaneSolutions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from io import BufferedWriter
    from types import TracebackType

    from rsp_engine.drivers.splits.split_reducer import ReducedSplit
    from rsp_engine.evaluators.step import PutContent

__all__ = ["SMALL_BYTES", "PaneFiles", "PaneReader", "PaneWriter"]

SMALL_BYTES = 1 << 16
"""Of how many bytes on it pays to write the panes of a split to a file."""


class PaneFiles(NamedTuple):
    """Where pane files are, and how the content of queries is stored in them."""

    folder: str
    """An absolute path, which all processes can reach."""
    keys: Mapping[int, tuple[int, ...] | None]
    """By the number of a query: the places of its key in a solution; None without buckets."""
    buckets: int
    is_durable: bool
    """Whether files must survive a crash."""
    small_bytes: int = SMALL_BYTES
    """The panes of a split with fewer bytes are sent to the driver."""


class PaneWriter:
    """A new file, which exists once it is needed."""

    def __init__(self, files: PaneFiles) -> None:
        self._files = files
        self._folder = Path(files.folder)
        # Attempts of a task run at the same time, and a task of an earlier run may still do.
        self._name = f"{secrets.token_hex(12)}{SUFFIX}"
        self._stream: BufferedWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stream = self._stream
        if stream is None:
            return
        is_whole = False
        try:
            if kind is None:
                stream.flush()
                if self._files.is_durable:
                    os.fsync(stream.fileno())
                is_whole = True
        except OSError as failure:
            raise folder_error(self._folder, failure) from None
        finally:
            with suppress(OSError):
                stream.close()
            if not is_whole:
                (self._folder / self._name).unlink(missing_ok=True)

    def store_split(self, reduced: ReducedSplit) -> ReducedSplit:
        """Return a split whose panes are in the file, unless they are small."""
        segments = [item for item in reduced.items if isinstance(item, Segment)]
        contents = [each for segment in segments for each in segment.pane_contents]
        sizes = [byte_estimate(each.content) for each in contents if self._takes(each)]
        if not sizes or sum(sizes) < self._files.small_bytes:
            return reduced
        items = [
            self._stored(item) if isinstance(item, Segment) else item for item in reduced.items
        ]
        return replace(reduced, items=items)

    def _takes(self, each: PaneContent[PutContent]) -> bool:
        """Return whether the content is of a step that can be evaluated in any process."""
        return each.step in self._files.keys

    def _stored(self, segment: Segment) -> Segment:
        """Return a segment whose content is in the file."""
        stored = [
            PaneContent(each.step, each.scan, each.pane, self.store(each.step, each.content))
            for each in segment.pane_contents
            if self._takes(each)
        ]
        sent = [each for each in segment.pane_contents if not self._takes(each)]
        return replace(segment, pane_contents=sent, stored=[*segment.stored, *stored])

    def store(self, step: int, content: PutContent) -> StoredPane:
        """Write the content of a pane of a query."""
        keys = self._files.keys[step]
        if keys is None:
            return StoredPane(self._name, (self._write(content),))
        assert isinstance(content, PaneSolutions), "buckets are of solutions"  # noqa: S101
        parts = bucketed(content, keys, self._files.buckets)
        return StoredPane(self._name, tuple(map(self._write, parts)))

    def _write(self, content: PutContent | None) -> TablePlace:
        if content is None or not content_rows(content):
            return TablePlace(0, 0, 0, 0)
        data = encode_pane(content)
        try:
            if self._stream is None:
                self._stream = (self._folder / self._name).open("xb")
            start = self._stream.tell()
            self._stream.write(data)
        except OSError as error:
            raise folder_error(self._folder, error) from None
        return TablePlace(start, len(data), zlib.crc32(data), content_rows(content))


class PaneReader:
    """Reads tables; a file that several are in is opened once."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._opened: dict[str, BinaryIO] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def read(self, file: str, table: TablePlace) -> Iterator[PutContent]:
        """Yield the content of a table, if it is not empty."""
        if not table.size:
            return
        try:
            if file not in self._opened:
                self._opened[file] = self._closing.enter_context((self._folder / file).open("rb"))
            self._opened[file].seek(table.start)
            data = self._opened[file].read(table.size)
        except OSError as error:
            raise _damage(self._folder / file, error.strerror or str(error)) from None
        if len(data) < table.size or zlib.crc32(data) != table.checksum:
            raise _damage(self._folder / file, "it is cut off or damaged")
        yield decode_pane(data)


def _damage(path: Path, why: str) -> DriverError:
    return DriverError(
        f"the pane file {path} cannot be read: {why}",
        "all executors and the driver must see it under this path",
    )
