"""A secret in the address of a stream is sent to its server, and written down nowhere."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from rsp_engine.monitor.redaction import fingerprint
from tests.cli.test_run import rsp
from tests.io.live.servers import free_port, wait_for_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN, OTHER, VALUE = "canary-t0ken-1", "canary-t0ken-2", "canary-value-3"
QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :hot AS SELECT ?room ?t
FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t } }
"""
GRAPH = "<http://example.org/a> <http://example.org/temperature> 20 ."
LINES = [json.dumps({"timestamp": at, "graph": GRAPH}) for at in (1_000, 11_000, 21_000)]
LINES[1:1] = ["garbage"]


class Server(BaseHTTPRequestHandler):
    """A server of a stream, as lines or as events, to requests with a token."""

    def do_GET(self) -> None:
        is_known = TOKEN in self.path or OTHER in self.path
        self.send_response(200 if is_known else 403)
        is_feed = self.path.startswith("/feed")
        self.send_header("Content-Type", "text/event-stream" if is_feed else "text/plain")
        self.end_headers()
        if is_known:
            form = "data: {}\n\n" if is_feed else "{}\n"
            self.wfile.write("".join(map(form.format, LINES)).encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def http_server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving.server_port
        serving.shutdown()
        thread.join()


@contextmanager
def websocket_server() -> Iterator[int]:
    from websockets.asyncio.server import ServerConnection, serve

    port, loop = free_port(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def push(connection: ServerConnection) -> None:
        assert connection.request is not None
        assert TOKEN in connection.request.path or OTHER in connection.request.path
        for text in LINES:
            await connection.send(text)
        await connection.wait_closed()

    async def main() -> None:
        async with serve(push, "127.0.0.1", port):
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    wait_for_port(port)
    yield port
    loop.call_soon_threadsafe(over.set)
    thread.join()
    loop.close()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rspql").write_text(QUERY)
    return tmp_path


SERVERS = {"http": http_server, "sse+http": http_server, "ws": websocket_server}


def address(scheme: str, port: int, token: str, value: str = VALUE) -> str:
    path = "lines.jsonl" if scheme == "http" else "feed"
    return f":s={scheme}://127.0.0.1:{port}/{path}?token={token}&room={value}?"


def written(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(f.relative_to(folder)): f.read_bytes().decode(errors="replace") for f in files}


@pytest.mark.parametrize("scheme", SERVERS)
def test_a_token_in_the_address_of_a_stream_is_written_nowhere(here, scheme, caplog):
    run = ["run", "q.rspql", "--runner", "local", "--checkpoint", "state"]
    run += ["--output", "answers.jsonl", "--dead-letters", "dead.jsonl", "--manifest", "run.json"]
    run += [] if scheme == "http" else ["--for", "2s"]
    with SERVERS[scheme]() as port:
        done = rsp(*run, "--stream", address(scheme, port, TOKEN))
        assert done.exit_code == 0, done.output
        again = rsp(*run, "--stream", address(scheme, port, OTHER))
        assert again.exit_code == 0, "a new token goes on with the checkpoint"
        other = rsp(*run, "--stream", address(scheme, port, OTHER, "8"))
    assert other.exit_code in (2, 3)
    assert "is the checkpoint of another run: its sources differs" in other.stderr
    texts = written(here)
    assert "?token=***&room=***" in texts["dead.jsonl"]
    assert "?token=***&room=~" in texts["state/run.json"]
    assert "?token=***&room=***" in texts["run.json"]
    shown = [*texts.values(), done.output, again.output, other.output, caplog.text]
    for secret in (TOKEN, OTHER, VALUE):
        assert [name for name, text in texts.items() if secret in text] == []
        assert not any(secret in text for text in shown)


@pytest.mark.parametrize(
    "source",
    [
        "http://127.0.0.1:{}/a.jsonl?token={}?",
        "http://127.0.0.1:{}/a?token={}?",
        "http://127.0.0.1:{}/a.jsonl?token={}?speed=1",
        "ws://127.0.0.1:{}/a?token={}?format=none",
        "ws://127.0.0.1:{}/a?token={}?idle=soon",
        "mqtt://127.0.0.1:{}/?token={}?",
        "wss:///a{}?token={}?",
        "http://ann:{1}@127.0.0.1:{0}/a.jsonl",
        "ws://ann:{1}@127.0.0.1:{0}/a",
        "gopher://127.0.0.1:{}/a.jsonl?token={}?",
    ],
)
def test_a_token_is_not_in_what_is_said_of_an_address_that_is_refused(here, source):
    done = rsp("run", "q.rspql", "--stream", f":s={source.format(free_port(), TOKEN)}")
    assert done.exit_code == 2, done.output
    assert TOKEN not in done.output


def test_a_server_that_is_away_is_told_without_the_token(here, caplog):
    for scheme in ("ws", "sse+http", "mqtt"):
        url = f":s={scheme}://127.0.0.1:{free_port()}/feed?token={TOKEN}?"
        assert rsp("run", "q.rspql", "--stream", url, "--for", "500ms").exit_code == 0
    assert "cannot be reached" in caplog.text
    assert "?token=***" in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("ws://h/a?token=1", "ws://h/a?token=2", True),
        ("ws://h/a?api_key=1&room=7", "ws://h/a?api_key=2&room=7", True),
        ("ws://ann:x@h/a", "ws://bob:y@h/a", True),
        ("ws://h/a?room=7", "ws://h/a?room=8", False),
        ("ws://h/a?author=7", "ws://h/a?author=8", False),
        ("ws://h/a?7", "ws://h/a?8", False),
        ("ws://h/a", "ws://h/b", False),
    ],
)
def test_a_secret_does_not_tell_a_source_from_another_and_all_else_does(one, other, are_same):
    assert (fingerprint(one) == fingerprint(other)) == are_same
