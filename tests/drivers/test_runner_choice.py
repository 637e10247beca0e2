"""`runner="auto"`: local, unless a master, a checkpoint or a large input needs Spark."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from rsp_engine import Engine
from rsp_engine.cli import app
from rsp_engine.drivers import runner_choice
from rsp_engine.errors import DriverError, StateError
from rsp_engine.io.sources import open_source

if TYPE_CHECKING:
    from pathlib import Path

EX = "http://example.org/"
QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :all AS SELECT ?s
FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s] WHERE { WINDOW :w { ?s :p ?o } }
"""
LINE = {"timestamp": 1, "graph": "<http://example.org/a> <http://example.org/p> 1 ."}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with a query, a stream and files that are as large as they say, but sparse."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rsp_engine.drivers.spark.session.java_version", lambda: 21)
    (tmp_path / "q.rspql").write_text(QUERY)
    (tmp_path / "s.jsonl").write_text(json.dumps(LINE) + "\n")
    (tmp_path / "folder").mkdir()
    for name, size in (("100.nq", 100), ("101.trig", 101), ("201.jsonl", 201), ("201.jelly", 201)):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, size * 1_000_000)
    for number in (1, 2):
        (tmp_path / "folder" / f"{number}.ttl").touch()
        os.truncate(tmp_path / "folder" / f"{number}.ttl", 101_000_000)
    return tmp_path


def chosen(*sources: Any, **options: Any) -> runner_choice.RunnerChoice:
    engine = Engine(**options)
    for source in sources:
        engine.bind(f"{EX}s", source)
    return engine.runner_choice


@pytest.mark.parametrize(
    ("sources", "options", "expected"),
    [
        ((), {}, "local"),
        (["s.jsonl"], {}, "local"),
        (["100.nq", "100.nq"], {}, "local"),
        (["100.nq", "101.trig"], {}, "spark"),
        (["201.jsonl"], {}, "spark"),
        (["201.jelly"], {}, "spark"),
        (["folder"], {}, "spark"),
        ([[(1, "<urn:a> <urn:p> 1 .")]], {}, "local"),
        (["watch://."], {}, "local"),
        (["kafka://host/topic"], {}, "local"),
        (["s.jsonl"], {"master": "local[2]"}, "spark"),
        (["201.jsonl"], {"runner": "local"}, "local"),
        (["s.jsonl"], {"runner": "spark"}, "spark"),
        (["s.jsonl"], {"runner": "local", "master": "local[2]"}, "local"),
    ],
)
def test_spark_is_for_masters_and_large_files(sources, options, expected):
    assert chosen(*sources, **options).runner == expected


def test_sources_that_a_program_opens_count_as_well():
    assert chosen(open_source("201.jsonl")).runner == "spark"


def test_a_checkpoint_is_resumed_where_it_began(here):
    state = here / "state"
    assert chosen("s.jsonl", checkpoint=state).runner == "local"
    state.mkdir()
    assert chosen("201.jsonl", checkpoint=state).runner == "spark"
    (state / "run.json").write_text('{"version": 5, "runner": "local"}')
    assert chosen("201.jsonl", checkpoint=state).runner == "local"
    (state / "run.json").write_text('{"version": 5}')
    assert chosen("s.jsonl", checkpoint=state) == (
        "spark",
        "the run of the checkpoint began on Spark",
    )
    (state / "run.json").write_text("{")
    with pytest.raises(StateError, match="damaged"):
        chosen("s.jsonl", checkpoint=state)


def test_a_checkpoint_whose_identity_is_a_folder_is_refused(here):
    (here / "state" / "run.json").mkdir(parents=True)
    with pytest.raises(StateError, match=r"run\.json cannot be read: Is a directory"):
        chosen("s.jsonl", checkpoint=here / "state")


def test_a_run_leaves_a_checkpoint_that_auto_resumes(here):
    def run() -> int:
        with Engine(checkpoint=here / "state") as engine:
            engine.register(QUERY)
            engine.bind(f"{EX}s", "s.jsonl")
            return len(list(engine.run()))

    assert (run(), run()) == (1, 0)


@pytest.mark.parametrize(("version", "why"), [(None, "none is installed"), (11, "this is Java 11")])
def test_a_large_input_runs_locally_where_java_is_missing(monkeypatch, version, why):
    monkeypatch.setattr("rsp_engine.drivers.spark.session.java_version", lambda: version)
    monkeypatch.setattr("rsp_engine.drivers.spark.session.is_started", lambda: False)
    choice = chosen("201.jsonl")
    assert choice.runner == "local"
    assert why in choice.reason
    assert "201 MB" in choice.reason
    assert chosen("s.jsonl", master="local[2]").runner == "spark", "it was named: the run refuses"


def test_a_large_input_runs_locally_where_pyspark_is_missing(monkeypatch):
    monkeypatch.setattr(runner_choice, "find_spec", lambda name: None)
    choice = chosen("201.jsonl")
    assert choice.runner == "local"
    assert "pyspark is not installed" in choice.reason


def rsp(*flags: str, **variables: str | None) -> tuple[list[str], int]:
    environment = {"RSP_RUNNER": None, **variables}
    done = CliRunner().invoke(
        app, ["run", "q.rspql", "--stream=:s=s.jsonl", *flags], env=environment
    )
    assert done.exit_code == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "runner" in line], len(done.stdout)


def test_one_line_says_which_runner_and_how_to_change_it():
    [line], answers = rsp()
    assert line == (
        "runner: local, since the input files have at most 200 MB together;"
        " --runner spark changes it"
    )
    assert answers
    assert rsp("--runner=auto")[0] == [line]
    assert rsp(RSP_RUNNER="auto")[0] == [line]


def test_no_line_is_printed_where_the_user_named_the_runner(here: Path):
    assert rsp("--runner=local")[0] == []
    assert rsp(RSP_RUNNER="local")[0] == []
    assert rsp("--quiet")[0] == []
    (here / "rsp.toml").write_text('[run]\nrunner = "local"\n')
    assert rsp()[0] == []
    (here / "rsp.toml").write_text('[run]\nrunner = "auto"\n')
    assert len(rsp()[0]) == 1


def test_a_runner_that_cannot_be_asked_for_its_checkpoint_is_an_error(here, monkeypatch):
    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("rsp_engine.drivers.checkpoint.store.Path.exists", denied)
    with pytest.raises(DriverError, match="Permission denied"):
        chosen(checkpoint=here / "state")
