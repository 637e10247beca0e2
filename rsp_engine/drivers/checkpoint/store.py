"""Checkpoints: what is needed to go on after a crash, written per batch.

    run.json         which queries and sources the folder belongs to
    lock             held by the process that uses the folder, for as long as it lives
    commits/N.log    what is known after each batch, and what was noted in the batch at hand

A batch that was not finished is run again from the state before it: with the places that were
noted, if it is to be the same, and with the answers of services that were noted, so that its output
is the same, byte for byte. This log is all that counts. Spark keeps one of its own, for as long as
a run lasts, and nothing is read from it after that.
"""

from __future__ import annotations

import json
import os
import sys
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine.drivers.checkpoint.record_log import write_file
from rsp_engine.drivers.checkpoint.state_log import LoggedState, StateLog
from rsp_engine.errors import DriverError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.state import StateData

__all__ = [
    "Checkpoint",
]

_VERSION = 4


class Checkpoint:
    """A folder that belongs to one run, from its start to its end, however often it breaks off."""

    def __init__(self, folder: str | Path, identity: dict[str, Any]) -> None:
        self.folder = Path(folder).absolute()  # Spark may have been started in another one
        self._identity = {"version": _VERSION, **json.loads(json.dumps(identity))}
        self._log = StateLog(self.folder / "commits")
        with _failing(self.folder):
            (self.folder / "commits").mkdir(parents=True, exist_ok=True)
            self._unlock = weakref.finalize(self, os.close, _locked(self.folder))
            try:
                self._check_identity()
            except BaseException:
                self.close()  # whoever is told why holds on to this for a while
                raise

    def close(self) -> None:
        """Let others use the folder; a second time, nothing happens."""
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
                "let the engine that began it end the run, or start with an empty folder",
            )
        for name in (*self._identity, *saved):
            if saved.get(name) != self._identity.get(name):
                raise StateError(
                    f"{self.folder} is the checkpoint of another run: its {name} is another",
                    "name another folder, or run what it was made for",
                )

    def _begin(self, path: Path) -> None:
        """Begin a run: first its log, so that one that says whose it is has one."""
        if self._log.exists and self._log.read() != LoggedState():
            raise StateError(
                f"{path} is gone, and nothing else tells to which run the folder belongs",
                "restore it, or start with an empty folder",
            )
        self._log.begin()
        write_file(path, [json.dumps(self._identity, indent=1).encode()])

    def last(self) -> LoggedState:
        """Return the last commit, if there was one, and what was noted since."""
        return self._log.read()

    def note(self, note: object) -> None:
        """Write down what has to be the same if the batch at hand is run again."""
        with _failing(self.folder):
            self._log.note(note)

    def write_state(self, batch: int, state: StateData, note: object = None) -> None:
        """Write what a batch has changed, and what is to be noted for the next one."""
        with _failing(self.folder):
            self._log.commit(batch, state, note)


def _read(path: Path) -> dict[str, Any]:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(saved, dict):
            raise TypeError("it tells nothing")
    except (ValueError, TypeError):
        raise StateError(f"{path} is damaged", "start with an empty folder") from None
    return saved


def _locked(folder: Path) -> int:
    """Lock a folder, and return what holds the lock until it is closed, or the process is gone."""
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o666)
    if sys.platform == "win32":
        return lock  # there is nothing like it
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if not isinstance(error, BlockingIOError):
            raise
        raise DriverError(
            f"{folder} is the checkpoint of a run that is still going on",
            "wait for its end, stop it, or name another folder",
        ) from None
    return lock


@contextmanager
def _failing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise DriverError(
            f"the checkpoint cannot be written to {folder}: {reason}",
            "name a folder that can be written to, with room on its disk",
        ) from None
