"""Signals: SIGTERM ends a run as Ctrl-C does, on both runners, and the checkpoint is whole."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.data import PROJECT
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :hot AS SELECT ?room ?t
FROM NAMED WINDOW :w ON STREAM :readings [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t } }
ORDER BY DESC(?t) LIMIT 1
"""
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
RUNNERS = pytest.mark.parametrize("runner", ["local", *(["spark"] if TIMES > 1 else [])])


def line(second: int) -> str:
    graph = f"<http://example.org/a> <http://example.org/temperature> {second} ."
    return json.dumps({"timestamp": 1000 * second, "graph": graph})


@pytest.fixture
def here(tmp_path):
    (tmp_path / "hot.rspql").write_text(QUERY)
    (tmp_path / "readings.jsonl").write_text("\n".join(line(10 * n + 1) for n in range(50)))
    (tmp_path / "live").mkdir()
    return tmp_path


@contextmanager
def run(here: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "rsp_engine.cli", "run", "hot.rspql"]
    command += ["--manifest", "run.json", "--output", "answers.jsonl", *more]
    with (here / "log.txt").open("w") as log:
        process = subprocess.Popen(  # noqa: S603 - our own
            command,
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(condition: Any, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def manifest(here: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((here / "run.json").read_text())
    return found


def said(here: Path) -> str:
    return (here / "log.txt").read_text()


def is_logged(here: Path, text: bytes) -> bool:
    """Return whether the log of commits has a given text."""
    logs = (here / "state" / "commits").glob("*.log")
    return any(re.search(text, path.read_bytes()) for path in logs)


def is_committed(here: Path) -> bool:
    """Return whether a micro-batch was committed: the log begins with -1."""
    return is_logged(here, rb'"batch":\d')


def answers(here: Path) -> list[int]:
    lines = (here / "answers.jsonl").read_text().splitlines()
    return [json.loads(line)["window"]["close"] for line in lines]


@BOTH
@RUNNERS
def test_a_run_that_waits_for_a_live_source_stops_and_goes_on_later(here, number, runner):
    """Two windows are answered before the signal, and the third by the run after it."""
    live = ["--stream", ":readings=watch://live?format=jsonl", "--runner", runner]
    live += ["--checkpoint", "state", "--master", "local[1]"]
    (here / "live" / "1.jsonl").write_text("\n".join(map(line, (1, 11, 21))))
    with run(here, *live) as process:
        until(lambda: (here / "answers.jsonl").exists() and len(answers(here)) == 2)
        until(lambda: is_committed(here))
        time.sleep(1)  # by now it waits
        process.send_signal(number)
        process.wait(timeout=300)
    assert process.returncode == 0, said(here)
    assert "stopping after this batch" in said(here)
    assert (manifest(here)["state"], manifest(here)["exit_code"]) == ("stopped", 0)
    if runner == "spark":
        return
    (here / "live" / "2.jsonl").write_text(line(31))
    with run(here, *live) as process:
        until(lambda: len(answers(here)) == 3)
        process.send_signal(number)
        process.wait(timeout=300)
    assert answers(here) == [10_000, 20_000, 30_000], "each once"


@BOTH
def test_a_live_run_without_a_checkpoint_ends_its_streams_and_their_windows(here, number):
    (here / "live" / "1.jsonl").write_text("\n".join(map(line, (1, 11))))
    with run(
        here, "--stream", ":readings=watch://live?format=jsonl", "--runner", "local"
    ) as process:
        until(lambda: (here / "answers.jsonl").exists() and len(answers(here)) == 1)
        process.send_signal(number)
        process.wait(timeout=300)
    assert process.returncode == 0
    assert manifest(here)["exit_code"] == 0
    assert answers(here) == [10_000, 20_000]


@BOTH
def test_a_recorded_run_in_one_process_ends_at_once(here, number):
    recorded = ["--stream", ":readings=readings.jsonl", "--runner", "local", "--speed", "1"]
    with run(here, *recorded) as process:
        until((here / "run.json").exists)
        time.sleep(1)
        process.send_signal(number)
        process.wait(timeout=300)
    assert process.returncode == 128 + number
    assert (manifest(here)["state"], manifest(here)["exit_code"]) == ("interrupted", 128 + number)
    assert "Traceback" not in said(here)


@BOTH
@RUNNERS
def test_a_recorded_run_with_a_checkpoint_commits_what_it_has_in_hand(here, number, runner):
    """It is paced, and does not wait for the end of that."""
    recorded = ["--stream", ":readings=readings.jsonl", "--runner", runner, "--speed", "1"]
    with run(here, *recorded, "--checkpoint", "state", "--master", "local[1]") as process:
        until(lambda: is_logged(here, b'"plan"' if runner == "spark" else b""))
        time.sleep(2)
        process.send_signal(number)
        process.wait(timeout=300)
    assert process.returncode == 0, said(here)
    assert manifest(here)["state"] in ("stopped", "finished")
    assert is_committed(here)


@BOTH
def test_a_second_signal_ends_a_run_at_once(here, number):
    with run(here, "--stream", ":readings=watch://live", "--runner", "local") as process:
        until((here / "run.json").exists)
        time.sleep(1)
        process.send_signal(number)
        process.send_signal(number)
        process.wait(timeout=300)
    assert process.returncode in (0, 128 + number)
    assert manifest(here)["exit_code"] == process.returncode
