"""A budget in time against fixed numbers of keys, behind a delay that changes.

`oxigraph serve` is behind a proxy that delays each request by 5 to 200 ms: in steps, or drifting at
random. A query ranks a window of 400 keys each second, and may spend 300 ms on fetching in each of
1,000 evaluations. A row has the part of the evaluations whose fetch kept the deadline, the part of
the elected keys that stayed unanswered, and the keys that were answered. The best fixed number is
the one with most answered keys among those that keep to 1 % in both.

Each run is a process of its own, with its own server; the runs of a kind of delay go on at the same
time, since they wait for the proxy nearly all the time.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.bench_service import EX, server
from benchmarks.markdown import print_table
from benchmarks.size import sized
from rsp_engine.drivers.bindings import connect
from rsp_engine.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.replica.endpoints.endpoint import Endpoint, FetchResult, Limits
    from rsp_engine.replica.pattern import Key, RemotePattern

EVALUATIONS = sized(short=250, full=1000)
BUDGET_MS = 300
TOLERANCE_MS = 5
"""The deadline is kept if a fetch takes no longer than this beyond it: processes take turns."""
KEYS = 400
FIXED = (50, 75, 100, 150)
STEPS = (5, 50, 200, 20, 100)
QUERY = f"""PREFIX : <{EX}>
SELECT ?user ?mentions ?followers FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 1s]
WHERE {{
  WINDOW :w {{ ?user :mentions ?mentions }}
  SERVICE :sparql {{ ?user :followers ?followers }}
}}
ORDER BY DESC(?mentions + ?followers) LIMIT 10"""  # noqa: S608 - it is no SQL


def delays(kind: str) -> list[int]:
    """Return the delay of each evaluation, in ms."""
    if kind == "steps":
        return [STEPS[number * 10 // EVALUATIONS % len(STEPS)] for number in range(EVALUATIONS)]
    chance, now, found = Random(7), 50.0, []  # noqa: S311 - a delay
    for _ in range(EVALUATIONS):
        now = min(max(now * chance.uniform(0.85, 1 / 0.85), 5.0), 200.0)
        found.append(int(now))
    return found


class DelayingProxy:
    """Passes bytes on to a server, each request after a delay."""

    def __init__(self, url: str) -> None:
        host, port = url.split("/")[2].split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/query"
        self.seconds = 0.0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            far = socket.create_connection(self._target)
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, target, is_request in ((near, far, True), (far, near, False)):
                arguments = source, target, is_request
                threading.Thread(target=self._pass_on, args=arguments, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        try:
            while data := source.recv(1 << 20):
                if is_request and data.startswith(b"POST"):
                    time.sleep(self.seconds)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Timed(NamedTuple):
    """Notes how long each fetch takes."""

    endpoint: Endpoint
    taken: list[float]

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        begun = time.perf_counter()
        found = self.endpoint.fetch(keys, limits, now)
        self.taken.append(1e3 * (time.perf_counter() - begun))
        return found

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        return self.endpoint.snapshot(limits, now)

    def close(self) -> None:
        self.endpoint.close()


def run(kind: str, budget: str) -> dict[str, float]:
    """Run the evaluations; `budget` is a number of keys, or a duration."""
    taken: list[float] = []
    with server() as remote:
        proxy = DelayingProxy(remote.url)
        options: dict[str, Any] = {"budget": int(budget) if budget.isdecimal() else budget}
        engine = Engine(runner="local", policy="WSJ-LRU", deadline=BUDGET_MS, **options)

        def timed(pattern: RemotePattern) -> Timed:
            return Timed(connect(proxy.url)(pattern), taken)

        engine.service(f"{EX}sparql", timed)
        engine.register(QUERY)
        elected = unanswered = late = 0
        with engine:
            fed = engine.begin()
            for number, delay in enumerate(delays(kind)):
                proxy.seconds = delay / 1e3
                for key in range(KEYS):
                    at = 1000 * number + 1 + key
                    fed.feed(f"{EX}s", at, f"<{EX}user/{key}> <{EX}mentions> {key} .")
                taken.clear()
                for answer in fed.advance(1000 * (number + 1)):
                    elected += answer.stats["budget_spent"]
                    unanswered += answer.stats.get("unanswered", 0)
                late += sum(taken) > BUDGET_MS + TOLERANCE_MS
    return {"late": late, "elected": elected, "unanswered": unanswered}


def start(kind: str, budget: str) -> subprocess.Popen[str]:
    """Start a run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_time_budget", kind, budget]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603


def main() -> None:
    """Print what each budget fetches."""
    rows = []
    for kind in ("steps", "drifting"):
        started = {budget: start(kind, budget) for budget in (f"{BUDGET_MS}ms", *map(str, FIXED))}
        for budget, process in started.items():
            written, _ = process.communicate()
            found: dict[str, float] = json.loads(written)
            elected, unanswered = found["elected"], found["unanswered"]
            kept, left = 1 - found["late"] / EVALUATIONS, unanswered / max(elected, 1)
            row = f"{kept:.1%}", f"{left:.2%}", f"{elected - unanswered:,.0f}"
            does = "yes" if kept >= 0.99 and left <= 0.01 else "no"
            rows.append((kind, budget, *row, does))
    head = ("delay", "budget", "deadline kept", "unanswered", "keys answered", "within 1 %")
    print_table(head, rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(run(*sys.argv[1:])))
    else:
        main()
