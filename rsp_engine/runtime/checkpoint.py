"""Checkpoints: what is needed to go on after a crash, written per batch.

    run.json             which queries and sources the folder belongs to
    lock                 held by the process that uses the folder, for as long as it lives
    fetched/N.json       what services answered in batch N, written before its output
    state/N.json         all that is known after batch N, written after its output
    spark/               what Spark keeps: the places of each batch, and which are done

A batch that was not finished is run again from the state before it, and gets the answers of the
services that are written down, so that its output is the same, byte for byte. Files are written
beside their place, brought to disk, and moved: there is no half of one.
"""

from __future__ import annotations

import json
import os
import sys
import weakref
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import DriverError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.operators.state import State

__all__ = ["Checkpoint"]

_VERSION = 2
_KEPT = 2
"""How many states are kept: the last one, and one that Spark may go back to."""


class Checkpoint:
    """A folder that belongs to one run, from its start to its end, however often it breaks off."""

    def __init__(self, folder: str | Path, identity: dict[str, Any]) -> None:
        self.folder = Path(folder).absolute()  # Spark may have been started in another one
        self._identity = {"version": _VERSION, **json.loads(json.dumps(identity))}
        with _failing(self.folder):
            for name in ("state", "fetched", "spark"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
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
            write_file(path, json.dumps(self._identity, indent=1))
            return
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(saved, dict):
                raise TypeError("it tells nothing")
        except (ValueError, TypeError):
            raise StateError(f"{path} is damaged", "start with an empty folder") from None
        for name in (*self._identity, *saved):
            if saved.get(name) != self._identity.get(name):
                raise StateError(
                    f"{self.folder} is the checkpoint of another run: its {name} is another",
                    "name another folder, or run what it was made for",
                )

    def last(self) -> tuple[int, State] | None:
        """Return the number and the state of the last batch that was finished, if any was."""
        found = self._batches("state")
        return (found[-1], _read(self._path("state", found[-1]))) if found else None

    def _batches(self, name: str) -> list[int]:
        """Return the batches of which there is a file, in order; others' files do not count."""
        stems = (path.stem for path in (self.folder / name).glob("*.json"))
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())

    def _path(self, name: str, batch: int) -> Path:
        return self.folder / name / f"{batch}.json"

    def fetched(self, batch: int) -> list[Any]:
        """Return what services answered in a batch before it broke off, if that was written."""
        path = self._path("fetched", batch)
        if not path.exists():
            return []
        calls: list[Any] = _read(path)["calls"]
        return calls

    def write_fetched(self, batch: int, calls: list[Any]) -> None:
        """Write down what services answered in a batch."""
        self._write("fetched", batch, {"calls": calls})

    def write_state(self, batch: int, state: State) -> None:
        """Write all that is known after a batch, and forget what is not needed any more."""
        self._write("state", batch, state)
        for name in ("state", "fetched"):
            for old in self._batches(name):
                if old <= batch - _KEPT:
                    self._path(name, old).unlink(missing_ok=True)

    def _write(self, name: str, batch: int, content: dict[str, Any]) -> None:
        text = json.dumps(content, separators=(",", ":"))
        check = zlib.crc32(text.encode())
        with _failing(self.folder):
            write_file(self._path(name, batch), f"{check:08x}\n{text}")


def write_file(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all, also after the power fails."""
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read(path: Path) -> dict[str, Any]:
    try:
        check, _, text = path.read_text(encoding="utf-8").partition("\n")
        if int(check, 16) != zlib.crc32(text.encode()):
            raise ValueError("its checksum does not fit")
        found: dict[str, Any] = json.loads(text)
    except (OSError, ValueError) as error:
        raise StateError(
            f"{path} is damaged: {error}", "start with an empty folder, or restore this one"
        ) from None
    return found


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
