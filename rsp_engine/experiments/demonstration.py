"""The demo: a top-k query under a refresh budget, against a real SPARQL server whose data change.

Mentions and follower growth are generated as in the evaluation of AcquaTop. The mentions are
replayed through Spark, faster than real time. The server is a local `oxigraph serve`, whose data
are updated meanwhile. Each window may refresh a few users; an oracle that fetches all of them
measures the quality of the answer.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sysconfig
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import requests

from rsp_engine.engine import Engine
from rsp_engine.errors import DriverError
from rsp_engine.experiments.datasets.dataset import DFC, RANGE, USER
from rsp_engine.experiments.datasets.generator import generate
from rsp_engine.model.answers import Solutions
from rsp_engine.model.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.model.answers import Answer
    from rsp_engine.options import RunnerName

__all__ = ["DemoSetting", "demonstrate"]

QUERY = Path(__file__).with_name("growing_users.rspql")


@dataclass(frozen=True, slots=True)
class DemoSetting:
    """The settings of the demo. `speed` is a factor: 60 replays an hour in a minute."""

    policy: str = "AT-TSM"
    budget: int = 7
    windows: int = 20
    runner: RunnerName = "spark"
    speed: float = 60


def demonstrate(write_line: Callable[[str], None], setting: DemoSetting) -> None:
    """Run some windows; pass each answer to `write_line`, with its nDCG and precision."""
    dataset = generate(seed=1)
    with server() as url, tempfile.TemporaryDirectory() as folder:
        posts = Path(folder) / "posts.nq"
        posts.write_text("".join(dataset.nquads()))
        update_server(url, dataset, -1, 0)
        engine = Engine(
            policy=setting.policy,
            budget=setting.budget,
            oracle=True,
            runner=setting.runner,
            speed=setting.speed,
        )
        engine.service("http://example.org/people", f"{url}/query")
        engine.register_file(str(QUERY))
        engine.bind("http://example.org/posts", str(posts))
        where = "on Spark" if setting.runner == "spark" else "in this process"
        fetched = f"at most {setting.budget} of some 30 users fetched a window"
        write_line(f"{setting.policy} {where}, {fetched}\n")
        measured = []
        with updating_server(url, dataset, setting.speed) as has_begun:
            for answer in islice(engine.run(), setting.windows):
                has_begun.set()
                measured.append((answer.stats["ndcg"], answer.stats["precision"]))
                write_line(answer_line(answer))
        ndcg, precision = (sum(column) / len(measured) for column in zip(*measured, strict=True))
        write_line(f"\nagainst the oracle: nDCG {ndcg:.3f}, precision {precision:.3f}, on average")


@contextmanager
def updating_server(url: str, dataset: Dataset, speed: float) -> Iterator[threading.Event]:
    """Update the server at the speed of the replay, once the yielded event is set."""
    has_begun, is_over = threading.Event(), threading.Event()

    def keep_updating() -> None:
        has_begun.wait()
        start, before = time.monotonic(), 0
        while not is_over.wait(0.5):
            now = RANGE + int((time.monotonic() - start) * 1000 * speed)
            update_server(url, dataset, before, now)
            before = now

    thread = threading.Thread(target=keep_updating)
    thread.start()
    try:
        yield has_begun
    finally:
        is_over.set()
        has_begun.set()
        thread.join()


def answer_line(answer: Answer) -> str:
    """Return an answer as a line: per user the score and the age of the value, and the measures."""
    rows = answer.content.rows if isinstance(answer.content, Solutions) else ()
    best = (
        f"{row.bindings['user'].value.removeprefix(USER):>3} {row.score:6.1f}"
        f" {'fresh' if not row.age else f'{row.age // 1000:4}s'}"
        for row in rows
    )
    stats = answer.stats
    measures = f"nDCG {stats['ndcg']:.2f}  precision {stats['precision']:.1f}"
    return f"{answer.window.close // 1000:5} s  {'   '.join(best)}   {measures}"


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
