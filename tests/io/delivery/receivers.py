"""The other sides of sinks, as programs of their own kind: each can go away and come back."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sysconfig
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import paho.mqtt.client as mqtt
import requests
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.io.live.servers import Mosquitto, free_port, wait_for_port

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GraphServer", "Received", "Subscriber", "WebhookServer", "accept", "until"]


class Received(NamedTuple):
    """A message that has arrived."""

    id: str
    body: bytes
    headers: dict[str, str]


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.005)


def accept(request: BaseHTTPRequestHandler) -> None:
    """Answer that a message was taken."""
    request.send_response(204)
    request.end_headers()


class WebhookServer:
    """A server that lists what is posted to it; a behaviour answers each request."""

    def __init__(self, behave: Callable[[Any], None] = accept) -> None:
        self.port = free_port()
        self.behave = behave
        self.received: list[Received] = []
        """What was accepted."""
        self.requests = 0
        self._connections: list[socket.socket] = []
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        outer = self

        class Request(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                body = self.rfile.read(size)
                if len(body) < size:
                    return  # the sender was killed
                outer.requests += 1
                self.status = 0
                with suppress(BrokenPipeError, ConnectionResetError):
                    outer.behave(self)
                if 200 <= self.status < 300:
                    name = self.headers.get("RSP-Delivery-Id", "")
                    outer.received.append(Received(name, body, dict(self.headers)))

            def send_response(self, code: int, message: str | None = None) -> None:
                self.status = code
                super().send_response(code, message)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_: object) -> None:
                pass

            def process_request(self, request: Any, client_address: Any) -> None:
                outer._connections.append(request)
                super().process_request(request, client_address)

        self._server = Server(("127.0.0.1", self.port), Request)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def use_tls(self, certificate: Path) -> None:
        """Take encrypted connections only, with a certificate and its key."""
        assert self._server is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._connections.clear()
            self._server = None


class Subscriber:
    """A client of a broker that lists the messages of a topic; its session survives the broker."""

    def __init__(self, broker: Mosquitto, topic: str) -> None:
        self.received: list[Received] = []
        self.retained: list[Received] = []
        """Messages that the broker had kept from before."""
        self._topic = topic
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2, "listener", protocol=MQTTProtocolVersion.MQTTv5
        )
        self._client.reconnect_delay_set(1, 1)
        self._client.on_message = self._take
        self._client.on_connect = self._subscribe
        self._subscribed = threading.Event()
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        kept = Properties(PacketTypes.CONNECT)
        kept.SessionExpiryInterval = 3600
        self._client.connect("127.0.0.1", broker.port, clean_start=False, properties=kept)

    def __enter__(self) -> Self:
        self._client.loop_start()
        assert self._subscribed.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _subscribe(self, client: mqtt.Client, *_: object) -> None:
        client.subscribe(self._topic, qos=1)

    def _take(self, _client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        properties = message.properties
        pairs = dict(getattr(properties, "UserProperty", []))
        kind = {"Content-Type": str(getattr(properties, "ContentType", ""))}
        one = Received(pairs.get("id", ""), bytes(message.payload), kind)
        (self.retained if message.retain else self.received).append(one)


class GraphServer:
    """`oxigraph serve` with its data on disk, so that it can go away and come back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"sparql+http://127.0.0.1:{self.port}/update"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        binary = Path(sysconfig.get_path("scripts")) / "oxigraph"
        bind = f"127.0.0.1:{self.port}"
        self._process = subprocess.Popen(  # noqa: S603 - our own server
            [binary, "serve", "--location", str(self._folder), "--bind", bind],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for_port(self.port)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def quads(self) -> set[str]:
        """Return the lines of all graphs as N-Quads."""
        url = f"http://127.0.0.1:{self.port}/store"
        found = requests.get(url, headers={"Accept": "application/n-quads"}, timeout=30)
        found.raise_for_status()
        return set(found.text.splitlines())
