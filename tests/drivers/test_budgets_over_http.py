"""Budgets and paces of services, as a server on loopback counts them."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest

from rsp_engine.engine import Engine
from rsp_engine.http_client.faults import NO_TIME, FaultError
from rsp_engine.model.quantities import parse_rate
from rsp_engine.policies.registry import POLICIES
from rsp_engine.replica.endpoints.endpoint import Limits, RequestMeter
from rsp_engine.replica.endpoints.request_pace import RequestPace
from tests.drivers.test_service_budgets import EX, USERS, can_be_plain, query, stream
from tests.replica.fault_server import Exchange, FaultServer

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.outside


class Counting:
    """Counts the keys of requests, and the times of these."""

    def __init__(self) -> None:
        self.keys = 0
        self.times: list[float] = []

    def behave(self, exchange: Exchange) -> None:
        self.times.append(time.monotonic())
        if "VALUES" in exchange.query:
            self.keys += len(re.findall(r"\(\d+ <", exchange.query))
        exchange.answer()


@pytest.fixture
def counted() -> Iterator[tuple[FaultServer, Counting]]:
    counting = Counting()
    with FaultServer(counting.behave) as server:
        server.store.extend(
            ox.Quad(ox.NamedNode(EX + user), ox.NamedNode(f"{EX}followers"), ox.Literal(number))
            for number, user in enumerate(USERS)
        )
        yield server, counting


def run(server: FaultServer, policy: str, **options: Any) -> list[Any]:
    engine = Engine(policy=policy, n=4, **options)
    engine.service(f"{EX}svc", server.url)
    for each in (query("q1"), query("q2", plain=can_be_plain(policy), k=2, step=2)):
        engine.register(each)
    engine.bind(f"{EX}s", stream())
    return list(engine.run())


@pytest.mark.parametrize("policy", POLICIES)
def test_no_more_keys_than_the_budget_reach_a_server(
    policy: str, counted: tuple[FaultServer, Counting]
) -> None:
    server, counting = counted
    answers = run(server, policy, service_budget=[f"{EX}svc=6/20s"])
    spent = sum(answer.stats["budget_spent"] for answer in answers)
    # Instants lie within 16 s, and the first finds what a STEP of 2 s gives.
    assert counting.keys == spent <= 6 * 18 / 20
    assert spent > 0 or policy == "WST"


def test_no_more_requests_than_the_pace_reach_a_server(
    counted: tuple[FaultServer, Counting],
) -> None:
    server, counting = counted
    run(server, "EXACT", max_rate="3/100ms")
    assert len(counting.times) > 12
    gaps = zip(counting.times, counting.times[3:], strict=False)
    assert min(later - first for first, later in gaps) > 0.09


def test_a_request_waits_for_its_turn_unless_the_deadline_comes_first() -> None:
    clock, waits = [0.0], []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += seconds

    pace = RequestPace(parse_rate("2/1s"), lambda: clock[0], sleep)
    patient = RequestMeter(Limits(pace=pace), lambda: clock[0])
    assert [patient.spend(60) for _ in range(4)] == [60.0, 60.0, 61.0, 61.0]
    assert waits == [0.0, 0.0, 1.0, 0.0]
    hurried = RequestMeter(Limits(deadline_ms=500, pace=pace), lambda: clock[0])
    with pytest.raises(FaultError, match=NO_TIME):
        hurried.spend(60)
    assert hurried.requests == 0


@pytest.mark.parametrize("rate", ["3", "0/1s"])
def test_a_pace_has_a_form(rate: str) -> None:
    with pytest.raises(ValueError, match=r"100/10s|at least 1 request"):
        Engine(max_rate=rate)
