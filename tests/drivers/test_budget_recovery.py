"""Budgets of services across restarts: no span has more keys, wherever a run breaks off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest

from rsp_engine.engine import Engine
from rsp_engine.http_client.faults import INTERRUPTED
from rsp_engine.io.sinks import open_sink
from rsp_engine.model.quantities import Rate
from rsp_engine.policies.registry import POLICIES
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, FetchResult
from rsp_engine.replica.endpoints.recording import RecordingEndpoint
from rsp_engine.replica.key_ledger import KeyLedger
from tests.drivers.test_service_budgets import EX, Counting, Told, query
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rsp_engine.replica.pattern import RemotePattern

MOST, SPAN = 3, 5
FETCHING = [name for name, policy in POLICIES.items() if policy.proposer is not None]


class Killed(BaseException):
    """A crash that nothing handles."""


class Logging(Told):
    """Logs the keys of each fetch in a file, as a server would, and may then crash."""

    def __init__(self, pattern: RemotePattern, log: Path, crash_at: int | None) -> None:
        super().__init__(Counting(), pattern)
        self._log = log
        self._crash_at = crash_at

    def fetch(self, keys: Sequence[Any], limits: object, now: int) -> FetchResult:
        fetched = super().fetch(keys, limits, now)
        with self._log.open("a") as log:
            log.write(json.dumps([now, [str(key[0]) for key in keys]]) + "\n")
        if self._crash_at is not None and len(asked(self._log)) == self._crash_at:
            raise Killed
        return fetched


def asked(log: Path) -> list[tuple[int, list[str]]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def most_in_a_span(log: Path) -> int:
    calls = asked(log)
    return max(
        sum(len(keys) for now, keys in calls if at <= now < at + 1000 * SPAN) for at, _ in calls
    )


def engine(
    folder: Path, policy: str, crash_at: int | None, *, keeps: bool = True, on_spark: bool = False
) -> Engine:
    made = Engine(
        runner="spark" if on_spark else "local",
        master="local[1]" if on_spark else None,
        policy=policy,
        n=4,
        split_bytes=400,
        checkpoint=folder / "checkpoint" if keeps else None,
        service_budget=[f"{EX}svc={MOST}/{SPAN}s"],
    )
    log = folder / "log.jsonl"
    made.service(f"{EX}svc", lambda pattern: Logging(pattern, log, crash_at))
    for each in (query("q1"), query("q2", step=2, k=2), query("q3", verb="q")):
        made.register(each)
    lines = "".join(
        f'<{EX}u{(5 * at + 3 * place) % 10}> <{EX}{"pq"[place % 2]}> "{at}"^^'
        f"<http://www.w3.org/2001/XMLSchema#integer> <{EX}g/{1000 * at + 100 * place}> .\n"
        for at in range(20)
        for place in range(4)
    )
    (folder / "s.nq").write_text(lines)
    made.bind(f"{EX}s", str(folder / "s.nq"))
    return made


def run(
    folder: Path,
    policy: str,
    *,
    at_most: int = 1000,
    crash_at: int | None = None,
    keeps: bool = True,
    on_spark: bool = False,
) -> int:
    """Run until `at_most` answers are written, or a fetch crashes; return how many were."""
    path = str(folder / "answers.jsonl")
    written = 0
    with closing(open_sink("jsonl", path, "SELECT", keep=keeps)) as sink:
        made = engine(folder, policy, crash_at, keeps=keeps, on_spark=on_spark)
        answers = made.run([sink] if keeps else [])
        with suppress(Killed):
            for answer in answers:
                sink.write(answer)
                written += 1
                if written == at_most:
                    break
    return written


@pytest.fixture(autouse=True)
def _commits_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rsp_engine.drivers.local._COMMIT_S", 0)


@pytest.mark.parametrize("policy", FETCHING if TIMES > 1 else ["AT-TSM", "AT-VOI", "EXACT"])
def test_a_run_that_breaks_off_gives_the_same_bytes_and_fetches_nothing_twice(
    policy: str, tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    run(whole, policy, keeps=False)
    pieces = [run(broken, policy, at_most=9) for _ in range(8)]
    assert pieces[0] == pieces[1] == 9
    assert pieces[-1] == 0
    assert (broken / "answers.jsonl").read_bytes() == (whole / "answers.jsonl").read_bytes()
    assert asked(broken / "log.jsonl") == asked(whole / "log.jsonl")
    assert most_in_a_span(whole / "log.jsonl") <= MOST


@pytest.mark.parametrize("policy", ["AT-TSM", "AT-VOI", "EXACT"])
def test_a_fetch_that_crashed_is_paid_for_and_not_sent_again(policy: str, tmp_path: Path) -> None:
    for crash_at in (1, 2, 4, 7):
        run(tmp_path, policy, crash_at=crash_at)
        assert len(asked(tmp_path / "log.jsonl")) == crash_at
    assert run(tmp_path, policy) > 0
    assert most_in_a_span(tmp_path / "log.jsonl") <= MOST
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    answers = [json.loads(line) for line in lines]
    faults = [answer["stats"].get("faults") for answer in answers]
    assert faults.count({INTERRUPTED: 1}) == 4
    calls = asked(tmp_path / "log.jsonl")
    assert sum(answer["stats"]["budget_spent"] for answer in answers) == sum(
        len(keys) for _, keys in calls
    )


def test_fetches_that_are_not_repeated_are_paid_for() -> None:
    """Live streams may fall silent at another time: then the run goes on otherwise."""
    ledger, source = KeyLedger(Rate(4, 10_000)), Counting()
    key = [(ox.NamedNode(f"{EX}u{number}"),) for number in range(8)]
    pattern: Any = type("Pattern", (), {"variables": ("f",)})
    first = RecordingEndpoint(Told(source, pattern), ledger=ledger)
    ledger.charge(1000, 3)
    first.fetch(key[:3], UNLIMITED, 1000)
    logged = json.loads(json.dumps(first.take().calls))

    resumed = KeyLedger(Rate(4, 10_000))
    again = RecordingEndpoint(Told(source, pattern), ledger=resumed)
    again.replay(logged, is_strict=False)
    resumed.charge(2000, 4)
    again.fetch(key[4:], UNLIMITED, 2000)
    assert source.most_in(10_000) == 4


KILLED = """
import sys
from pathlib import Path
from tests.drivers.test_budget_recovery import run
run(Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.outside
def test_a_process_that_is_killed_sends_no_more_than_the_budget(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for calls in (2, 5):
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", KILLED, str(tmp_path), "EXACT"], env=environment
        )
        while process.poll() is None and len(asked(log)) < calls:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    run(tmp_path, "EXACT")
    assert most_in_a_span(log) <= MOST
