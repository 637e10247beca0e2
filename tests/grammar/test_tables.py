"""The parser's tables are made once, and no state of the cache can hurt."""

from __future__ import annotations

import importlib

import pytest

from rsp_engine.grammar.parser.tables import tables

module = importlib.import_module("rsp_engine.grammar.parser.tables")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "cache" / "deep"
    monkeypatch.setenv("RSP_CACHE_DIR", str(folder))
    tables.cache_clear()
    yield folder
    tables.cache_clear()


def is_good() -> bool:
    tables.cache_clear()
    return bool(tables().parse("ASK {}").children)


def forbid_making(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_make", lambda _: pytest.fail("the tables were made again"))


def test_the_second_process_does_not_make_them_again(folder, monkeypatch):
    assert is_good()
    assert [path.suffix for path in folder.iterdir()] == [".tables"]
    forbid_making(monkeypatch)
    assert is_good()


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\x80\x04K\x01."])
def test_a_damaged_file_is_replaced(folder, damage, monkeypatch):
    assert is_good()
    [path] = folder.iterdir()
    path.write_bytes(damage)
    assert is_good()
    forbid_making(monkeypatch)
    assert is_good()


def test_another_version_has_another_file(folder, monkeypatch):
    assert is_good()
    monkeypatch.setattr(module.lark, "__version__", "0.0")
    assert is_good()
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_cannot_be_written_does_no_harm(folder):
    folder.parent.write_text("a file where the folder should be")
    assert is_good()


def test_no_home_does_no_harm(folder, monkeypatch):
    monkeypatch.delenv("RSP_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def no_home() -> None:
        raise RuntimeError

    monkeypatch.setattr(module.Path, "home", no_home)
    assert is_good()
    assert not folder.exists()
