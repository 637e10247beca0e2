"""The folder of pane files: what no manifest is of goes, and nothing else."""

from __future__ import annotations

from rsp_engine.drivers.panes.pane_store import PaneStore
from rsp_engine.drivers.panes.stored_pane import StoredPane, TablePlace


def test_files_in_use_and_those_of_others_stay(tmp_path):
    store = PaneStore(tmp_path)
    for name in ("used.panes", "failed.panes", "notes.txt"):
        (store.folder / name).write_bytes(b"x")
    (store.folder / "folder").mkdir()
    pane = StoredPane("used.panes", (TablePlace(0, 1, 0, 1),))
    store.keep([pane])
    store.sweep()
    assert {path.name for path in store.folder.iterdir()} == {"used.panes", "notes.txt", "folder"}
    del pane
    store.sweep()
    assert {path.name for path in store.folder.iterdir()} == {"notes.txt", "folder"}
