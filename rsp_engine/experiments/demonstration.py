"""The demo: a top-k query under a refresh budget, against a real SPARQL server whose data change.

Mentions and follower growth are generated as in the evaluation of AcquaTop. The mentions are
replayed through Spark, faster than real time. The server is a local `oxigraph serve`, whose data
are updated after each window. Each window may refresh a few users. Two engines in this process
answer the same windows for comparison: one refreshes nothing, the other everything.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import requests

from rsp_engine.engine import Engine
from rsp_engine.errors import DriverError
from rsp_engine.experiments.datasets.dataset import DFC, STEP, USER
from rsp_engine.experiments.datasets.generator import generate
from rsp_engine.model.answers import Solutions
from rsp_engine.model.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.model.answers import Answer
    from rsp_engine.options import RunnerName

__all__ = ["DemoSetting", "DemoWindow", "demonstrate"]

QUERY = Path(__file__).with_name("growing_users.rspql")


@dataclass(frozen=True, slots=True)
class DemoSetting:
    """The settings of the demo. `speed` is a factor: 60 replays an hour in a minute."""

    policy: str = "AT-TSM"
    budget: int = 7
    windows: int = 20
    runner: RunnerName = "spark"
    speed: float = 60


@dataclass(frozen=True, slots=True)
class DemoWindow:
    """The answers for one window, as numbers of users, best first, and how many were fetched."""

    close: int
    budgeted: tuple[str, ...]
    stale: tuple[str, ...]
    exact: tuple[str, ...]
    fetched: int
    """How many users the policy fetched within the budget."""
    needed: int
    """How many users the exact answer needs."""


def demonstrate(
    setting: DemoSetting, phase: Callable[[str], AbstractContextManager[None]]
) -> Iterator[DemoWindow]:
    """Yield some windows; enter `phase` with a text while something slow starts."""
    with ExitStack() as stack:
        with phase("a SPARQL server with the follower growth of 400 users"):
            dataset = generate(seed=1)
            url = stack.enter_context(server())
            update_server(url, dataset, -1, 0)
            posts = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "posts.nq"
            posts.write_text("".join(dataset.nquads()))
        if setting.runner == "spark":
            with phase("Spark"):
                from rsp_engine.drivers.spark.session import start_session

                start_session()
        # The one with a pace is the last: the next window starts when it has answered this one.
        engines = [
            Engine(policy="WST", budget=0, runner="local"),
            Engine(policy="EXACT", budget=0, runner="local"),
            Engine(
                policy=setting.policy,
                budget=setting.budget,
                runner=setting.runner,
                speed=setting.speed,
            ),
        ]
        for engine in engines:
            stack.enter_context(engine)
            engine.service("http://example.org/people", f"{url}/query")
            engine.register_file(str(QUERY))
            engine.bind("http://example.org/posts", str(posts))
        answers = zip(*(engine.run() for engine in engines), strict=True)
        with phase("the stream, up to the end of its first window"):
            first = next(answers)
        before = 0
        for found in islice(chain([first], answers), setting.windows):
            now = found[0].window.close + STEP
            update_server(url, dataset, before, now)
            before = now
            yield _window(*found)


def _window(stale: Answer, exact: Answer, budgeted: Answer) -> DemoWindow:
    return DemoWindow(
        budgeted.window.close,
        _users(budgeted),
        _users(stale),
        _users(exact),
        fetched=budgeted.stats["budget_spent"],
        needed=exact.stats["budget_spent"],
    )


def _users(answer: Answer) -> tuple[str, ...]:
    rows = answer.content.rows if isinstance(answer.content, Solutions) else ()
    return tuple(row.bindings["user"].value.removeprefix(USER) for row in rows)


def update_server(url: str, dataset: Dataset, after: int, until: int) -> None:
    """Update the dfc of users that changed between two times; of all users if `after` < 0."""
    now = dataset.dfc_at(until)
    before = None if after < 0 else dataset.dfc_at(after)
    users = [u for u in range(len(now)) if before is None or now[u] != before[u]]
    triples = (f"<{USER}{dataset.names[u]}> <{DFC}> {now[u]:.9f} ." for u in users)
    deletes = "".join(
        f"DELETE WHERE {{ <{USER}{dataset.names[u]}> <{DFC}> ?dfc }} ;" for u in users
    )
    update = f"{deletes if before is not None else ''} INSERT DATA {{ {' '.join(triples)} }}"
    requests.post(f"{url}/update", data={"update": update}, timeout=60).raise_for_status()


@contextmanager
def server() -> Iterator[str]:
    """Run a SPARQL server on a free local port for the duration of the context."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    binary = shutil.which("oxigraph", path=sysconfig.get_path("scripts")) or shutil.which(
        "oxigraph"
    )
    if binary is None:
        hint = f"install it: {install_command('demo')}"
        raise DriverError("the SPARQL server of the demo is not installed", hint)
    command = [binary, "serve", "--bind", address]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - our own server
    try:
        wait_for(f"http://{address}/query", process)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers, for at most 30 s."""
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        try:
            requests.get(url, params={"query": "ASK {}"}, timeout=5).raise_for_status()
        except requests.ConnectionError:
            time.sleep(0.05)
        else:
            return
    raise DriverError("the SPARQL server of the demo did not start")
