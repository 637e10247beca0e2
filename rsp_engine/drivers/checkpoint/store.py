"""The checkpoint folder: all that a run needs to resume after a crash.

    run.json         the identity of the run: its queries and sources
    panes/           what executors have read of open windows, on Spark
    lock             locked by the process that uses the folder, as long as it lives
    commits/N.log    the state after each micro-batch, and the notes of the current one

A micro-batch that was not committed is run again from the state before it: with the responses of
services that were logged, and with the same splits if it must be repeated exactly. So its output is
the same, byte for byte. Spark has a log of its own while a run lasts; nothing is restored from it.
"""

from __future__ import annotations

import json
import os
import sys
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rsp_engine.drivers.checkpoint.logged_state import LoggedState
from rsp_engine.drivers.checkpoint.state_log import StateLog
from rsp_engine.errors import DriverError, StateError
from rsp_engine.io.atomic_file import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.state import StateData

__all__ = ["Checkpoint", "lock_folder", "saved_runner"]

_VERSION = 7
"""The version of the format of checkpoints."""


class Checkpoint:
    """A folder that belongs to one run, from its start to its end, however often it resumes."""

    def __init__(self, folder: str | Path, identity: dict[str, Any]) -> None:
        self.folder = Path(folder).absolute()  # Spark may have been started in another one
        self._identity = {"version": _VERSION, **json.loads(json.dumps(identity))}
        self._log = StateLog(self.folder / "commits")
        with _write_errors(self.folder):
            (self.folder / "commits").mkdir(parents=True, exist_ok=True)
            self._unlock = weakref.finalize(self, os.close, lock_folder(self.folder))
            try:
                self._check_identity()
            except BaseException:
                self.close()  # the traceback of the error keeps this object alive
                raise

    def close(self) -> None:
        """Release the folder for other runs. Idempotent."""
        self._unlock()

    def _check_identity(self) -> None:
        path = self.folder / "run.json"
        if not path.exists():
            self._begin(path)
            return
        saved = _read(path)
        if saved.get("version") != _VERSION:
            raise StateError(
                f"{self.folder} is a checkpoint of version {saved.get('version')}, and this engine "
                f"goes on from version {_VERSION}",
                "finish the run with the engine that started it, or start with an empty folder",
            )
        for name in (*self._identity, *saved):
            if saved.get(name) != self._identity.get(name):
                hint = "name another folder, or run the queries that it belongs to"
                if name == "runner":
                    hint = f"--runner {saved_runner(self.folder)} resumes it"
                raise StateError(
                    f"{self.folder} is the checkpoint of another run: its {name} differs", hint
                )

    def _begin(self, path: Path) -> None:
        """Begin a run: first its log, then its identity, so that a folder with one has a log."""
        if self._log.exists and self._log.read() != LoggedState():
            raise StateError(
                f"{path} is gone, and nothing else tells to which run the folder belongs",
                "restore it, or start with an empty folder",
            )
        self._log.begin()
        write_file(path, [json.dumps(self._identity, indent=1).encode()])

    def last(self) -> LoggedState:
        """Return the last commit, if there is one, and the notes since then."""
        return self._log.read()

    def note(self, note: object) -> None:
        """Log what must be repeated if the current micro-batch is run again."""
        with _write_errors(self.folder):
            self._log.note(note)

    def write_state(self, batch: int, state: StateData, note: object = None) -> None:
        """Commit the state after a micro-batch, with a note for the next one."""
        with _write_errors(self.folder):
            self._log.commit(batch, state, note)


def saved_runner(folder: Path) -> Literal["local", "spark"] | None:
    """Return the runner of the run that a folder belongs to; None if it belongs to none."""
    path = folder / "run.json"
    with _write_errors(folder):
        if not path.exists():
            return None
    return "local" if _read(path).get("runner") == "local" else "spark"


def _read(path: Path) -> dict[str, Any]:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(saved, dict):
            raise TypeError("not a JSON object")
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "restore it, or start with an empty folder"
        raise StateError(f"{path} cannot be read: {reason}", hint) from None
    except (ValueError, TypeError):
        raise StateError(f"{path} is damaged", "start with an empty folder") from None
    return saved


def lock_folder(folder: Path) -> int:
    """Lock a folder; return the file descriptor that holds the lock until it is closed."""
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o666)
    if sys.platform == "win32":
        return lock  # Windows has no flock
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if not isinstance(error, BlockingIOError):
            raise
        raise DriverError(
            f"{folder} is the checkpoint of a run that is still active",
            "wait for it to end, stop it, or name another folder",
        ) from None
    return lock


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError into a DriverError that names the folder."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise DriverError(
            f"the checkpoint cannot be written to {folder}: {reason}",
            "name a folder that can be written to, with room on its disk",
        ) from None
