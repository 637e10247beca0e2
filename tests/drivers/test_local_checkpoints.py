"""The local driver with a checkpoint: a run that breaks off resumes, with the same bytes."""

from __future__ import annotations

import time
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rsp_engine.drivers.checkpoint.store import Checkpoint
from rsp_engine.errors import DriverError, SinkError, StateError
from rsp_engine.io.sinks import DeadLetterFile, open_sink
from tests.drivers.cut import texts
from tests.drivers.spark.recovering import EX, QUERY, Restless, made, write_stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.engine import Engine
    from rsp_engine.replica.endpoints.endpoint import FetchResult
    from rsp_engine.replica.pattern import Key


def kept(folder: Path) -> Engine:
    """Return the engine of the recovery tests of Spark, with a checkpoint but without Spark."""
    from rsp_engine.engine import Engine

    engine = Engine(
        policy="AT-VOI",
        budget=4,
        n=3,
        max_delay=2000,
        split_bytes=2000,
        checkpoint=folder / "checkpoint",
    )
    engine.service(f"{EX}BKG", Restless, modified="http://purl.org/dc/terms/modified")
    engine.register(QUERY)
    engine.bind(f"{EX}s", str(folder / "stream.nq"))
    return engine


def run(folder: Path, at_most: int) -> int:
    """Run until `at_most` answers are written, then break off as a kill does."""
    path = str(folder / "answers.jsonl")
    with closing(open_sink("jsonl", path, "SELECT", keep=True)) as sink:
        answers = kept(folder).run([sink])
        written = 0
        for answer in answers:
            sink.write(answer)
            written += 1
            if written == at_most:
                break
    return written


def test_a_run_that_breaks_off_again_and_again_gives_every_answer_once(tmp_path, monkeypatch):
    """A commit follows every split; some answers are written after the last commit."""
    monkeypatch.setattr("rsp_engine.drivers.local._COMMIT_S", 0)
    write_stream(tmp_path / "stream.nq")
    expected = texts(made(tmp_path, None))
    pieces = 0
    while run(tmp_path, 13) == 13:
        pieces += 1
    assert pieces >= 4
    assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8") == "".join(expected)
    assert run(tmp_path, 13) == 0, "nothing is left to do"


def broken_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run until 13 answers are written, some of them after the last commit; return their file."""
    monkeypatch.setattr("rsp_engine.drivers.local._COMMIT_S", 0)
    write_stream(folder / "stream.nq")
    assert run(folder, 13) == 13
    return folder / "answers.jsonl"


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_file_of_answers_that_is_gone_is_not_filled_with_nothing(tmp_path, monkeypatch, damage):
    path = broken_off(tmp_path, monkeypatch)
    damage(path)
    with pytest.raises(SinkError, match="has 0 bytes, but had"):
        run(tmp_path, 13)
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("format", "output", "told"),
    [
        ("csv", "answers.jsonl", "as jsonl to a file, and would now be as csv to a file"),
        ("jsonl", None, "as jsonl to a file, and would now be as jsonl to standard output"),
        ("sparql-json", "folder/", "as jsonl to a file, and .* sparql-json to a folder"),
    ],
)
def test_answers_are_written_on_as_they_were(tmp_path, monkeypatch, format, output, told):  # noqa: A002 - the users' word
    before = broken_off(tmp_path, monkeypatch).read_bytes()
    path = None if output is None else f"{tmp_path}/{output}"
    with (
        closing(open_sink(format, path, "SELECT", keep=True)) as sink,
        pytest.raises(StateError, match=told),
    ):
        next(kept(tmp_path).run([sink]))
    assert (tmp_path / "answers.jsonl").read_bytes() == before


def test_dead_letters_that_were_not_written_before_are_refused(tmp_path, monkeypatch):
    path = broken_off(tmp_path, monkeypatch)
    with (
        closing(open_sink("jsonl", str(path), "SELECT", keep=True)) as sink,
        closing(DeadLetterFile(str(tmp_path / "dead.jsonl"), keep=True)) as letters,
        pytest.raises(StateError, match="wrote other outputs than this one: 1, not 2"),
    ):
        next(kept(tmp_path).run([sink, letters]))


@pytest.mark.parametrize("commits", [0, 1e9])
def test_a_replay_that_breaks_off_asks_nothing_twice_either(tmp_path, monkeypatch, commits):
    """Commits are as frequent as possible, or only at the end: then much is run again and again."""
    monkeypatch.setattr("rsp_engine.drivers.local._COMMIT_S", commits)
    write_stream(tmp_path / "stream.nq")
    asked: list[object] = []
    told = Restless._told

    def noting(self: Restless, keys: Iterable[Key], now: int) -> FetchResult:
        keys = list(keys)
        asked.append((self._variable, now, keys))
        return told(self, keys, now)

    monkeypatch.setattr(Restless, "_told", noting)
    for answers in (13, 3, 2, 7, 1, 13):
        assert run(tmp_path, answers) == answers
    assert len(asked) > 26
    assert not [question for n, question in enumerate(asked) if question in asked[:n]]


def test_a_checkpoint_that_cannot_be_written_is_told_and_tried_again(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("rsp_engine.drivers.local._COMMIT_S", 0)
    write_stream(tmp_path / "stream.nq")
    expected = texts(made(tmp_path, None))
    written, calls = Checkpoint.write_state, count()

    def fails(self: Checkpoint, *arguments: object) -> None:
        if 2 <= next(calls) < 5:
            raise DriverError("the checkpoint cannot be written: No space left on device")
        written(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Checkpoint, "write_state", fails)
    run(tmp_path, 1_000)
    assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8") == "".join(expected)
    said = [record.getMessage() for record in caplog.records if record.name == "rsp"]
    assert len(said) == 1
    assert "No space left on device; the run continues" in said[0]


def test_a_checkpoint_of_spark_is_not_taken_up(tmp_path):
    write_stream(tmp_path / "stream.nq")
    run(tmp_path, 3)
    with pytest.raises(StateError, match=r"its runner differs\n  hint: --runner local resumes it"):
        next(made(tmp_path, tmp_path / "checkpoint").run())


def test_commits_come_by_time_also_within_a_long_batch(tmp_path, monkeypatch):
    """The file is one split, read in one micro-batch, and services are slow."""
    monkeypatch.setattr("rsp_engine.drivers.local._COMMIT_S", 0.05)
    write_stream(tmp_path / "stream.nq")
    expected = texts(made(tmp_path, None))
    told, written = Restless._told, Checkpoint.write_state
    commits: list[int] = []

    def slow(self: Restless, keys: Iterable[Key], now: int) -> FetchResult:
        time.sleep(0.01)
        return told(self, keys, now)

    def counted(self: Checkpoint, batch: int, *arguments: object) -> None:
        commits.append(batch)
        written(self, batch, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Restless, "_told", slow)
    monkeypatch.setattr(Checkpoint, "write_state", counted)
    engine = kept(tmp_path)
    engine._split_bytes = 4 << 20
    assert texts(engine) == expected
    assert len(commits) > 8
