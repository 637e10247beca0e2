"""Requests that must be refused, and the proof that nothing was opened for them."""

import errno
import http.client
import json
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.server.served import EX, Served, served

pytestmark = pytest.mark.outside

EVERYWHERE = "0.0.0.0"  # noqa: S104 - with a token
ALL = f"""PREFIX : <{EX}>
REGISTER RSTREAM :all AS SELECT ?s ?o
FROM NAMED WINDOW :w ON :readings [RANGE 10s STEP 10s] WHERE {{ WINDOW :w {{ ?s ?p ?o }} }}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "allowed").mkdir()
    (folder / "secret").mkdir()
    os.mkfifo(folder / "secret" / "graph.ttl")  # nobody reads it unless it is opened
    (folder / "allowed" / "link").symlink_to(folder / "secret")
    with served(folder, "--files", str(folder / "allowed")) as server:
        with server.client() as client:
            client.declare("readings", f"{EX}readings")
        yield server


def send(server: Served, method: str, path: str, body: object = None, **headers: str):
    """Send a request as it is, and return the status and the problem."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    usual = {} if data is None else {"Content-Type": "application/json"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, data, {**usual, **named})
        response = connection.getresponse()
        assert response.status >= 400 or response.status in (200, 201, 202, 204)
        kind = response.headers.get_content_type()
        text = response.read()
        return response.status, json.loads(text) if kind.endswith("json") else text
    finally:
        connection.close()


def is_unread(fifo: Path) -> bool:
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno == errno.ENXIO
    return False


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "a b"],
)
def test_a_foreign_host_is_refused(server, host):
    for path in ("/queries", "/", "/health", "/openapi.json"):
        assert send(server, "GET", path, Host=host)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_its_own_host_is_accepted(server, host):
    assert send(server, "GET", "/queries", Host=host)[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "file://", "http://localhost:1", "https://127.0.0.1"]
)
def test_a_foreign_origin_is_refused_and_changes_nothing(server, origin):
    body = {"name": "forged", "iri": f"{EX}forged"}
    assert send(server, "POST", "/streams", body, Origin=origin)[0] == 403
    assert send(server, "GET", "/queries", Origin=origin)[0] == 403
    assert send(server, "GET", "/streams/forged")[0] == 404


def test_a_form_of_another_page_cannot_declare_a_stream(server):
    body = b'{"name": "forged", "iri": "http://example.org/forged"}'
    assert send(server, "POST", "/streams", body, Content_Type="text/plain")[0] == 415
    across = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}
    assert send(server, "POST", "/streams", body, **across)[0] == 403
    assert send(server, "GET", "/streams/forged")[0] == 404


def graphs(path: object) -> dict[str, object]:
    text = ALL.replace("WHERE {", "FROM <urn:g> WHERE { ?a ?b ?c .", 1)
    return {"text": text, "graphs": {"urn:g": str(path)}}


@pytest.mark.parametrize(
    "path", ["secret/graph.ttl", "allowed/link/graph.ttl", "allowed/../secret/graph.ttl"]
)
def test_a_path_outside_the_allowed_folders_is_not_opened(server, path):
    folder = server.data.parent
    fifo = folder / "secret" / "graph.ttl"
    for where, body in (
        ("/queries", graphs(folder / path)),
        ("/validate", graphs(folder / path)),
        ("/explain", graphs(folder / path)),
        ("/streams", {"name": "file", "iri": f"{EX}file", "source": str(folder / path)}),
    ):
        status, problem = send(server, "POST", where, body)
        assert (status, "--files" in problem["hint"]) == (403, True)
    assert is_unread(fifo)


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_text_opens_no_file_by_itself(server, scheme):
    fifo = server.data.parent / "secret" / "graph.ttl"
    text = ALL.replace("WHERE {", f"FROM <{scheme}{fifo}> WHERE {{ ?a ?b ?c .", 1)
    for where in ("/queries", "/validate", "/explain"):
        status, answer = send(server, "POST", where, {"text": text})
        assert status in (403, 422) or not answer["ok"]
    assert is_unread(fifo)


def test_a_server_that_is_not_allowed_is_not_called(server):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        served_by = ALL.replace("?s ?p ?o }", "?s ?p ?o } SERVICE <urn:s> { ?s ?a ?b }", 1)
        bodies = [
            ("/queries", {"text": served_by, "services": {"urn:s": f"http://{place}/sparql"}}),
            ("/validate", {"text": served_by, "services": {"urn:s": f"http://{place}/sparql"}}),
        ]
        bodies += [
            ("/streams", {"name": "live", "iri": f"{EX}live", "source": f"{scheme}://{place}/t"})
            for scheme in ("mqtt", "ws", "sse+http", "kafka", "http", "tcp", "log")
        ]
        for path, body in bodies:
            assert send(server, "POST", path, body)[0] == 403, body
        assert (
            send(
                server, "POST", "/queries", {"text": served_by.replace("urn:s", f"http://{place}/")}
            )[0]
            >= 400
        )
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_no_python_comes_in(server, tmp_path):
    file = server.data.parent / "allowed" / "policy.py"
    file.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    body = {"text": ALL, "options": {"policy": f"{file}:MINE"}}
    for path in ("/queries", "/validate", "/explain"):
        assert send(server, "POST", path, body)[0] == 400
    for option in ("checkpoint", "dead_letter", "master", "conf"):
        assert send(server, "POST", "/queries", {"text": ALL, "options": {option: "x"}})[0] == 400
    assert not (tmp_path / "ran").exists()


def test_a_query_of_5_mb_is_refused(server):
    text = ALL + "#" * (5 << 20)
    for path in ("/queries", "/validate", "/explain"):
        assert send(server, "POST", path, {"text": text})[0] == 413
    assert send(server, "GET", "/queries") == (200, {"queries": []})


def test_a_huge_body_is_refused_whatever_it_says_of_its_length(server):
    path = "/streams/readings/elements"
    assert send(server, "POST", path, b"[]", Content_Length=str(1 << 40))[0] == 413
    with server.client() as client:
        assert client.streams()[0]["messages"] == 0

    def pieces():
        for _ in range(20):
            yield b" " * (1 << 20)

    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.request(
        "POST", path, pieces(), {"Content-Type": "application/json"}, encode_chunked=True
    )
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /queries HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"POST /queries HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /queries HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n",
    ],
    ids=["no host", "two hosts", "tls", "negative", "long path", "long header"],
)
def test_malformed_requests_are_refused_and_harm_nobody(server, data):
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), 30) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(1 << 16)
        except OSError:
            answer = b""
    assert not answer or answer.startswith(b"HTTP/1.1 4")
    assert send(server, "GET", "/queries")[0] == 200


def test_deep_json_is_refused(server):
    for body in (b"[" * 200_000, b'{"a":' * 100_000, b'{"text": "\\ud800"}', b"\xff\xfe", b"NaN"):
        for path in ("/queries", "/streams", "/validate"):
            assert send(server, "POST", path, body)[0] == 400
        assert send(server, "POST", "/streams/readings/elements", body)[0] in (400, 422)


def test_an_address_that_others_reach_needs_a_token(tmp_path):
    with (
        pytest.raises(AssertionError, match="a token is needed"),
        served(tmp_path, "--host", EVERYWHERE),
    ):
        pass
    token = "a-token-of-a-test-0123"  # noqa: S105
    with served(
        tmp_path,
        "--host",
        EVERYWHERE,
        environment={"RSP_SERVE_TOKEN": token},
    ) as server:
        server.url = server.url.replace(EVERYWHERE, "127.0.0.1")
        assert send(server, "GET", "/queries")[0] == 401
        assert send(server, "GET", "/metrics")[0] == 401
        assert send(server, "GET", "/health")[0] == 200
        wrong = token[:-1] + "4"
        assert send(server, "GET", "/queries", Authorization=f"Bearer {wrong}")[0] == 401
        assert send(server, "GET", "/queries", Authorization=f"Bearer {token}")[0] == 200
        assert send(server, "GET", "/queries", Cookie=f"rsp_token={token}")[0] == 200
        assert send(server, "POST", "/session", {"token": wrong})[0] == 401
        assert send(server, "POST", "/session", {"token": token})[0] == 204
        assert token not in server.messages


def test_what_is_no_longer_allowed_is_not_opened_by_the_next_start(tmp_path):
    (tmp_path / "files").mkdir()
    source = tmp_path / "files" / "readings.nq"
    source.write_text(f"<{EX}a> <{EX}b> 1 .\n")
    (tmp_path / "files" / "graph.ttl").write_text(f"<{EX}a> <{EX}b> 1 .\n")
    with served(tmp_path, "--files", str(tmp_path / "files")) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        client.submit(
            str(graphs("")["text"]), graphs={"urn:g": str(tmp_path / "files" / "graph.ttl")}
        )
        assert server.stop() == 0
        server._flags = ()
        with pytest.raises(AssertionError, match="is not in a folder that is allowed"):
            server.start()
        server._flags = ("--files", str(tmp_path / "files"))
        server.start()
        client.delete("all")
        assert client.queries() == []
