"""The HTTP endpoint over TLS: in time, over one connection, and only with servers it knows."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from rsp_engine.errors import ServiceError
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, Limits
from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint
from tests.patience import stopwatch
from tests.replica.fault_server import Exchange, FaultServer
from tests.replica.patterns import FOLLOWERS, count, insert, user, users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")

TRUTH = {user(n): (count(n),) for n in range(8)}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a certificate of its own for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made, key, both = folder / "made.pem", folder / "key.pem", folder / "both.pem"
    line = (
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        f" -subj /CN=test -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {made}"
    )
    subprocess.run(  # noqa: S603 - a program of the system
        [OPENSSL or "", *line.split(" ")],
        check=True,
        capture_output=True,
    )
    both.write_text(key.read_text() + made.read_text())
    return both


@pytest.fixture
def serve(certificate: Path) -> Iterator[Callable[..., FaultServer]]:
    started: list[FaultServer] = []

    def start(behave: Callable[[Exchange], None] = Exchange.answer) -> FaultServer:
        server = FaultServer(behave)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        server.url = server.url.replace("http:", "https:")
        server.store.update(insert(8))
        started.append(server.__enter__())
        return server

    yield start
    for server in started:
        server.__exit__()


def endpoint(server: FaultServer, ca_file: Path | None) -> HttpEndpoint:
    config = HttpConfig(allowed=(server.url,), ca_file=None if ca_file is None else str(ca_file))
    return HttpEndpoint(server.url, FOLLOWERS, config, {})


def test_fetches_go_over_one_secured_connection(serve, certificate):
    server = serve()
    remote = endpoint(server, certificate)
    for _ in range(3):
        assert remote.fetch(users(8), Limits(deadline_ms=5000), 0).answers == TRUTH
    remote.close()
    assert server.connections == 1


def test_a_drip_of_secured_bytes_does_not_pass_the_deadline(serve, certificate):
    def drip(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": "5000"})
        exchange.drip(b"{" * 5000, 0.02)

    server = serve(drip)
    remote = endpoint(server, certificate)
    with stopwatch() as seconds:
        got = remote.fetch(users(8), Limits(deadline_ms=400), 0)
        assert seconds() < 0.4 + 0.2
    assert got.faults == {"time-out": 1}
    remote.close()


def test_a_server_whose_certificate_nobody_knows_is_not_asked(serve):
    server = serve()
    remote = endpoint(server, None)
    got = remote.fetch(users(8), UNLIMITED, 0)
    remote.close()
    assert (got.answers, got.faults) == ({}, {"TLS": 1})
    assert server.queries == []


def test_a_handshake_that_never_comes_does_not_pass_the_deadline(certificate):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        config = HttpConfig(allowed=(url,), ca_file=str(certificate))
        remote = HttpEndpoint(url, FOLLOWERS, config, {})
        with stopwatch() as seconds:
            got = remote.fetch(users(1), Limits(deadline_ms=300), 0)
            assert seconds() < 0.3 + 0.2
    assert got.faults == {"time-out": 1}


def test_a_file_of_certificates_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ServiceError, match="ca_file names no file"):
        HttpConfig(allowed=("https://a.org",), ca_file=str(tmp_path / "none.pem"))
