"""The data folder: all that outlives the server.

lock                locked by the server that uses the folder
streams/NAME/       a declared stream: its log, if it has one
queries/NAME.json   a registered query
answers/JOB/        the log of the answers of a query that is evaluated
groups/GROUP/       a group: its plan, checkpoint, dead letters and messages
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

from rsp_engine.drivers.checkpoint.store import lock_folder
from rsp_engine.errors import BindingError, DriverError, StateError
from rsp_engine.io.atomic_file import sync_folder, write_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["DataFolder"]

_PARTS = ("streams", "queries", "answers", "groups")


class DataFolder:
    """The data folder of one server, from its start to its end."""

    def __init__(self, folder: Path) -> None:
        """Lock the folder; raise if another server uses it, or it cannot be written."""
        self.folder = folder.absolute()
        try:
            for part in _PARTS:
                (self.folder / part).mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self.folder)
        except DriverError:
            raise BindingError(
                f"{folder} is the data folder of a server that is still active",
                "stop it, or name another folder: --data FOLDER",
            ) from None
        except OSError as error:
            reason = error.strerror or str(error)
            hint = "name a folder that can be written to: --data FOLDER"
            raise BindingError(f"{folder} cannot be written: {reason}", hint) from None

    def stream(self, name: str) -> Path:
        """Return the folder of a stream."""
        return self.folder / "streams" / name

    def streams(self) -> list[Path]:
        """Return the folders of declared streams."""
        folders = (self.folder / "streams").iterdir()
        return sorted(folder for folder in folders if (folder / "stream.json").exists())

    def answers(self, job: str) -> Path:
        """Return the folder of the answers of a job."""
        return self.folder / "answers" / job

    def group(self, group: str) -> Path:
        """Return the folder of a group."""
        return self.folder / "groups" / group

    def unused(self, part: str, used: set[str]) -> Iterator[Path]:
        """Yield the folders of a part that are not in use."""
        for folder in (self.folder / part).iterdir():
            if folder.name not in used:
                yield folder

    def queries(self) -> Iterator[dict[str, Any]]:
        """Yield the registered queries, in the order of their registration."""
        read = [_read(path) for path in (self.folder / "queries").glob("*.json")]
        yield from sorted(read, key=lambda query: (query["created"], query["name"]))

    def write_query(self, name: str, query: dict[str, Any]) -> None:
        """Write a query to disk."""
        write_file(self.folder / "queries" / f"{name}.json", [json.dumps(query, indent=1).encode()])

    def remove_query(self, name: str) -> None:
        """Remove a query."""
        (self.folder / "queries" / f"{name}.json").unlink(missing_ok=True)
        sync_folder(self.folder / "queries")

    @staticmethod
    def remove(folder: Path) -> None:
        """Remove a folder."""
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Release the folder for another server."""
        os.close(self._lock)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
        if not isinstance(data, dict) or not {"name", "created"} <= data.keys():
            raise ValueError("it is no query")
    except (OSError, ValueError) as error:
        hint = "restore it, or remove it: the query is then forgotten"
        raise StateError(f"{path} cannot be read: {error}", hint) from None
    return data
