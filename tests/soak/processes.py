"""What a tree of processes and a folder take up."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["disk_bytes", "resident_bytes"]

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process and of all that it started; 0 once it is gone."""
    own = _of(process)
    return own + sum(resident_bytes(child) for child in _children(process))


def _of(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _children(process: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:
            continue
    return found


def disk_bytes(folder: Path) -> int:
    """Return how much the files of a folder hold; they may come and go meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total
