"""The folder of pane files: what no manifest is of goes, and nothing else."""

from __future__ import annotations

from rsp_engine.drivers.panes.pane_store import PaneStore


def test_files_in_use_and_those_of_others_stay(tmp_path):
    store = PaneStore(tmp_path)
    for name in ("used.panes", "failed.panes", "notes.txt"):
        (store.folder / name).write_bytes(b"x")
    (store.folder / "folder").mkdir()
    store.sweep({"used.panes"})
    assert {path.name for path in store.folder.iterdir()} == {"used.panes", "notes.txt", "folder"}
    store.sweep(set())
    assert {path.name for path in store.folder.iterdir()} == {"notes.txt", "folder"}
