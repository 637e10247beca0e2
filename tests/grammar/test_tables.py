"""The parser's tables are built once, and no state of the cache does harm."""

from __future__ import annotations

import importlib

import pytest

from rsp_engine.grammar.parser import tables

module = importlib.import_module("rsp_engine.grammar.parser")


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


CANARY = b"cposix\nsystem\n(S'touch canary'\ntR."
"""A pickle that runs a command."""


def record_loads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list to which every file that is unpickled from now on is appended."""
    loaded: list[object] = []
    load = module.lark.Lark.load

    def recording_load(file: object) -> object:
        loaded.append(file)
        return load(file)

    monkeypatch.setattr(module.lark.Lark, "load", staticmethod(recording_load))
    return loaded


@pytest.mark.parametrize("mode", [0o1777, 0o720])
def test_tables_are_not_read_from_a_folder_that_others_can_write(folder, monkeypatch, mode):
    assert is_good()
    loaded = record_loads(monkeypatch)
    folder.chmod(mode)
    [path] = folder.iterdir()
    path.write_bytes(CANARY)
    monkeypatch.chdir(folder.parent)
    assert is_good()
    assert loaded == []
    assert not (folder.parent / "canary").exists()
    assert path.read_bytes() == CANARY, "nothing is written there either"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_tables_that_others_can_write_are_made_again(folder, monkeypatch, mode):
    assert is_good()
    loaded = record_loads(monkeypatch)
    [path] = folder.iterdir()
    path.write_bytes(CANARY)
    path.chmod(mode)
    assert is_good()
    assert loaded == []
    assert path.stat().st_mode & 0o777 == 0o600
    assert is_good()
    assert len(loaded) == 1


@pytest.mark.parametrize("whose", ["folder", "file"])
def test_tables_of_another_user_are_not_read(folder, monkeypatch, whose):
    assert is_good()
    loaded = record_loads(monkeypatch)
    [path] = folder.iterdir()
    me = module.os.geteuid()
    if me == 0:
        module.os.chown(folder if whose == "folder" else path, 12345, 12345)
    else:
        monkeypatch.setattr(module.os, "geteuid", lambda: me + 1)
    assert is_good()
    assert loaded == []


def test_a_link_to_tables_of_another_user_is_not_followed(folder, monkeypatch, tmp_path):
    assert is_good()
    loaded = record_loads(monkeypatch)
    [path] = folder.iterdir()
    theirs = tmp_path / "theirs"
    theirs.write_bytes(CANARY)
    theirs.chmod(0o666)
    path.unlink()
    path.symlink_to(theirs)
    assert is_good()
    assert loaded == []


def test_where_there_are_no_modes_tables_are_made_in_memory(folder, monkeypatch):
    monkeypatch.delattr(module.os, "geteuid")
    assert is_good()
    assert not folder.exists()
