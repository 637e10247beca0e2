"""Runs that are killed while they write give the bytes of a run that is not."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.data import PROJECT
from tests.replica.servers import OxigraphServer
from tests.soak.story import REMOTE, command, write
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KILLS = {"local": 30, "spark": 12}
LONGEST_S = 600


@pytest.fixture
def service() -> Iterator[str]:
    with OxigraphServer() as server:
        server.update(f"INSERT DATA {{ {REMOTE} }}")
        yield server.query_url


def lines(folder: Path) -> int:
    path = folder / "answers.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def run(arguments: list[str], folder: Path, until: float = float("inf")) -> int:
    """Run until the answers have so many lines, and then kill the whole group; or to the end."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "RSP_RUNNER": "local"}
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own
            arguments, cwd=folder, env=environment, stderr=log, start_new_session=True
        )
        end = time.monotonic() + LONGEST_S
        while process.poll() is None:
            assert time.monotonic() < end, "it hangs"
            if lines(folder) >= until:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.005)
    return process.wait()


@pytest.mark.skipif(TIMES == 1, reason="it takes minutes: RSP_THOROUGH=1 runs it")
@pytest.mark.parametrize("runner", KILLS)
def test_a_run_that_is_killed_while_it_writes_gives_the_same_bytes(runner, tmp_path, service):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        write(folder)
    assert run(command(service, "--runner=local"), whole) == 0, log_of(whole)
    total = lines(whole)
    chance = Random(f"{runner} 5")  # noqa: S311 - a story
    master = ["--master=local[1]"] if runner == "spark" else []
    resumed = command(service, f"--runner={runner}", "--checkpoint=checkpoint", *master)
    count = 0
    while count < KILLS[runner]:
        wanted = int(total * (count + chance.random()) / (KILLS[runner] + 1))
        before = lines(killed)
        if run(resumed, killed, max(wanted, before + 1)) == 0:
            break
        assert before < lines(killed) or count == 0, "lines were there"
        count += 1
    assert count >= 0.8 * KILLS[runner], "it was killed on its way"
    assert run(resumed, killed) == 0, log_of(killed)
    for name in ("answers.jsonl", "letters.jsonl"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name


def log_of(folder: Path) -> str:
    return (folder / "log.txt").read_text(encoding="utf-8")[-3000:]
