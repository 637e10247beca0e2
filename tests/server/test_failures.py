"""What fails around the service: its disk, its memory, its time, its clients, another server."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
import requests

from rsp_engine.errors import ServerError
from tests.server.served import EX, eventually, served
from tests.thoroughness import TIMES

pytestmark = pytest.mark.outside

PREFIX = f"PREFIX : <{EX}>\n"
COUNT = f"""{PREFIX}REGISTER RSTREAM :count AS SELECT (COUNT(*) AS ?n)
FROM NAMED WINDOW :w ON :readings [RANGE 1s STEP 1s] WHERE {{ WINDOW :w {{ ?s ?p ?o }} }}"""
ENDLESS = f"""{PREFIX}REGISTER RSTREAM :endless AS SELECT (COUNT(*) AS ?n)
FROM NAMED WINDOW :w ON :readings [RANGE 1s STEP 1s]
WHERE {{ WINDOW :w {{ {" ".join(f"?s{i} ?p{i} ?o{i} ." for i in range(9))}
FILTER (?o0 + ?o1 + ?o2 + ?o3 + ?o4 + ?o5 + ?o6 + ?o7 + ?o8 < 0) }} }}"""
GREEDY = f"""{PREFIX}REGISTER RSTREAM :greedy AS SELECT ?o0 ?o1 ?o2 ?o3
FROM NAMED WINDOW :w ON :readings [RANGE 1s STEP 1s]
WHERE {{ WINDOW :w {{ ?s0 ?p0 ?o0 . ?s1 ?p1 ?o1 . ?s2 ?p2 ?o2 . ?s3 ?p3 ?o3 }} }}
ORDER BY ?o0 ?o1 ?o2 ?o3"""


def elements(begin, end, step=20):
    return [
        (1_000 + step * number, f"<{EX}s{number}> <{EX}p> {number} .")
        for number in range(begin, end)
    ]


def lines(client, name):
    return [each.line for each in client.last(name, 10_000)]


@pytest.mark.parametrize(
    ("text", "flags", "reason"),
    [
        (ENDLESS, ("--evaluation", "2s"), "an evaluation took more than"),
        (GREEDY, ("--memory", str(220 << 20)), "bytes of memory"),
    ],
    ids=["endless", "greedy"],
)
def test_a_query_that_takes_too_much_fails_alone_and_the_others_go_on(
    tmp_path, text, flags, reason
):
    with served(tmp_path, *flags) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        client.submit(COUNT, start="earliest")
        bad = client.submit(text, start="earliest")["name"]
        eventually(lambda: client.query(bad)["state"] == "running")
        client.push("readings", elements(0, 200))
        troubled = eventually(lambda: (found := client.query(bad))["reason"] and found)
        assert reason in troubled["reason"]
        client.push("readings", elements(200, 400))
        eventually(lambda: len(lines(client, "count")) >= 7)
        failed = eventually(
            lambda: (found := client.query(bad))["state"] == "failed" and found, patience=240
        )
        assert reason in failed["reason"]
        assert "times at the same place" in failed["reason"]
        assert failed["status"]["pid"] is None
        good = client.query("count")
        assert (good["state"], good["status"]["restarts"]) == ("running", 0)
        client.delete(bad)
        client.push("readings", elements(400, 500))
        eventually(lambda: len(lines(client, "count")) >= 9)


@pytest.mark.skipif(TIMES == 1, reason="takes long: make soak PART=service")
def test_a_slow_client_is_told_to_resume_and_loses_nothing(tmp_path):
    with served(tmp_path) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        wide = COUNT.replace("(COUNT(*) AS ?n)", "?s ?o").replace(":count", ":wide")
        client.submit(wide, start="earliest")
        place = urlsplit(server.url)
        with socket.create_connection((place.hostname, place.port)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(
                b"GET /queries/wide/answers?after=0 HTTP/1.1\r\nHost: localhost\r\n"
                b"Accept: text/event-stream\r\n\r\n"
            )
            for begin in range(0, 40_000, 4_000):  # some MB of answers
                client.push("readings", elements(begin, begin + 4_000, 2))
            expected = eventually(lambda: (found := lines(client, "wide"))[78:] and found)
            # Others are not held up.
            followed = []
            for answer in client.answers("wide", after=0):
                followed.append(answer.line)
                if len(followed) == len(expected):
                    break
            assert followed == expected
            time.sleep(35)  # the server gives up after 30 s
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            slow.settimeout(60)
            received = b""
            while piece := slow.recv(1 << 20):
                received += piece
        ids = [int(line[4:]) for line in received.split(b"\n") if line.startswith(b"id: ")]
        complete = received.count(b"event: answer\ndata: ")
        assert 0 < complete < len(expected)
        rest = []
        for answer in client.answers("wide", after=ids[complete - 2]):
            rest.append(answer.line)
            if answer.id == len(expected):
                break
        assert rest == expected[ids[complete - 2] :]


def test_a_second_server_on_the_same_data_is_refused(tmp_path):
    with served(tmp_path) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        second = subprocess.run(  # noqa: S603 - it is our own
            [sys.executable, "-m", "rsp_engine.cli", "serve", "--data", server.data, "--port", "0"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert second.returncode == 2
        assert "is the data folder of a server that is still active" in second.stderr
        assert [stream["name"] for stream in client.streams()] == ["readings"]


def test_a_full_disk_loses_nothing_that_was_taken(tmp_path):
    """No file may grow beyond a limit: the server answers 507, and goes on when there is room."""
    limit = 64 << 10
    with served(tmp_path) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        client.submit(COUNT, start="earliest")
        eventually(lambda: client.query("count")["state"] == "running")
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        taken, status = 0, 202
        while status == 202:
            body = "".join(
                json.dumps({"timestamp": time, "graph": graph}) + "\n"
                for time, graph in elements(taken, taken + 100)
            )
            answer = requests.post(
                f"{server.url}/streams/readings/elements",
                body,
                headers={"Content-Type": "application/x-ndjson"},
                timeout=60,
            )
            status = answer.status_code
            taken += 100 if status == 202 else 0
        assert status == 507
        assert "room" in answer.json()["detail"]
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert client.streams()[0]["messages"] == taken > 0
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        client.push("readings", elements(taken, 1_000))
        server.kill()
        server.start()
        assert client.streams()[0]["messages"] == 1_000
        eventually(lambda: len(lines(client, "count")) >= 19)
        counts = [
            json.loads(line)["rows"][0]["bindings"]["n"]["value"] for line in lines(client, "count")
        ]
        assert sum(map(int, counts)) == 950 + 1  # (open, close]: the first window has one element


def test_a_worker_without_room_waits_and_goes_on(tmp_path):
    with served(tmp_path) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        client.submit(COUNT, start="earliest")
        eventually(lambda: client.query("count")["state"] == "running")
        pid = client.query("count")["status"]["pid"]
        [log] = (tmp_path / "data").glob("groups/*/worker.log")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (400, resource.RLIM_INFINITY))
        client.push("readings", elements(0, 1_000))
        eventually(lambda: "cannot be written" in log.read_text(encoding="utf-8"))
        assert lines(client, "count") == []
        with suppress(ProcessLookupError):  # it was started again, and has room
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        eventually(lambda: len(lines(client, "count")) >= 19)
        assert client.query("count")["state"] == "running"


def test_a_worker_that_others_kill_again_and_again_goes_on(tmp_path):
    with served(tmp_path) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        client.submit(COUNT, start="earliest")
        for number in range(3):
            pid = eventually(
                lambda: (
                    (found := client.query("count"))["state"] == "running"
                    and found["status"]["pid"]
                )
            )
            os.kill(pid, signal.SIGKILL)
            client.push("readings", elements(100 * number, 100 * number + 100))
        eventually(lambda: len(lines(client, "count")) >= 5)
        ids = [each.id for each in client.last("count", 100)]
        assert ids == list(range(1, len(ids) + 1))


def test_a_change_that_is_refused_leaves_things_as_they_were(tmp_path):
    with served(tmp_path) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        client.submit(COUNT, start="earliest", group="one")
        client.push("readings", elements(0, 100))
        eventually(lambda: lines(client, "count"))
        with pytest.raises(ServerError, match="two queries of the group"):
            client.submit(COUNT, name="other", start=500, group="one")
        with pytest.raises(ServerError, match="queries read readings"):
            client.delete_stream("readings")
        with pytest.raises(ServerError, match="another query count"):
            client.submit(COUNT.replace("1s", "2s"), name="count")
        same = client.submit(COUNT, name="same", start="earliest", group="one")
        assert same["equal_to"] == "count"
        client.delete("count")
        client.push("readings", elements(100, 200))
        eventually(lambda: len(lines(client, "same")) >= 3)
        server.stop()
        server.start()
        client.push("readings", elements(200, 300))
        found = eventually(lambda: (all_of := lines(client, "same"))[4:] and all_of)
        assert all(line.startswith(f'{{"query":"{EX}count"') for line in found)
        assert server.stop() == 0
