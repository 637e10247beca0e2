"""Pane files that cannot be written or read: one error each, and no file that is not whole."""

from __future__ import annotations

import resource
import signal
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rsp_engine.drivers.panes.pane_file import PaneFiles, PaneReader, PaneWriter
from rsp_engine.drivers.panes.stored_pane import TablePlace
from rsp_engine.errors import DriverError
from rsp_engine.model.terms.lazy_text import WrittenTriples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINE = "<http://example.org/s> <http://example.org/p> <http://example.org/o>"
CONTENT = WrittenTriples("\n".join([LINE] * 10_000))


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """Let the system refuse files of more bytes, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def files(folder: Path) -> PaneFiles:
    return PaneFiles(str(folder), {0: None}, buckets=1, is_durable=True)


@pytest.mark.parametrize("lines", [1, 10_000])
def test_a_full_disk_is_one_error_and_leaves_no_file(tmp_path: Path, lines: int) -> None:
    """It may refuse the file when it is written, or only when what is buffered is."""
    content = WrittenTriples("\n".join([LINE] * lines))
    with (
        full_at(10),
        pytest.raises(DriverError, match=r"pane files cannot be kept in .*: File too large"),
        PaneWriter(files(tmp_path)) as writer,
    ):
        writer.store(0, content)
    assert not list(tmp_path.iterdir())


def test_a_file_whose_task_fails_is_removed(tmp_path: Path) -> None:
    def fail() -> None:
        with PaneWriter(files(tmp_path)) as writer:
            writer.store(0, CONTENT)
            assert list(tmp_path.iterdir())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    with (
        pytest.raises(DriverError, match=r"pane files cannot be kept in .*: No such file"),
        PaneWriter(files(tmp_path / "elsewhere")) as writer,
    ):
        writer.store(0, CONTENT)


def test_a_table_is_read_from_its_place_and_no_other(tmp_path: Path) -> None:
    with PaneWriter(files(tmp_path)) as writer:
        first, second = (writer.store(0, each) for each in (WrittenTriples(LINE), CONTENT))
    [place] = second.tables
    with PaneReader(str(tmp_path)) as reader:
        [found] = reader.read(second.file, place)
        assert list(found) == list(CONTENT)
        assert first.file == second.file
        wrong = place._replace(start=place.start + 1), place._replace(size=place.size + 1)
        for each in (*wrong, TablePlace(0, 5, zlib.crc32(b"other"), 1)):
            with pytest.raises(DriverError, match="it is cut off or damaged"):
                list(reader.read(second.file, each))
