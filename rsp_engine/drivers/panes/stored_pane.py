"""Manifests of pane contents that are in files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.drivers.splits.segments import Segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.drivers.splits.split_reducer import ReducedSplit

__all__ = ["SUFFIX", "StoredPane", "TablePlace", "manifests"]

SUFFIX = ".panes"
"""The end of the names of pane files."""


class TablePlace(NamedTuple):
    """Where a table is in its file; an empty one has no bytes."""

    start: int
    size: int
    checksum: int
    rows: int


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class StoredPane:
    """The manifest of a content that is in a file: the place of the table of each bucket.

    The file is kept as long as this object is in use: so each is equal to itself only.
    """

    file: str
    tables: tuple[TablePlace, ...]

    @property
    def rows(self) -> int:
        """The number of solutions, or about that of triples."""
        return sum(table.rows for table in self.tables)

    def state(self) -> tuple[Any, ...]:
        """Return the manifest as plain data."""
        return (self.file, *map(list, self.tables))

    @classmethod
    def read(cls, state: Sequence[Any]) -> StoredPane:
        """Return a manifest from plain data."""
        file, *tables = state
        return cls(file, tuple(TablePlace(*table) for table in tables))


def manifests(reduced: ReducedSplit) -> Iterator[StoredPane]:
    """Yield the manifests of the contents of a split that are in files."""
    for item in reduced.items:
        if isinstance(item, Segment):
            yield from (each.content for each in item.stored)
