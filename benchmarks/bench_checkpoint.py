"""Checkpoints: the size and time of a commit, and the time to restore a run.

The cost of a commit should depend on what its batch changes, not on the size of the state. So a
state of 10K, 100K and 1M keys is built up, followed by batches that each touch the same number of
keys; the baseline is the state of 10K keys. Three kinds of state are measured: remote keys in a
replica, groups in the panes of a window, and elements in a window. The medians are those of the
last batches. They leave out commits that start a new log, which write the whole state; the larger
the state, the rarer these are.

A second table has the memory and the log size of a replica of bounded capacity, after 100K and
after 1M distinct keys. A short run leaves it out, and the state of 1M keys.

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

from benchmarks.size import IS_FULL, sized
from rsp_engine import Engine
from rsp_engine.drivers import local
from rsp_engine.drivers.checkpoint.commits import Commits
from rsp_engine.drivers.checkpoint.state_log import StateLog
from rsp_engine.replica.endpoints.endpoint import FetchResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern

KEYS = sized(short=(10_000, 100_000), full=(10_000, 100_000, 1_000_000))
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
    """An endpoint with `count` keys, whose values change every 10 s of stream time."""

    count = 0

    def __init__(self, pattern: RemotePattern) -> None:
        [self._variable] = pattern.variables

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        return self._answer(keys, now)

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        return self._answer(((NamedNode(f"{EX}{n}"),) for n in range(self.count)), now)

    def _answer(self, keys: Iterable[Key], now: int) -> FetchResult:
        value = Literal(now // 10_000 % 7)
        return FetchResult({key: ({self._variable: value},) for key in keys}, 1)

    def close(self) -> None:
        pass


def quads(keys: Iterable[int], time_ms: int, chance: random.Random) -> Iterator[str]:
    """Yield an element for each key."""
    kind = "<http://www.w3.org/2001/XMLSchema#integer>"
    for key in keys:
        yield f'<{EX}{key}> <{EX}n> "{chance.randrange(1000)}"^^{kind} <{EX}g/{time_ms}> .\n'


def write_stream(path: Path, kind: str, count: int) -> None:
    """Write elements that build up the state, then batches of 2 s that each touch some keys."""
    chance = random.Random(3)  # noqa: S311 - the same stream in every run
    with path.open("w", encoding="utf-8") as stream:
        if kind != "replica":
            stream.writelines(quads(range(count), 39_000, chance))
        for batch in range(BATCHES):
            keys = [chance.randrange(count) for _ in range(TOUCHED)]
            stream.writelines(quads(keys, 41_000 + 2_000 * batch, chance))


def engine(kind: str, folder: Path, **options: Any) -> Engine:  # noqa: ANN401 - those of engines
    """Return an engine that resumes from the checkpoint of the folder."""
    made = Engine(**{"checkpoint": folder / "checkpoint", "budget": 20, "n": 10, **options})
    if "SERVICE" in QUERIES[kind]:
        made.service(f"{EX}far", Far)
    made.register(HEAD + QUERIES[kind])
    made.bind(f"{EX}s", str(folder / "stream.nq"))
    return made


@dataclass(slots=True)
class Written:
    """The sizes and times of commits."""

    folder: Path
    sizes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def watch(self) -> None:
        """Record every commit from now on, except those that start a new log."""
        commit = StateLog.commit

        def watched(log: StateLog, *arguments: Any) -> None:  # noqa: ANN401
            before = self._files()
            start = time.perf_counter()
            commit(log, *arguments)
            elapsed = time.perf_counter() - start
            after = self._files()
            if before.keys() == after.keys():
                self.sizes.append(sum(after.values()) - sum(before.values()))
                self.seconds.append(elapsed)

        StateLog.commit = watched  # type: ignore[assignment, method-assign]

    def _files(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in self.folder.glob("*.log")}


def restore_seconds(resumed: Engine) -> float:
    """Return the CPU seconds in which a run restores its state."""
    restore, seconds = Commits.restore, list[float]()

    def watched(commits: Commits, *, is_strict: bool) -> None:
        start = time.process_time()  # wall time would include other load on the machine
        restore(commits, is_strict=is_strict)
        seconds.append(time.process_time() - start)

    Commits.restore = watched  # type: ignore[assignment, method-assign]
    assert not list(resumed.run()), "nothing is left to do"
    return seconds[0]


def measured(kind: str, count: int) -> None:
    """Run a stream, and print the cost of its commits; called in a separate process."""
    Far.count = count
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_stream(folder / "stream.nq", kind, count)
        written = Written(folder / "checkpoint" / "commits")
        written.watch()
        for _ in engine(kind, folder, split_bytes=TOUCHED * 100).run():
            pass
        size = sum(path.stat().st_size for path in written.folder.iterdir())
        restore = restore_seconds(engine(kind, folder, split_bytes=TOUCHED * 100))
    last = slice(-BATCHES // 2, -1)  # the very last commit only marks the end of the stream
    print(median(written.sizes[last]), median(written.seconds[last]), size, restore)


def distinct(count: int) -> None:
    """Pass `count` keys through a bounded replica, and print the size of its log and memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chance = random.Random(5)  # noqa: S311 - the same stream in every run
        with (folder / "stream.nq").open("w", encoding="utf-8") as stream:
            for start in range(0, count, 1_000):
                stream.writelines(quads(range(start, start + 1_000), 2 * start + 1_000, chance))
        bounds = {"capacity": CAPACITY, "budget": 1_000}  # so that it is full after few windows
        made = engine("replica", folder, replica="cache", policy="WSJ-LRU", **bounds)
        for _ in made.run():
            pass
        made.close()
        logs = (folder / "checkpoint" / "commits").iterdir()
        size = sum(path.stat().st_size for path in logs)
        gc.collect()
        print(size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def alone(*words: object) -> list[float]:
    """Measure in a separate process, and return the numbers that it prints."""
    command = [sys.executable, __file__, "--alone", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return [float(number) for number in done.stdout.split()]


def main(counts: Sequence[int]) -> None:
    """Print the tables."""
    print(f"Commits of batches that touch {TOUCHED} keys, by the number of keys in the state")
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
    bars = {
        f"at most {MOST_BYTES} times the bytes": worst <= MOST_BYTES,
        f"at most {MOST_SECONDS} s to restore": slowest <= MOST_SECONDS,
    }
    if IS_FULL:
        growth = growth_by_distinct_keys()
        bars[f"at most {MOST_GROWTH} times the memory and the log"] = growth <= MOST_GROWTH
    print()
    for bar, is_met in bars.items():
        print(f"{bar}: {'met' if is_met else 'not met'}")


def growth_by_distinct_keys() -> float:
    """Print the second table, and return by how much the log or the memory grows."""
    print(f"\nA replica of {CAPACITY} keys, by the number of distinct keys it has seen")
    print(f"{'keys':>9}{'log MB':>9}{'peak MB':>9}")
    rows = [alone("distinct", count) for count in DISTINCT]
    for count, (size, memory) in zip(DISTINCT, rows, strict=True):
        print(f"{count:9}{size / 1e6:9.2f}{memory / 1000:9.0f}")
    (small_log, small_memory), (large_log, large_memory) = rows
    return max(large_log / small_log, large_memory / small_memory)


if __name__ == "__main__":
    local._COMMIT_S = 0
    match sys.argv[1:]:
        case ["--alone", "commits", kind_, count_]:
            measured(kind_, int(count_))
        case ["--alone", "distinct", count_]:
            distinct(int(count_))
        case counts:
            main([*map(int, counts)] or KEYS)
