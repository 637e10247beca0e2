"""Canaries: secrets of URLs and of the environment appear in no view, metric or manifest."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest
import requests

from tests.cli.terminals import on_a_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN, KEY, FEED, NAME = "canaryTOKEN1", "canaryKEY2", "canaryFEED3", "canaryNAME4"
CANARIES = (TOKEN, KEY, FEED, NAME)
QUERY = f"""PREFIX : <http://example.org/>
REGISTER RSTREAM <http://ann:{NAME}@example.org/best> AS
SELECT ?room ?floor
FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
WHERE {{
  WINDOW :w {{ ?room :temperature ?t }}
  SERVICE <http://ann:{NAME}@example.org/plan> {{ ?room :floor ?floor }}
}}
ORDER BY DESC(?t) LIMIT 3
"""
ROOM = "http://example.org/room"
ELEMENTS = [
    {"timestamp": at, "graph": f"<{ROOM}> <http://example.org/temperature> 20 ."}
    for at in (1_000, 11_000, 21_000)
]
ANSWER = {"type": "literal", "value": "3", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}


class Server(BaseHTTPRequestHandler):
    """A server of a stream to requests with one secret, and of SPARQL to requests with two."""

    asked: list[str] = []  # noqa: RUF012 - of the whole test

    def do_GET(self) -> None:
        self._send("".join(f"{json.dumps(e)}\n" for e in ELEMENTS) if FEED in self.path else "")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        is_known = KEY in self.path and self.headers["Authorization"] == f"Bearer {TOKEN}"
        self.asked.append("known" if is_known else "unknown")
        names = re.findall(r"\?(\w+)", parse_qs(body)["query"][0].partition("WHERE")[0])
        values = {"place": {**ANSWER, "value": "0"}, "floor": ANSWER}
        values["room"] = {"type": "uri", "value": ROOM}
        row = {name: values[name] for name in names}
        self._send(json.dumps({"head": {"vars": names}, "results": {"bindings": [row]}}))

    def _send(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/sparql-results+json")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving.server_port
        serving.shutdown()
        thread.join()


@pytest.fixture
def scraped(monkeypatch):
    """Read the metrics as soon as the terminal tells where they are."""
    texts: list[str] = []

    def scrape(port: int) -> None:
        texts.append(requests.get(f"http://127.0.0.1:{port}/metrics", timeout=30).text)

    return texts, scrape


def test_no_secret_is_seen_counted_or_written_down(tmp_path, monkeypatch, scraped):
    texts, scrape = scraped
    monkeypatch.chdir(tmp_path)
    (tmp_path / "best.rspql").write_text(QUERY)
    with server() as port:
        url = f"http://127.0.0.1:{port}"
        done = on_a_terminal(
            "run",
            "best.rspql",
            *("--stream", f":s={url}/s.jsonl?token={FEED}?"),
            *("--service", f"http://ann:{NAME}@example.org/plan={url}/sparql?key={KEY}"),
            *("--manifest", "run.json", "--metrics-port", "0", "--speed", "10"),
            environment={f"RSP_SERVICE_127_0_0_1_{port}_TOKEN": TOKEN},
            meanwhile=lambda seen: (
                scrape(int(found[1]))
                if (found := re.search(rb"127\.0\.0\.1:(\d+)/metrics", seen))
                and b"1 window" in seen
                and not texts
                else None
            ),
        )
    seen, written = done.seen.decode(), (tmp_path / "run.json").read_text()
    assert done.code == 0, seen
    assert set(Server.asked) == {"known"}, "the secrets were used, all of them"
    told = json.loads(written)
    assert told["state"] == "finished"
    assert told["queries"][0]["windows"] == 3
    assert f"{url}/sparql?key=***" in written
    assert f"{url}/s.jsonl?token=***" in written
    assert "***@example.org/best" in seen
    assert 'rsp_windows_total{query="http://***@example.org/best"}' in texts[0]
    for place in (seen, written, texts[0]):
        assert [canary for canary in CANARIES if canary in place] == []


def test_no_secret_is_in_the_error_of_a_manifest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{TOKEN}").mkdir()
    (tmp_path / "s.jsonl").write_text(json.dumps(ELEMENTS[0]))
    output = tmp_path / TOKEN / "full"
    output.symlink_to("/dev/full")
    query = re.sub(r"  SERVICE .*", "  OPTIONAL { ?room :floor ?floor }", QUERY)
    (tmp_path / "best.rspql").write_text(query)
    done = on_a_terminal(
        *("run", "best.rspql", "--stream", ":s=s.jsonl", "--output", str(output)),
        *("--manifest", "run.json"),
        environment={"RSP_SERVICE_E_ORG_TOKEN": TOKEN},
    )
    told = json.loads((tmp_path / "run.json").read_text())
    assert done.code == 3
    assert told["error"].endswith("/***/full cannot be written: No space left on device")
    assert TOKEN not in json.dumps(told)
