"""The manifest of a run: what was run, with what, what came of it, and how it ended."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from rsp_engine import __version__
from rsp_engine.cli import app
from tests.cli.terminals import on_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :hot AS
SELECT ?room ?t
FROM NAMED WINDOW :w ON STREAM :readings [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t } }
ORDER BY DESC(?t)
LIMIT 1
"""
RUN = ["run", "hot.rspql", "--stream", ":readings=readings.jsonl", "--manifest", "run.json"]


def line(at: int, t: int) -> str:
    graph = f"<http://example.org/a> <http://example.org/temperature> {t} ."
    return json.dumps({"timestamp": at, "graph": graph})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hot.rspql").write_text(QUERY)
    lines = [line(1_000, 20), line(11_000, 30), "{", line(2_000, 5)]
    (tmp_path / "readings.jsonl").write_text("\n".join(lines))
    return tmp_path


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def test_a_run_that_ends_well_is_told_whole(here):
    done = CliRunner().invoke(app, [*RUN, "--max-delay", "0", "--format", "csv"])
    assert done.exit_code == 0, done.output
    told = manifest(here)
    assert (told["state"], told["exit_code"], told["error"]) == ("finished", 0, None)
    assert told["started"] <= told["ended"]
    assert told["ended"].endswith("Z")
    assert told["versions"]["rsp-engine"] == __version__
    assert told["versions"]["python"] == sys.version.split()[0]
    assert told["options"]["output_format"] == "csv"
    assert told["options"]["runner"] == "local"
    assert told["options"]["files"] == ["hot.rspql"]
    assert told["streams"] == {"http://example.org/readings": ["readings.jsonl"]}
    assert told["input"] == {
        "elements": 3,
        "triples": 3,
        "between_windows": 0,
        "late": 1,
        "dead_letters": {"late": 1, "malformed": 1},
    }
    [query] = told["queries"]
    assert query["query"] == "http://example.org/hot"
    assert (query["operator"], query["windows"], query["rows"]) == ("MinTopk", 2, 2)
    assert query["evaluation_seconds"]["count"] == 2
    assert query["evaluation_seconds"]["mean"] > 0


def test_a_run_that_fails_says_why(here):
    done = CliRunner().invoke(app, [*RUN, "--output", "/dev/full"])
    assert done.exit_code == 3
    told = manifest(here)
    assert (told["state"], told["exit_code"]) == ("failed", 3)
    assert told["error"] == "/dev/full cannot be written: No space left on device"


def test_a_run_that_is_refused_has_no_manifest(here):
    done = CliRunner().invoke(app, [*RUN, "--stream", ":other=readings.jsonl"])
    assert done.exit_code == 2
    assert not (here / "run.json").exists()


@pytest.mark.parametrize("path", ["missing/run.json", "."])
def test_a_manifest_that_cannot_be_written_is_refused_before_anything_runs(here, path):
    done = CliRunner().invoke(app, [*RUN[:-1], path, "--output", "answers.jsonl"])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: the manifest {path} cannot be written: ")
    assert "hint: name a file" in done.stderr
    assert (here / "answers.jsonl").read_text() == ""


@pytest.mark.parametrize(
    ("number", "state", "code"),
    [(signal.SIGINT, "interrupted", 130), (signal.SIGKILL, "running", None)],
)
def test_a_run_that_is_stopped_says_so_and_one_that_is_killed_was_running(
    here, number, state, code
):
    on_a_terminal(*RUN, "--speed", "0.01", until=b"elements", signal=number)
    told = manifest(here)
    assert (told["state"], told["exit_code"]) == (state, code)
    assert (told["ended"] is None) == (code is None)
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []
