"""Manifests of pane contents that are in files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SUFFIX", "StoredPane", "TablePlace"]

SUFFIX = ".panes"
"""The end of the names of pane files."""


class TablePlace(NamedTuple):
    """Where a table is in its file; an empty one has no bytes."""

    start: int
    size: int
    checksum: int
    rows: int


@dataclass(frozen=True, slots=True)
class StoredPane:
    """The manifest of a content that is in a file: the place of the table of each bucket."""

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
