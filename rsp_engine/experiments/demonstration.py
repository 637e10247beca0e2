"""A budget at work: mentions pass by, and a real SPARQL server tells who wins followers.

The mentions and the growth of followers are made as in the evaluation of AcquaTop. The mentions are
replayed through Spark, faster than they happened; the server is `oxigraph serve`, on this computer,
and what it knows changes meanwhile. Each window may fetch a few users anew, and an oracle that may
ask for all of them tells how good the answer is.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.engine import RunnerName
    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.model.answers import Answer

__all__ = ["DemoSetting", "demonstrate"]

_HINT = "install it: pip install oxigraph"
QUERY = Path(__file__).with_name("growing_users.rspql")


@dataclass(frozen=True, slots=True)
class DemoSetting:
    """What can be chosen. `speed` is how many times faster than it happened."""

    policy: str = "AT-TSM"
    budget: int = 7
    windows: int = 20
    runner: RunnerName = "spark"
    speed: float = 60


def demonstrate(tell: Callable[[str], None], given: DemoSetting) -> None:
    """Run for some windows, and tell the best of each, and how good they were."""
    dataset = generate(seed=1)
    with server() as url, tempfile.TemporaryDirectory() as folder:
        posts = Path(folder) / "posts.nq"
        posts.write_text("".join(dataset.nquads()))
        change(url, dataset, -1, 0)
        engine = Engine(
            policy=given.policy,
            budget=given.budget,
            oracle=True,
            runner=given.runner,
            speed=given.speed,
        )
        engine.service("http://example.org/people", f"{url}/query")
        engine.register_file(str(QUERY))
        engine.bind("http://example.org/posts", str(posts))
        where = "on Spark" if given.runner == "spark" else "in this process"
        tell(f"{given.policy} {where}, at most {given.budget} of some 30 users fetched a window\n")
        measured = []
        with changing(url, dataset, given.speed) as has_begun:
            for answer in islice(engine.run(), given.windows):
                has_begun.set()
                measured.append((answer.stats["ndcg"], answer.stats["precision"]))
                tell(line(answer))
        ndcg, precision = (sum(column) / len(measured) for column in zip(*measured, strict=True))
        tell(f"\nagainst the oracle: nDCG {ndcg:.3f}, precision {precision:.3f}, on average")


@contextmanager
def changing(url: str, dataset: Dataset, speed: float) -> Iterator[threading.Event]:
    """Let the server change as fast as mentions are replayed, from the first answer to the end."""
    has_begun, is_over = threading.Event(), threading.Event()

    def keep_changing() -> None:
        has_begun.wait()
        begun, before = time.monotonic(), 0
        while not is_over.wait(0.5):
            now = RANGE + int((time.monotonic() - begun) * 1000 * speed)
            change(url, dataset, before, now)
            before = now

    thread = threading.Thread(target=keep_changing)
    thread.start()
    try:
        yield has_begun
    finally:
        is_over.set()
        has_begun.set()
        thread.join()


def line(answer: Answer) -> str:
    """Return an answer as a line: the users, how often mentioned, how old what is known is."""
    rows = answer.content.rows if isinstance(answer.content, Solutions) else ()
    best = (
        f"{row.bindings['user'].value.removeprefix(USER):>3} {row.score:6.1f}"
        f" {'fresh' if not row.age else f'{row.age // 1000:4}s'}"
        for row in rows
    )
    stats = answer.stats
    judged = f"nDCG {stats['ndcg']:.2f}  precision {stats['precision']:.1f}"
    return f"{answer.window.close // 1000:5} s  {'   '.join(best)}   {judged}"


def change(url: str, dataset: Dataset, after: int, until: int) -> None:
    """Let the server know the dfc of every user as it is at an instant, if it has changed since."""
    now = dataset.dfc_at(until)
    before = None if after < 0 else dataset.dfc_at(after)
    users = [u for u in range(len(now)) if before is None or now[u] != before[u]]
    triples = (f"<{USER}{dataset.names[u]}> <{DFC}> {now[u]:.9f} ." for u in users)
    gone = "".join(f"DELETE WHERE {{ <{USER}{dataset.names[u]}> <{DFC}> ?dfc }} ;" for u in users)
    update = f"{gone if before is not None else ''} INSERT DATA {{ {' '.join(triples)} }}"
    requests.post(f"{url}/update", data={"update": update}, timeout=60).raise_for_status()


@contextmanager
def server() -> Iterator[str]:
    """Start a SPARQL server on a free port of this computer, and stop it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    binary = str(Path(sysconfig.get_path("scripts")) / "oxigraph")
    if not Path(binary).exists():
        raise DriverError("the SPARQL server of the demo is not installed", _HINT)
    command = [binary, "serve", "--bind", address]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - our own server
    try:
        wait_for(f"http://{address}/query", process)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers, for half a minute at most."""
    until = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < until:
        try:
            requests.get(url, params={"query": "ASK {}"}, timeout=5).raise_for_status()
        except requests.ConnectionError:
            time.sleep(0.05)
        else:
            return
    raise DriverError("the SPARQL server of the demo did not start")
