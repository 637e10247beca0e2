"""Budgets in time: the number of keys is learned, and repeated by a run that resumes."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from rsp_engine.engine import Engine
from rsp_engine.http_client.faults import TIME_OUT
from rsp_engine.io.sinks import open_sink
from rsp_engine.replica.endpoints.endpoint import FetchResult, Limits
from tests.drivers.test_service_budgets import EX, Counting, Told, query, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


class Slow(Told):
    """Takes a time for each call, and 10 ms for each key, by a clock of its own."""

    def __init__(self, source: Counting, pattern: Any, delay: Callable[[int], float]) -> None:
        super().__init__(source, pattern)
        self._delay = delay

    def fetch(self, keys: Sequence[Any], limits: object, now: int) -> FetchResult:
        assert isinstance(limits, Limits)
        assert limits.deadline_ms is not None
        assert limits.deadline_ms <= 80
        fetched = super().fetch(keys, limits, now)
        took = self._delay(now) + 10 * len(keys)
        if took > 80:
            return FetchResult({}, 1, {TIME_OUT: 1}, 80)
        return FetchResult(fetched.answers, 1, {}, took)


def engine(delay: Callable[[int], float], *queries: str, **options: Any) -> Engine:
    made = Engine(budget="80ms", n=4, split_bytes=400, **options)
    made.service(f"{EX}svc", lambda pattern: Slow(Counting(), pattern, delay))
    for each in queries:
        made.register(each)
    return made


@pytest.mark.parametrize("policy", ["AT-LRU", "WSJ-LRU", "AT-VOI"])
def test_the_number_of_keys_grows_while_they_are_answered_in_time(policy: str) -> None:
    def spent(delay: float) -> list[int]:
        made = engine(lambda _: delay, query("q", step=1), policy=policy)
        made.bind(f"{EX}s", stream())
        return [answer.stats["budget_spent"] for answer in made.run()][:10]

    quick, slow = spent(0), spent(30)
    assert quick[0] in (1, 2)
    assert quick[:3] == sorted(quick[:3])
    assert sum(quick) > sum(slow) > 0


def test_a_service_that_becomes_slow_gets_fewer_keys() -> None:
    made = engine(lambda now: 75 if now > 10_000 else 0, query("q", step=1), policy="AT-LRU")
    made.bind(f"{EX}s", stream())
    answers = list(made.run())
    unanswered = [answer.stats.get("unanswered", 0) for answer in answers]
    assert sum(unanswered) > 0
    assert answers[-1].stats["budget_spent"] <= 1
    assert any(answer.stats["budget_spent"] == 0 for answer in answers[-8:])


def test_a_resumed_run_repeats_what_was_learned_from_times_that_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rsp_engine.drivers.local._COMMIT_S", 0)
    lines = "".join(
        f'<{EX}u{(5 * at + 3 * place) % 10}> <{EX}p> "{at}"^^'
        f"<http://www.w3.org/2001/XMLSchema#integer> <{EX}g/{1000 * at + 100 * place}> .\n"
        for at in range(20)
        for place in range(4)
    )
    (tmp_path / "s.nq").write_text(lines)
    out = tmp_path / "answers.jsonl"

    def run(at_most: int) -> int:
        made = engine(
            lambda _: os.urandom(1)[0] / 4,
            query("q1", step=1),
            query("q2", step=2, k=1),
            policy="AT-TSM",
            checkpoint=tmp_path / "checkpoint",
        )
        made.bind(f"{EX}s", str(tmp_path / "s.nq"))
        written = 0
        with closing(open_sink("jsonl", str(out), "SELECT", keep=True)) as sink:
            for answer in made.run([sink]):
                sink.write(answer)
                written += 1
                if written == at_most:
                    break
        return written

    before = ""
    pieces = []
    for _ in range(8):
        pieces.append(run(14))
        assert out.read_text().startswith(before)
        before = out.read_text()
    assert pieces[1] == 14
    assert pieces[-1] == 0


@pytest.mark.parametrize(("text", "kept"), [("7", 7), ("80ms", "80ms"), ("PT1S", "1s"), (7, 7)])
def test_a_budget_is_a_number_of_keys_or_a_duration(text: Any, kept: Any) -> None:
    from rsp_engine.options import ServiceOptions

    assert ServiceOptions(budget=text).budget == kept


@pytest.mark.parametrize("text", ["-1", -1, "0ms", "many", "5.0"])
def test_other_budgets_are_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="budget"):
        Engine(budget=text)
