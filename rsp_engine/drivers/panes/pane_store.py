"""The folder of the pane files of a run: files that nothing needs any more are removed.

A file is needed as long as a manifest of it is in use: by a split that waits to be merged, by an
open window, or by a window that is being evaluated. The last commit needs no others, so files are
removed after a commit. That also removes the files of failed and repeated attempts, which no
manifest is of.
"""

from __future__ import annotations

import os
import sys
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from weakref import WeakSet

from rsp_engine.drivers.panes.stored_pane import SUFFIX
from rsp_engine.errors import DriverError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.drivers.panes.stored_pane import StoredPane

__all__ = ["PaneStore"]


class PaneStore:
    """The folder of pane files: within a checkpoint, or else a temporary one."""

    def __init__(self, checkpoint: Path | None) -> None:
        self.is_durable = checkpoint is not None
        """Whether its files must survive a crash."""
        self._checkpoint = checkpoint
        self._temporary: TemporaryDirectory[str] | None = None
        self._manifests: dict[str, WeakSet[StoredPane]] = {}

    @cached_property
    def folder(self) -> Path:
        """The folder, which is made when it is first needed."""
        if self._checkpoint is None:
            self._temporary = TemporaryDirectory(prefix="rsp-panes-", ignore_cleanup_errors=True)
            return Path(self._temporary.name)
        folder = self._checkpoint / "panes"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _refused(folder, error) from None
        return folder

    def keep(self, panes: Iterable[StoredPane]) -> None:
        """Keep the files of some manifests, as long as these are in use."""
        for pane in panes:
            self._manifests.setdefault(pane.file, WeakSet()).add(pane)

    def adopt(self, panes: Iterable[StoredPane]) -> None:
        """Keep the files of a restored state; raise `StateError` if one is gone or cut off."""
        kept = [pane for pane in panes if any(table.size for table in pane.tables)]
        for pane in kept:
            path, end = self.folder / pane.file, max(t.start + t.size for t in pane.tables)
            try:
                size = path.stat().st_size
            except OSError as error:
                raise _lost(path, error.strerror or str(error)) from None
            if size < end:
                raise _lost(path, f"it has {size} bytes, not {end}")
        self.keep(kept)

    def sync(self) -> None:
        """Make sure that files which tasks have written survive a crash, before a commit."""
        if not self.is_durable or "folder" not in vars(self) or sys.platform == "win32":
            return
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sweep(self) -> None:
        """Remove all files that no manifest in use is of. No task may be writing."""
        self._manifests = {file: kept for file, kept in self._manifests.items() if len(kept)}
        if "folder" not in vars(self):
            return
        try:
            for path in self.folder.glob(f"*{SUFFIX}"):  # what others put there stays
                if path.name not in self._manifests:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise _refused(self.folder, error) from None

    def close(self) -> None:
        """Remove a temporary folder. Idempotent."""
        if self._temporary is not None:
            self._temporary.cleanup()


def _refused(folder: Path, error: OSError) -> DriverError:
    return DriverError(
        f"pane files cannot be kept in {folder}: {error.strerror or error}",
        "name a folder for the checkpoint that can be written to, with room on its disk",
    )


def _lost(path: Path, why: str) -> StateError:
    return StateError(
        f"the checkpoint needs the pane file {path}, which cannot be read: {why}",
        "restore it, or start with an empty folder",
    )
