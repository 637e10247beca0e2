"""Result folders are reproducible, resumable, and never overwritten."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rsp_engine.errors import SourceError, StateError
from rsp_engine.experiments.process_pool import in_turn, over_processes
from rsp_engine.experiments.results import folder_name, read_result_folder, run_suite
from rsp_engine.experiments.suite import Data, ParameterGrid, Suite

GRID = ParameterGrid("small grid", ("WST", "AT-TSM", "WSJ-RND"), (20,), (1, 7), (5,), (10,))
SUITE = Suite("small", "Small", "budget", Data(datasets=2, windows=6), (GRID,))


class StopError(Exception):
    """The run was interrupted."""


def stops_after(count, seen):
    """Return a task runner that is interrupted after some tasks."""

    def spread(work, tasks):
        for task, text in in_turn(work, tasks[:count]):
            seen.append(task.part)
            yield task, text
        if len(tasks) > count:
            raise StopError

    return spread


def content(path):
    return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_the_same_suite_gives_the_same_bytes_however_it_is_spread(tmp_path):
    one = content(run_suite(SUITE, tmp_path / "a", in_turn))
    assert one == content(run_suite(SUITE, tmp_path / "b", over_processes(2)))
    other = replace(SUITE, data=replace(SUITE.data, seed=1))
    assert one != content(run_suite(other, tmp_path / "c", in_turn))


def test_a_folder_tells_what_was_run_and_holds_a_row_for_each_window(tmp_path):
    path = run_suite(SUITE, tmp_path, in_turn)
    assert path == tmp_path / "small"
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["data"]["seed"] == 0
    assert set(manifest["versions"]) == {"rsp_engine", "numpy", "python"}
    assert manifest["grids"][0]["budget"] == [1, 7]
    assert len(manifest["parts"]) == 6
    rows = (path / "rows" / "small-grid.ch20.2.AT-TSM.csv").read_text().splitlines()
    assert rows[0].startswith(
        "ch,dataset,policy,budget,k,n,queries,window,close,query,fetched,ndcg"
    )
    assert len(rows) == 1 + 2 * 6
    assert rows[1].startswith("20,2,AT-TSM,1,5,10,0,0,100000,0,1,")


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    first, second = list[str](), list[str]()
    with pytest.raises(StopError):
        run_suite(SUITE, tmp_path / "a", stops_after(2, first))
    progress = []
    path = run_suite(SUITE, tmp_path / "a", stops_after(9, second), lambda *p: progress.append(p))
    assert len(first) == 2
    assert len(second) == 4
    assert not set(first) & set(second)
    assert progress == [(done, 6) for done in range(2, 7)]
    assert content(path) == content(run_suite(SUITE, tmp_path / "b", in_turn))


def test_finished_results_are_left_as_they_are(tmp_path):
    path = run_suite(SUITE, tmp_path, in_turn)
    before = {p: p.stat().st_mtime_ns for p in path.rglob("*")}
    run_suite(SUITE, tmp_path, stops_after(0, []))
    assert {p: p.stat().st_mtime_ns for p in path.rglob("*")} == before


@pytest.mark.parametrize(
    ("other", "key"),
    [
        (replace(SUITE, data=replace(SUITE.data, seed=1)), r"data.seed was 0, not 1"),
        (replace(SUITE, data=replace(SUITE.data, windows=5)), r"data.windows was 6, not 5"),
        (replace(SUITE, grids=(replace(GRID, budget=(1,)),)), "grids was"),
    ],
)
def test_results_of_another_run_are_refused_by_the_key_and_not_touched(tmp_path, other, key):
    path = run_suite(SUITE, tmp_path, in_turn)
    before = content(path)
    with pytest.raises(StateError, match=key):
        run_suite(other, tmp_path, in_turn)
    assert content(path) == before


def test_results_of_other_versions_are_not_mixed(tmp_path, monkeypatch):
    with pytest.raises(StopError):
        run_suite(SUITE, tmp_path, stops_after(2, []))
    monkeypatch.setattr("rsp_engine.experiments.results.__version__", "99")
    with pytest.raises(StateError, match=r"versions\.rsp_engine was .*, not '99'"):
        run_suite(SUITE, tmp_path, in_turn)


def test_a_folder_that_is_something_else_is_refused_and_not_touched(tmp_path):
    path = tmp_path / "small"
    path.mkdir()
    (path / "thesis.txt").write_text("mine")
    with pytest.raises(StateError, match=r"manifest\.json is missing"):
        run_suite(SUITE, tmp_path, in_turn)
    assert [p.name for p in path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("text", "message"), [("{", r"manifest\.json is damaged"), ("{}", "format: must be 2")]
)
def test_a_damaged_manifest_is_refused(tmp_path, text, message):
    path = run_suite(SUITE, tmp_path, in_turn)
    (path / "manifest.json").write_text(text)
    for act in (lambda: run_suite(SUITE, tmp_path, in_turn), lambda: read_result_folder(path)):
        with pytest.raises(StateError, match=message):
            act()


def test_a_part_that_is_cut_is_refused_by_its_name(tmp_path):
    with pytest.raises(StopError):
        run_suite(SUITE, tmp_path, stops_after(2, []))
    part = sorted((tmp_path / "small" / "rows").iterdir())[0]
    part.write_text("\n".join(part.read_text().splitlines()[:-3]))
    with pytest.raises(StateError, match=rf"{part.name} is half-written"):
        run_suite(SUITE, tmp_path, in_turn)
    part.unlink()
    assert len(read_result_folder(run_suite(SUITE, tmp_path, in_turn)).manifest["parts"]) == 6


def test_what_a_crash_left_half_written_does_not_count(tmp_path):
    with pytest.raises(StopError):
        run_suite(SUITE, tmp_path / "a", stops_after(2, []))
    (tmp_path / "a" / "small" / "rows" / ".small-grid.ch20.2.WST.csv.tmp").write_text("ch,data")
    path = run_suite(SUITE, tmp_path / "a", in_turn)
    assert content(path) == content(run_suite(SUITE, tmp_path / "b", in_turn))


def test_a_report_needs_finished_results(tmp_path):
    with pytest.raises(StopError):
        run_suite(SUITE, tmp_path, stops_after(2, []))
    with pytest.raises(StateError, match="half-written: parts: 2 are there") as found:
        read_result_folder(tmp_path / "small")
    assert found.value.hint == "`rsp experiment run small` resumes it"
    with pytest.raises(StateError, match="is not there"):
        read_result_folder(tmp_path / "none")


@pytest.mark.parametrize("harm", ["change", "remove"])
def test_finished_results_that_were_changed_are_refused(tmp_path, harm):
    path = run_suite(SUITE, tmp_path, in_turn)
    part = path / "rows" / "small-grid.ch20.1.WST.csv"
    if harm == "change":
        part.write_text(part.read_text().replace(",0,", ",1,", 1))
    else:
        part.unlink()
    with pytest.raises(StateError, match=rf"parts: {part.name}"):
        read_result_folder(path)
    with pytest.raises(StateError, match=rf"parts: {part.name}"):
        run_suite(SUITE, tmp_path, in_turn)


def test_a_data_folder_that_is_missing_is_refused_before_anything_is_made(tmp_path):
    data = replace(SUITE.data, source="recorded", folder=str(tmp_path / "none"))
    with pytest.raises(SourceError, match=r"the data folder .*none is not there"):
        run_suite(replace(SUITE, data=data), tmp_path / "results", in_turn)
    assert not (tmp_path / "results").exists()


def test_folders_are_told_apart():
    recorded = replace(SUITE, data=replace(SUITE.data, source="recorded", folder="x"))
    assert folder_name(SUITE) == "small"
    assert folder_name(replace(recorded, is_quick=True)) == "small-recorded-quick"


def test_there_must_be_somebody_to_work():
    with pytest.raises(ValueError, match="at least 1 worker"):
        over_processes(0)
