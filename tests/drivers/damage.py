"""Damaged checkpoints, and the outcome of runs that resume from them."""

from __future__ import annotations

import shutil
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import RspError
from rsp_engine.io.sinks import open_sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rsp_engine.engine import Engine

__all__ = ["DAMAGES", "broken_off", "files", "keep", "outcome", "put_back"]


def _flipped(at: float) -> Callable[[Path], None]:
    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        if data:
            data[int(at * (len(data) - 1))] ^= 1
        path.write_bytes(data)

    return flip


def _without(at: float) -> Callable[[Path], None]:
    def cut_out(path: Path) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        if lines:
            del lines[int(at * (len(lines) - 1))]
        path.write_bytes(b"".join(lines))

    return cut_out


def _to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "halved": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "filled with nothing": lambda path: path.write_bytes(path.read_bytes() + bytes(500)),
    "repeated": lambda path: path.write_bytes(2 * path.read_bytes()),
    "a folder": _to_folder,
    **{f"flipped at {at}": _flipped(at) for at in (0, 0.3, 0.7, 0.95, 1)},
    **{f"without a line at {at}": _without(at) for at in (0, 0.3, 0.7, 0.95, 1)},
}


def keep(folder: Path) -> None:
    """Save the files of a run that broke off, to resume from them several times."""
    shutil.copytree(folder / "checkpoint", folder / "kept" / "checkpoint")
    shutil.copy(folder / "answers.jsonl", folder / "kept")


def put_back(folder: Path) -> None:
    """Restore the files that `keep` saved."""
    shutil.rmtree(folder / "checkpoint")
    shutil.copytree(folder / "kept" / "checkpoint", folder / "checkpoint")
    shutil.copy(folder / "kept" / "answers.jsonl", folder)


def files(folder: Path) -> list[Path]:
    """Return the files of a checkpoint, in order."""
    return sorted(path for path in (folder / "checkpoint").rglob("*") if path.is_file())


def broken_off(engine: Engine, folder: Path, at_most: int) -> None:
    """Run until `at_most` answers are written, then break off as a kill does."""
    for _ in _written(engine, folder, at_most):
        pass


def outcome(engine: Callable[[], Engine], folder: Path, seconds: float) -> str:
    """Return what a run that resumes writes until its end, or why it was refused.

    It is an error if neither comes in time.
    """
    found: list[Any] = []

    def go_on() -> None:
        try:
            for _ in _written(engine(), folder, None):
                pass
            found.append((folder / "answers.jsonl").read_text(encoding="utf-8"))
        except RspError as error:
            found.append(f"refused: {error.message} ({error.hint})")
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, f"nothing came in {seconds} s"
    [result] = found
    assert isinstance(result, str), repr(result)
    return result


def _written(engine: Engine, folder: Path, at_most: int | None) -> Iterator[None]:
    path = str(folder / "answers.jsonl")
    with closing(open_sink("jsonl", path, "SELECT", keep=True)) as sink:
        answers = engine.run([sink])
        try:
            for count, answer in enumerate(answers, start=1):
                sink.write(answer)
                yield
                if count == at_most:
                    return
        finally:
            close = getattr(answers, "close", None)
            if close is not None:
                close()
