"""HTTP inputs, from a local server."""

from __future__ import annotations

import gc
import gzip
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rsp_engine.errors import SourceError
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.files import web
from rsp_engine.model.streams import Element
from tests.io.sources.reading import read

LINES = b"".join(b'{"timestamp": %d, "graph": ""}\n' % time for time in range(3))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.received.append((self.path, self.headers["Accept-Encoding"]))
        self.close_connection = True
        match self.path.partition("?")[0]:
            case "/moved.jsonl":
                self.redirect("/a.jsonl")
            case "/loop.jsonl":
                self.redirect("/loop.jsonl")
            case "/away.jsonl":
                self.redirect(f"http://localhost.example:{self.server.server_port}/a.jsonl")
            case "/nowhere.jsonl":
                self.redirect("http://127.0.0.1:99999/a.jsonl")
            case "/port.jsonl":
                self.redirect("http://127.0.0.1:1/a.jsonl")
            case "/a.jsonl" | "/feed":
                self.answer(LINES)
            case "/a.jsonl.gz":
                self.answer(gzip.compress(LINES), {"Content-Encoding": "gzip"})
            case "/packed.jsonl":
                self.answer(LINES, {"Content-Encoding": "br"})
            case "/cut.jsonl":
                self.answer(LINES, size=len(LINES) + 50)
            case "/chunked.jsonl":
                self.answer_in_chunks()
            case "/silent.jsonl":
                self.answer(LINES, size=len(LINES) + 50, wait=True)
            case _:
                self.send_error(404)

    def redirect(self, target):
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, body, headers=(), size=None, wait=False):
        self.send_response(200)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(size or len(body)))
        self.end_headers()
        self.wfile.write(body)
        if wait:
            self.server.has_given_up = not self.server.stopping.wait(10)

    def answer_in_chunks(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(LINES), 10):
            part = LINES[at : at + 10]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.received = []
        self.stopping = threading.Event()
        self.has_given_up = False
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_):
        """Ignore a client that closes the connection."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.stopping.set()
    running.shutdown()
    thread.join(10)
    running.server_close()


def test_a_stream_that_is_never_read_leaves_no_connection(server, monkeypatch):
    troubles: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", troubles.append)
    cycle: list[object] = [open_source(f"{server.url}/a.jsonl")]
    cycle.append(cycle)  # only the garbage collector frees it
    del cycle
    gc.collect()
    assert not troubles


@pytest.mark.parametrize("path", ["/a.jsonl", "/a.jsonl.gz", "/moved.jsonl", "/chunked.jsonl"])
def test_a_stream_is_read_from_the_web(server, path):
    elements, letters = read(server.url + path)
    assert [element.timestamp for element in elements] == [0, 1, 2]
    assert {element.source for element in elements} == {server.url + path}
    assert letters == []


def test_a_url_keeps_a_query_of_its_own(server):
    assert len(read(f"{server.url}/feed?room=7&x=%20?format=jsonl")[0]) == 3
    assert server.received == [("/feed?room=7&x=%20", "identity")]


def test_the_server_is_asked_once_for_each_reading(server):
    source = open_source(f"{server.url}/a.jsonl")
    assert len(server.received) == 1
    assert len(list(source)) == 3
    assert len(server.received) == 1
    assert len(list(source)) == 3
    assert len(server.received) == 2


def test_a_connection_that_breaks_is_reported_and_what_came_before_is_kept(server):
    elements, letters = read(f"{server.url}/cut.jsonl")
    assert [element.timestamp for element in elements] == [0, 1, 2]
    assert [letter.position for letter in letters] == [4]
    assert letters[0].reason.startswith("the connection broke: ")


def test_an_element_is_given_as_soon_as_it_has_come(server):
    stream = iter(open_source(f"{server.url}/silent.jsonl"))
    elements = [next(stream) for _ in range(3)]
    assert all(isinstance(element, Element) for element in elements)
    assert not server.has_given_up
    server.stopping.set()
    assert [letter.position for letter in stream] == [4]


def test_a_server_that_falls_silent_is_given_up(server, monkeypatch):
    monkeypatch.setattr(web, "SILENCE_SECONDS", 0.2)
    elements, letters = read(f"{server.url}/silent.jsonl")
    assert len(elements) == 3
    assert [letter.reason for letter in letters] == ["the server has been silent for 0.2 s"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/none.jsonl", "it answers 404 Not Found"),
        ("/away.jsonl", "it redirects to http://localhost.example:"),
        ("/port.jsonl", "it redirects to http://127.0.0.1:1/a.jsonl"),
        ("/nowhere.jsonl", "it redirects to http://127.0.0.1:99999/a.jsonl"),
        ("/loop.jsonl", "it redirects more than 5 times"),
        ("/packed.jsonl", "its response has the encoding br"),
    ],
)
def test_what_cannot_be_had_is_refused_when_it_is_opened(server, path, message):
    with pytest.raises(SourceError) as refusal:
        open_source(server.url + path)
    assert message in refusal.value.message


def test_a_server_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        with pytest.raises(SourceError, match=r"it cannot be reached: .*refused"):
            open_source(f"http://127.0.0.1:{port}/a.jsonl")
