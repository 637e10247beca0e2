"""Files that are complete or absent, even after a power failure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["sync_folder", "write_file"]


def write_file(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file atomically, and sync it to disk."""
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as stream:
        stream.writelines(parts)
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
