"""The whole life of streams and queries over real HTTP, with processes that are killed."""

import random
import threading
import time
from collections import defaultdict
from typing import Any

import pytest

from rsp_engine.errors import ServerError
from tests.server.served import EX, Served, eventually, lines_of_run, served
from tests.thoroughness import TIMES

pytestmark = pytest.mark.outside

ELEMENTS = 10_000 if TIMES > 1 else 2_000
KILLS = 5 if TIMES > 1 else 1
BATCH = 50

PREFIX = f"PREFIX : <{EX}>\n"
RANKING = """REGISTER RSTREAM :{name} AS SELECT ?room ?t
FROM NAMED WINDOW :w ON :readings [RANGE 4s STEP 2s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} }} ORDER BY DESC(?t) LIMIT 3"""
TOP = PREFIX + RANKING.format(name="top")
LIVE = PREFIX + RANKING.format(name="live")
HOT = f"""{PREFIX}REGISTER RSTREAM :hot AS CONSTRUCT {{ ?room :isHot ?t }}
FROM NAMED WINDOW :w ON :readings [RANGE 2s STEP 2s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t . FILTER (?t > 900) }} }}"""
CHAINED = f"""{PREFIX}REGISTER RSTREAM :chained AS SELECT ?room (COUNT(?t) AS ?n)
FROM NAMED WINDOW :w ON :hot [RANGE 6s STEP 6s]
WHERE {{ WINDOW :w {{ ?room :isHot ?t }} }} GROUP BY ?room ORDER BY DESC(?n) LIMIT 3"""


def reading(number):
    # Neighbours change places, so that some elements are late.
    time = 1_000 + 100 * (number + (7 * number * number + 3) % 60 - 30)
    value = (7919 * number * number + 104729) % 1000
    graph = f"<{EX}room/{number % 17}> <{EX}temperature> {value} ."
    return max(time, 1), graph


def push_all(server: Served, begin: int, end: int, step: int, pause: float) -> None:
    """Push elements from a client that repeats what it does not know to be taken."""
    with server.client() as client:
        for start in range(begin, end, step):
            batch = [reading(number) for number in range(start, min(start + BATCH, end))]
            while True:
                try:
                    client.push("readings", batch, key=f"{start}")
                    break
                except ServerError:
                    time.sleep(0.1)
            time.sleep(pause)


def collect(server: Served, name: str, into: list[Any], failures: list[Any]) -> None:
    """Follow the answers of a query, whatever happens to the server."""
    try:
        with server.client() as client:
            into.extend(client.answers(name, after=0, patience=60))
    except ServerError as error:
        failures.append(error)


def kill_at_random(server: Served, choice: random.Random) -> None:
    """Kill the server or a worker."""
    with server.client() as client:
        pids = [query["status"]["pid"] for query in client.queries()]
    victim = choice.choice([server.pid, *filter(None, pids)])
    if victim == server.pid:
        server.kill()
        server.start()
    else:
        import os
        import signal

        os.kill(victim, signal.SIGKILL)


def test_a_life(tmp_path):
    choice = random.Random(TIMES)  # noqa: S311 - which process is killed is no secret
    with served(tmp_path) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        client.submit(TOP, start="earliest")
        followed: dict[str, list[Any]] = defaultdict(list)
        failures: list[Any] = []
        threads = [
            threading.Thread(
                target=collect, args=(server, "top", followed["top"], failures), daemon=True
            )
        ]
        half = ELEMENTS // 2
        push_all(server, 0, half, BATCH, 0)
        client.submit(LIVE, start="now")
        client.submit(HOT, start="earliest")
        client.submit(CHAINED, start="earliest")
        threads += [
            threading.Thread(
                target=push_all, args=(server, begin, ELEMENTS, 2 * BATCH, 0.05), daemon=True
            )
            for begin in (half, half + BATCH)
        ]
        for thread in threads:
            thread.start()
        for number in range(KILLS):
            time.sleep(choice.uniform(0.5, 2.0))
            kill_at_random(server, choice)
            if number % 2 == 0:
                eventually(lambda: quietly(client.pause, "top"))
                eventually(lambda: quietly(client.resume, "top"))
        for thread in threads[1:]:
            thread.join()

        stream = client.streams()[0]
        assert stream["messages"] == ELEMENTS
        expected = lines_of_run(server, tmp_path, ["readings"], TOP)
        assert len(expected) > 50
        answers = eventually(lambda: all_of(client, "top", len(expected)))
        assert [each.line for each in answers] == expected
        assert [each.id for each in answers] == list(range(1, len(expected) + 1))

        eventually(lambda: len(followed["top"]) >= len(expected))
        assert [each.line for each in followed["top"]] == expected
        assert not failures

        full = lines_of_run(server, tmp_path, ["readings"], LIVE)
        live = eventually(lambda: ends_as(client, "live", full[-1]))
        assert live == full[-len(live) :]
        assert len(live) < len(full)

        hot = lines_of_run(server, tmp_path, ["readings"], HOT)
        answers = eventually(lambda: all_of(client, "hot", len(hot)))
        assert [each.line for each in answers] == hot
        both = lines_of_run(server, tmp_path, ["readings"], HOT, CHAINED)
        chained = [line for line in both if line.startswith(f'{{"query":"{EX}chained"')]
        # Its last window closes with the answer after it.
        got = eventually(lambda: all_of(client, "chained", len(chained) - 1))
        assert [each.line for each in got] == chained[: len(got)]

        with pytest.raises(ServerError, match="queries read its stream: chained"):
            client.delete("hot")
        for name in ("chained", "hot", "live", "top"):
            client.delete(name)
        client.delete_stream("readings")
        threads[0].join(30)
        assert not threads[0].is_alive()
        assert not list((server.data / "groups").iterdir())
        assert not list((server.data / "answers").iterdir())
        assert server.stop() == 0


def quietly(call, *arguments):
    try:
        return call(*arguments)
    except ServerError:
        return None


def all_of(client, name, count):
    """Return all answers of a query, once there are so many."""
    found = client.last(name, 10_000)
    return found if len(found) >= count else None


def ends_as(client, name, last):
    found = [each.line for each in client.last(name, 10_000)]
    return found if found and found[-1] == last else None
