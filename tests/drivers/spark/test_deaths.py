"""The errors of a run whose processes of Spark are killed; no process is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.data import PROJECT
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator

EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}> REGISTER STREAM :q AS SELECT ?u (COUNT(*) AS ?c)
FROM NAMED WINDOW :w ON STREAM :s [RANGE 2s STEP 1s]
WHERE {{ WINDOW :w {{ ?u :m ?n }} }} GROUP BY ?u ORDER BY DESC(?c) LIMIT 3"""
SOON_S = 180
thorough = pytest.mark.skipif(TIMES == 1, reason="RSP_THOROUGH=1 asks for it")


class Process(NamedTuple):
    """A process: its parent, its state and its command."""

    parent: int
    state: str
    command: str


def processes() -> dict[int, Process]:
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        found[int(folder.name)] = Process(int(parent), state, command)
    return found


class Run:
    """A run on Spark over a folder in which files appear."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder, 0
        self.output = folder / "answers.jsonl"
        (folder / "in").mkdir()
        (folder / "q.rspql").write_text(QUERY)
        told = ["run", "q.rspql", "--stream", f"{EX}s=watch://{folder / 'in'}", "--runner", "spark"]
        told += ["--master", "local[1]", "--checkpoint", "kept", "--output", "answers.jsonl"]
        path = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, "-m", "rsp_engine.cli", *told],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            stderr=subprocess.PIPE,
            text=True,
        )

    def feed(self) -> None:
        """Let a file appear."""
        self._files += 1
        made = self._folder / "in" / f"f{self._files:04}.jsonl"
        times = (1000 * self._files + 100 * place for place in range(5))
        rows = ({"timestamp": at, "graph": f"<{EX}u{at}> <{EX}m> 1 ."} for at in times)
        (hidden := made.with_suffix(".tmp")).write_text("".join(f"{json.dumps(r)}\n" for r in rows))
        hidden.rename(made)

    def below(self) -> dict[int, Process]:
        """Return the processes that the run has started."""
        every, found = processes(), [self.process.pid]
        for parent in found:
            found += [number for number, each in every.items() if each.parent == parent]
        return {number: every[number] for number in found[1:] if number in every}

    def java(self) -> dict[int, Process]:
        return {n: each for n, each in self.below().items() if "org.apache.spark" in each.command}

    def answers(self) -> bool:
        return self.output.exists() and len(self.output.read_text().splitlines()) > 2

    def until(self, is_so: object) -> None:
        """Add files to the run until a condition holds."""
        end = time.monotonic() + SOON_S
        while not is_so():  # type: ignore[operator]
            assert time.monotonic() < end, "it takes too long"
            assert self.process.poll() is None, self.process.communicate()[1]
            self.feed()
            time.sleep(0.5)

    def close(self) -> None:
        """Kill what is left of the run."""
        for number in (*self.below(), self.process.pid):
            if self.process.poll() is None or number != self.process.pid:
                os.kill(number, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def run(tmp_path) -> Iterator[Run]:
    made = Run(tmp_path)
    yield made
    made.close()


def killed(run: Run, victim: int) -> list[str]:
    """Kill a process of a run; return what the run says, which must end and leave nothing."""
    before = run.below()
    os.kill(victim, signal.SIGKILL)
    said = run.process.communicate(timeout=SOON_S)[1]
    assert run.process.returncode == 3, said
    end = time.monotonic() + 20
    while left := [n for n, each in processes().items() if _is_same(each, before.get(n))]:
        assert time.monotonic() < end, left
        time.sleep(0.2)
    notice, *lines = said.splitlines()
    assert notice == "starting Spark ...", said
    return lines


def _is_same(each: Process, before: Process | None) -> bool:
    return before is not None and each.command == before.command and each.state != "Z"


def test_the_death_of_java_is_one_error(run):
    """It may be starting or running: the message is the same."""
    run.until(run.java)
    [java, *_] = run.java()
    said = killed(run, java)
    assert len(said) == 2, said
    assert "Java process was killed by SIGKILL" in said[0] or "Spark does not start" in said[0]
    assert "hint" in said[1]


@thorough
def test_the_death_of_java_in_a_run_that_answers_is_one_error(run):
    run.until(run.answers)
    [java, *_] = run.java()
    said = killed(run, java)
    assert len(said) == 2, said
    first, second = said
    assert first == "error: Spark stopped: its Java process was killed by SIGKILL"
    assert "run the same command again to resume" in second
