"""The cache folder of the user: files that the engine can make again.

`RSP_CACHE_DIR` names another folder. What is read from it can be code, so it is used only if it
belongs to the user and no one else can write to it. Where there are no such modes, as on Windows,
there is none.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

__all__ = ["cache_folder", "is_mine"]


def cache_folder() -> Path | None:
    """Return the cache folder, created if needed; `None` if other users can write to it."""
    folder = _chosen_folder()
    if folder is None or not hasattr(os, "geteuid"):
        return None
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if is_mine(folder.stat()) else None
    return None


def _chosen_folder() -> Path | None:
    if chosen := os.environ.get("RSP_CACHE_DIR"):
        return Path(chosen)
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "rsp-engine"
    with contextlib.suppress(RuntimeError):
        return Path.home() / ".cache" / "rsp-engine"
    return None


def is_mine(status: os.stat_result) -> bool:
    """Return whether a file or folder belongs to the user and no one else can write to it."""
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid == os.geteuid() and not status.st_mode & others
