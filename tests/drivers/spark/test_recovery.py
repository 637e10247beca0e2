"""Recovery: a run that is killed goes on as if nothing had happened."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.data import PROJECT
from tests.drivers.cut import texts
from tests.drivers.spark.recovering import EVALUATED, evaluated, made, write_stream
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from pathlib import Path

POINTS = [("fetch", 2), ("output", 2), ("state", 2)] if TIMES > 1 else [("output", 2)]
RANDOM_KILLS = 20 if TIMES > 1 else 0


def run(folder: Path, point: str, number: int, *kind: str) -> int:
    """Run until it is killed, or to its end, in a group of processes of its own."""
    arguments = ["-m", "tests.drivers.spark.recovering", str(folder), point, str(number), *kind]
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, *arguments],
        cwd=PROJECT,
        start_new_session=True,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


def windows(folder: Path) -> int:
    path = folder / "answers.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def test_a_run_that_is_killed_again_and_again_gives_every_answer_once(tmp_path):
    """Killed at each point, and then at random: the bytes are those of a run without kills.

    It takes some 40 seconds, since each run, the two of a usual test too, starts Spark anew.
    """
    write_stream(tmp_path / "stream.nq")
    expected = texts(made(tmp_path, None))
    assert len(expected) > 50
    chance = Random(11)  # noqa: S311 - a story
    times = [("time", chance.randrange(50, 1500)) for _ in range(RANDOM_KILLS)]
    reached = []
    for point, number in [*POINTS, *times]:
        if run(tmp_path, point, number) == 0:
            break
        reached.append(windows(tmp_path))
    assert len(reached) >= len(POINTS), "it was killed on its way"
    assert run(tmp_path, "never", 0) == 0
    found = (tmp_path / "answers.jsonl").read_text(encoding="utf-8")
    assert found == "".join(expected)
    closes = [json.loads(line)["window"]["close"] for line in found.splitlines()]
    assert len(set(closes)) == len(closes)
    if TIMES > 1:
        assert run(tmp_path, "never", 0) == 0, "nothing is left to do"
        assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8") == found


@pytest.mark.skipif(TIMES == 1, reason="RSP_THOROUGH=1 asks for it: Spark starts a dozen times")
@pytest.mark.parametrize("kind", EVALUATED)
def test_a_run_that_is_killed_goes_on_from_its_pane_files(kind, tmp_path):
    """Killed after each of its first commits, and at random, while executors write and evaluate."""
    write_stream(tmp_path / "stream.nq")
    expected = texts(evaluated(tmp_path, None, kind))
    assert len(expected) > 50
    chance = Random(13)  # noqa: S311 - a story
    times = [("time", chance.randrange(20, 1200)) for _ in range(8)]
    reached = []
    for point, number in [("output", 2), ("state", 2), *times]:
        if run(tmp_path, point, number, kind) == 0:
            break
        reached.append(windows(tmp_path))
    assert len(reached) >= 2, "it was killed on its way"
    assert run(tmp_path, "never", 0, kind) == 0
    assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8") == "".join(expected)
