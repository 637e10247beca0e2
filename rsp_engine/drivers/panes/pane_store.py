"""The folder of the pane files of a run: files that nothing needs any more are removed.

A file is needed as long as a split that waits to be merged or a pane of an open window has a
manifest of it. The last commit needs no others, so files are removed after a commit. That also
removes the files of failed and repeated attempts, which no manifest is of.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rsp_engine.drivers.panes.stored_pane import SUFFIX
from rsp_engine.errors import DriverError, StateError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rsp_engine.drivers.panes.stored_pane import StoredPane

__all__ = ["PaneStore", "folder_error"]


class PaneStore:
    """The folder of pane files: within a checkpoint, or else a temporary one."""

    def __init__(self, checkpoint: Path | None) -> None:
        self.is_durable = checkpoint is not None
        """Whether its files must survive a crash."""
        self._folder = None if checkpoint is None else checkpoint / "panes"
        self._temporary: TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """The folder, which is made when it is first needed."""
        if self._folder is None:
            self._temporary = TemporaryDirectory(prefix="rsp-panes-", ignore_cleanup_errors=True)
            self._folder = Path(self._temporary.name)
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            raise folder_error(self._folder, error) from None
        return self._folder

    def check(self, panes: Iterable[StoredPane]) -> None:
        """Raise `StateError` if a file of a restored state is gone or cut off."""
        for pane in panes:
            if not any(table.size for table in pane.tables):
                continue
            path, end = self.folder / pane.file, max(t.start + t.size for t in pane.tables)
            try:
                size = path.stat().st_size
            except OSError as error:
                raise _lost(path, error.strerror or str(error)) from None
            if size < end:
                raise _lost(path, f"it has {size} bytes, not {end}")

    def sync(self, needed: Collection[str]) -> None:
        """Make sure that the files that are needed survive a crash, before a commit."""
        if not self.is_durable or not needed or sys.platform == "win32":
            return
        try:
            descriptor = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise folder_error(self.folder, error) from None

    def sweep(self, needed: Collection[str]) -> None:
        """Remove all files but those that are needed. No task may be writing."""
        if self._folder is None:
            return
        try:
            for path in self._folder.glob(f"*{SUFFIX}"):  # what others put there stays
                if path.name not in needed:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise folder_error(self._folder, error) from None

    def close(self) -> None:
        """Remove a temporary folder. Idempotent."""
        if self._temporary is not None:
            self._temporary.cleanup()


def folder_error(folder: Path, error: OSError) -> DriverError:
    """Return the error of a folder in which pane files cannot be kept."""
    return DriverError(
        f"pane files cannot be kept in {folder}: {error.strerror or error}",
        "name a folder for the checkpoint that all executors can write to, with room on its disk",
    )


def _lost(path: Path, why: str) -> StateError:
    return StateError(
        f"the checkpoint needs the pane file {path}, which cannot be read: {why}",
        "restore it, or start with an empty folder",
    )
