"""Checkpoints: those that do not fit are refused, failures are reported, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rsp_engine.drivers.checkpoint.logged_state import LoggedState
from rsp_engine.drivers.checkpoint.store import Checkpoint
from rsp_engine.errors import DriverError, StateError
from rsp_engine.io.sinks import open_sink
from tests.data import PROJECT
from tests.drivers.cut import texts
from tests.drivers.spark.recovering import made, write_stream

if TYPE_CHECKING:
    from pathlib import Path

OF = {"queries": ["a"], "max_delay": 5}


def log(folder: Path) -> Path:
    [path] = (folder / "commits").iterdir()
    return path


def test_the_last_state_is_found_again_with_what_was_noted_since(tmp_path):
    checkpoint = Checkpoint(tmp_path, OF)
    assert checkpoint.last() == LoggedState()
    for batch in range(12):
        checkpoint.note({"of": batch})
        checkpoint.write_state(batch, {"batch": batch, "all": list(range(batch))})
    checkpoint.note({"of": 12})
    checkpoint.close()
    again = Checkpoint(tmp_path, OF)
    assert again.last() == (11, {"batch": 11, "all": list(range(11))}, ({"of": 12},))
    assert len(list((tmp_path / "commits").iterdir())) == 1


@pytest.mark.parametrize("other", [{"queries": ["b"], "max_delay": 5}, {"queries": ["a"]}])
def test_a_checkpoint_of_another_run_is_refused(tmp_path, other):
    Checkpoint(tmp_path, OF)
    with pytest.raises(StateError, match="another run"):
        Checkpoint(tmp_path, other)


def test_a_checkpoint_is_used_by_one_run_at_a_time(tmp_path):
    first = Checkpoint(tmp_path, OF)
    with pytest.raises(DriverError, match="still active"):
        Checkpoint(tmp_path, OF)
    first.close()
    Checkpoint(tmp_path, OF)


def test_whoever_is_refused_does_not_keep_others_out(tmp_path):
    Checkpoint(tmp_path, OF)
    with pytest.raises(StateError) as told:
        Checkpoint(tmp_path, {"queries": ["b"]})
    assert "another run" in told.value.message
    Checkpoint(tmp_path, OF)


def test_a_checkpoint_of_another_version_is_refused(tmp_path):
    Checkpoint(tmp_path, OF)
    path = tmp_path / "run.json"
    path.write_text(path.read_text().replace('"version": 7', '"version": 3'))
    with pytest.raises(StateError, match="of version 3, and this engine goes on from version 7"):
        Checkpoint(tmp_path, OF)


def test_a_folder_that_does_not_tell_its_run_any_more_is_refused(tmp_path):
    checkpoint = Checkpoint(tmp_path, OF)
    checkpoint.write_state(0, {"batch": 0})
    checkpoint.close()
    (tmp_path / "run.json").unlink()
    with pytest.raises(StateError, match="is gone"):
        Checkpoint(tmp_path, OF)


def test_a_run_that_was_killed_before_it_began_can_begin(tmp_path):
    Checkpoint(tmp_path, OF).close()
    (tmp_path / "run.json").unlink()
    assert Checkpoint(tmp_path, OF).last() == LoggedState()


@pytest.mark.parametrize("text", ["", "[]", "7", '{"queries"'])
def test_a_folder_that_does_not_tell_whose_it_is_is_refused(tmp_path, text):
    Checkpoint(tmp_path, OF)
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(StateError, match="damaged"):
        Checkpoint(tmp_path, OF)


def test_files_of_others_are_left_alone(tmp_path):
    checkpoint = Checkpoint(tmp_path, OF)
    for name in ("note.log", "1 (copy).log"):
        (tmp_path / "commits" / name).write_text("")
    for batch in range(4):
        checkpoint.write_state(batch, {"batch": batch})
    assert checkpoint.last().batch == 3
    assert len(list((tmp_path / "commits").iterdir())) == 3


def test_a_state_that_was_half_written_is_not_one(tmp_path):
    checkpoint = Checkpoint(tmp_path, OF)
    checkpoint.write_state(0, {"batch": 0})
    (tmp_path / "commits" / "1.new").write_text("half")
    assert checkpoint.last() == (0, {"batch": 0}, ())


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DriverError, match="cannot be written"):
        Checkpoint(tmp_path / "file" / "checkpoint", OF)


def test_a_full_disk_is_told_and_the_state_before_is_kept(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path, OF)
    checkpoint.write_state(0, {"batch": 0})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DriverError, match="No space left"):
        checkpoint.write_state(1, {"batch": 1})
    monkeypatch.undo()
    assert checkpoint.last() == (0, {"batch": 0}, ())
    checkpoint.write_state(1, {"batch": 1})
    assert checkpoint.last() == (1, {"batch": 1}, ())


def test_a_run_without_java_says_what_to_install(tmp_path):
    (tmp_path / "q.rspql").write_text("SELECT * FROM NAMED WINDOW <w:> ON <s:> [RANGE 1s] {}")
    (tmp_path / "s.nq").touch()
    command = ["run", "q.rspql", "--stream=s:=s.nq", "--output=answers", "--runner=spark"]
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-m", "rsp_engine.cli", *command],
        cwd=tmp_path,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "Spark needs Java 17 or later, but none is installed" in done.stderr
    assert "--runner local" in done.stderr
    assert not (tmp_path / "answers").exists()


@pytest.mark.usefixtures("spark")
def test_a_run_goes_on_after_it_was_stopped(tmp_path):
    """Stopped after the current micro-batch, as by Ctrl-C, and resumed by another engine."""
    write_stream(tmp_path / "stream.nq")
    expected = "".join(texts(made(tmp_path, None)))
    lengths: list[int] = []
    for _ in range(3):
        engine = made(tmp_path, tmp_path / "checkpoint")
        sink = open_sink("jsonl", str(tmp_path / "answers.jsonl"), "SELECT", keep=True)
        for answer in engine.run([sink]):
            sink.write(answer)
            if len(lengths) < 2:
                engine.stop()
        sink.close()
        lengths.append(len((tmp_path / "answers.jsonl").read_bytes()))
    assert 0 < lengths[0] < lengths[1] < lengths[2]
    assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8") == expected
