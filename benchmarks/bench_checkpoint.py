"""Checkpoints: what a commit writes, how long it takes, and how long a run takes to go on.

A commit should cost what its batch has changed, not what is known. So a state of 10K, 100K and 1M
keys is built up, and then batches follow that each touch the same number of keys; the baseline is
the state of 10K keys. Three kinds of state are measured: a replica of so many remote keys, groups
of so many keys in the panes of a window, and a window that holds so many elements. The medians are
those of the last batches; where the log begins anew, the state is written as a whole, the rarer the
larger it is.

Beside it, the memory and the state of a replica of bounded capacity, after 100K and after 1M
distinct keys have passed through it.

    python benchmarks/bench_checkpoint.py [KEYS ...]
"""

from __future__ import annotations

import gc
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode

from rsp_engine import Engine
from rsp_engine.drivers import micro_batch as steady
from rsp_engine.drivers.checkpoint.commits import Commits
from rsp_engine.drivers.checkpoint.state_log import StateLog
from rsp_engine.replica.endpoints.endpoint import Fetched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern

KEYS = (10_000, 100_000, 1_000_000)
BATCHES, TOUCHED = 16, 200
CAPACITY = 10_000
DISTINCT = (100_000, 1_000_000)
MOST_BYTES = 1.5
MOST_SECONDS = 20
MOST_GROWTH = 1.2
EX = "http://example.org/"
HEAD = "PREFIX : <http://example.org/> REGISTER RSTREAM :q AS SELECT"
QUERIES = {
    "replica": """ ?k (?n + ?f AS ?score) FROM NAMED WINDOW :w ON STREAM :s [RANGE 4s STEP 2s]
WHERE { WINDOW :w { ?k :n ?n } SERVICE :far { ?k :f ?f } } ORDER BY DESC(?score) LIMIT 5""",
    "groups": """ ?k (SUM(?n) AS ?score) FROM NAMED WINDOW :w ON STREAM :s [RANGE 40s STEP 2s]
WHERE { WINDOW :w { ?k :n ?n } } GROUP BY ?k ORDER BY DESC(?score) LIMIT 5""",
    "window": """ ?k ?n ?m FROM NAMED WINDOW :w ON STREAM :s [RANGE 200s STEP 100s]
WHERE { WINDOW :w { ?k :n ?n . ?k :m ?m } }""",
}


class Far:
    """Remote values of so many keys, which change now and then."""

    count = 0

    def __init__(self, pattern: RemotePattern) -> None:
        [self._variable] = pattern.variables

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> Fetched:
        return self._told(keys, now)

    def snapshot(self, limits: Limits, now: int) -> Fetched:
        return self._told(((NamedNode(f"{EX}{n}"),) for n in range(self.count)), now)

    def _told(self, keys: Iterable[Key], now: int) -> Fetched:
        value = Literal(now // 10_000 % 7)
        return Fetched({key: ({self._variable: value},) for key in keys}, 1)

    def close(self) -> None:
        pass


def quads(keys: Iterable[int], time_ms: int, chance: random.Random) -> Iterator[str]:
    """Yield an element for each key."""
    kind = "<http://www.w3.org/2001/XMLSchema#integer>"
    for key in keys:
        yield f'<{EX}{key}> <{EX}n> "{chance.randrange(1000)}"^^{kind} <{EX}g/{time_ms}> .\n'


def write_stream(path: Path, kind: str, count: int) -> None:
    """Write what builds the state up, and then batches of 2 s that touch some keys each."""
    chance = random.Random(3)  # noqa: S311 - a story
    with path.open("w", encoding="utf-8") as stream:
        if kind != "replica":
            stream.writelines(quads(range(count), 39_000, chance))
        for batch in range(BATCHES):
            keys = [chance.randrange(count) for _ in range(TOUCHED)]
            stream.writelines(quads(keys, 41_000 + 2_000 * batch, chance))


def engine(kind: str, folder: Path, **options: Any) -> Engine:  # noqa: ANN401 - those of engines
    """Return an engine that goes on from the checkpoint of the folder, place by place."""
    made = Engine(**{"checkpoint": folder / "checkpoint", "budget": 20, "n": 10, **options})
    if "SERVICE" in QUERIES[kind]:
        made.service(f"{EX}far", Far)
    made.register(HEAD + QUERIES[kind])
    made.bind(f"{EX}s", str(folder / "stream.nq"))
    return made


@dataclass(slots=True)
class Written:
    """What commits wrote, and how long they took."""

    folder: Path
    sizes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def watch(self) -> None:
        """Look at every commit from now on; one that begins a log anew is left out."""
        commit = StateLog.commit

        def watched(log: StateLog, *arguments: Any) -> None:  # noqa: ANN401
            before = self._files()
            begun = time.perf_counter()
            commit(log, *arguments)
            took = time.perf_counter() - begun
            after = self._files()
            if before.keys() == after.keys():
                self.sizes.append(sum(after.values()) - sum(before.values()))
                self.seconds.append(took)

        StateLog.commit = watched  # type: ignore[assignment, method-assign]

    def _files(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in self.folder.glob("*.log")}


def restored_in(made: Engine) -> float:
    """Return how many seconds of the processor it takes until a run has its state again."""
    restore, took = Commits.restore, list[float]()

    def watched(commits: Commits, *, is_strict: bool) -> None:
        begun = time.process_time()  # others may use the machine as well
        restore(commits, is_strict=is_strict)
        took.append(time.process_time() - begun)

    Commits.restore = watched  # type: ignore[assignment, method-assign]
    assert not list(made.run()), "nothing is left to do"
    return took[0]


def measured(kind: str, count: int) -> None:
    """Run a story, and print what its commits cost; a process of its own does that."""
    Far.count = count
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_stream(folder / "stream.nq", kind, count)
        written = Written(folder / "checkpoint" / "commits")
        written.watch()
        for _ in engine(kind, folder, place_bytes=TOUCHED * 100).run():
            pass
        size = sum(path.stat().st_size for path in written.folder.iterdir())
        restore = restored_in(engine(kind, folder, place_bytes=TOUCHED * 100))
    last = slice(-BATCHES // 2, -1)  # the very last commit tells that the stream has ended
    print(median(written.sizes[last]), median(written.seconds[last]), size, restore)


def distinct(count: int) -> None:
    """Let so many keys pass through a bounded replica, and print the state and the memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chance = random.Random(5)  # noqa: S311 - a story
        with (folder / "stream.nq").open("w", encoding="utf-8") as stream:
            for start in range(0, count, 1_000):
                stream.writelines(quads(range(start, start + 1_000), 2 * start + 1_000, chance))
        bounds = {"capacity": CAPACITY, "budget": 1_000}  # so that it is full after few windows
        made = engine("replica", folder, snapshot=False, policy="WSJ-LRU", **bounds)
        for _ in made.run():
            pass
        made.close()
        logs = (folder / "checkpoint" / "commits").iterdir()
        size = sum(path.stat().st_size for path in logs)
        gc.collect()
        print(size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def alone(*words: object) -> list[float]:
    """Measure in a process of its own, and return the numbers that it prints."""
    command = [sys.executable, __file__, "--alone", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return [float(number) for number in done.stdout.split()]


def main(counts: Sequence[int]) -> None:
    """Print the tables."""
    print(f"Commits of batches that touch {TOUCHED} keys, in a state of so many keys")
    print(f"{'state':9}{'keys':>9}{'kB/commit':>11}{'ratio':>7}{'ms':>8}{'MB':>7}{'restore s':>11}")
    worst, slowest = 0.0, 0.0
    for kind in QUERIES:
        base = 0.0
        for count in counts:
            size, seconds, whole, restore = alone("commits", kind, count)
            base = base or size
            worst, slowest = max(worst, size / base), max(slowest, restore)
            print(
                f"{kind:9}{count:9}{size / 1000:11.1f}{size / base:7.2f}{1000 * seconds:8.1f}"
                f"{whole / 1e6:7.1f}{restore:11.1f}"
            )
    print(f"\nA replica of {CAPACITY} keys after so many distinct ones")
    print(f"{'keys':>9}{'log MB':>9}{'peak MB':>9}")
    found = [alone("distinct", count) for count in DISTINCT]
    for count, (size, memory) in zip(DISTINCT, found, strict=True):
        print(f"{count:9}{size / 1e6:9.2f}{memory / 1000:9.0f}")
    growth = max(after / before for before, after in zip(*found, strict=True))
    bars = (
        (f"at most {MOST_BYTES} times the bytes", worst <= MOST_BYTES),
        (f"at most {MOST_SECONDS} s to go on", slowest <= MOST_SECONDS),
        (f"at most {MOST_GROWTH} times the memory and the log", growth <= MOST_GROWTH),
    )
    print()
    for bar, is_met in bars:
        print(f"{bar}: {'met' if is_met else 'not met'}")


if __name__ == "__main__":
    steady._COMMIT_S = 0
    match sys.argv[1:]:
        case ["--alone", "commits", kind_, count_]:
            measured(kind_, int(count_))
        case ["--alone", "distinct", count_]:
            distinct(int(count_))
        case chosen:
            main([*map(int, chosen)] or KEYS)
