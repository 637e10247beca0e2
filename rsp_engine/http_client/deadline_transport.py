"""An HTTP transport with a deadline for the whole exchange.

The timeout of a socket restarts with each byte, so a server that sends slowly can block a client
for as long as it likes. Here each read waits at most for the time left until the deadline; so do
the host lookup and the connection to each of its addresses.
"""

from __future__ import annotations

import io
import math
import socket
import threading
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Alarm", "DeadlineAdapter"]

_LONGEST_SECONDS = 86_400.0  # a socket takes no infinite timeout
_BUFFER_BYTES = 64 * 1024  # servers send small chunks: read several at once
Address = tuple[Any, ...]


@dataclass(slots=True)
class Alarm:
    """A deadline on a monotonic clock."""

    until: float = math.inf
    clock: Callable[[], float] = time.monotonic

    def left(self) -> float:
        """Return the seconds left; raise `TimeoutError` if there are none."""
        left = self.until - self.clock()
        if left <= 0:
            raise TimeoutError("no time is left")
        return min(left, _LONGEST_SECONDS)


class DeadlineAdapter(HTTPAdapter):
    """Gives every connection of a session the same deadline."""

    def __init__(self, alarm: Alarm) -> None:
        self._alarm = alarm
        # The endpoint decides on retries and counts them.
        super().__init__(pool_connections=1, pool_maxsize=1, max_retries=0)

    def init_poolmanager(self, *args: Any, **more: Any) -> None:  # noqa: ANN401 - as requests has it
        super().init_poolmanager(*args, **more)  # type: ignore[no-untyped-call, unused-ignore]
        alarm = self._alarm

        class Plain(_Timed, HTTPConnection):
            _alarm = alarm

        class Secure(_Timed, HTTPSConnection):
            _alarm = alarm

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}


class _Timed(HTTPConnection):
    """A connection with a deadline."""

    _alarm: Alarm

    def _new_conn(self) -> socket.socket:
        try:
            return _dial(self._dns_host, self.port or self.default_port, self._alarm)
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(self, "no time is left") from error
        except OSError as error:
            raise NewConnectionError(self, "no connection") from error

    def connect(self) -> None:
        super().connect()
        if self.sock is not None:
            self.sock = cast("socket.socket", _TimedSocket(self.sock, self._alarm))


class _TimedSocket:
    """A connected socket, plain or TLS, that sends and reads within the time left."""

    def __init__(self, inner: socket.socket, alarm: Alarm) -> None:
        self._inner = inner
        self._alarm = alarm

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of a socket
        return getattr(self._inner, name)

    def sendall(self, data: Any, flags: int = 0) -> None:  # noqa: ANN401 - any bytes-like object
        self._inner.settimeout(self._alarm.left())
        self._inner.sendall(data, flags)

    def makefile(self, mode: str, *_: object, **__: object) -> io.BufferedReader:
        if mode != "rb":
            raise ValueError("a connection is read as bytes")
        return io.BufferedReader(_TimedReader(self._inner, self._alarm), _BUFFER_BYTES)


class _TimedReader(io.RawIOBase):
    def __init__(self, inner: socket.socket, alarm: Alarm) -> None:
        super().__init__()
        self._socket = inner
        self._file = inner.makefile("rb", buffering=0)
        self._alarm = alarm

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401 - any writable buffer
        self._socket.settimeout(self._alarm.left())
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def _dial(host: str, port: int, alarm: Alarm) -> socket.socket:
    """Connect to the first address of a host that answers; each gets a share of the time left."""
    addresses = _look_up(host, port, alarm)
    failure: OSError = socket.gaierror(f"{host} has no address")
    for place, (family, kind, protocol, _, address) in enumerate(addresses):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(alarm.left() / (len(addresses) - place))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect(address)
            connection.settimeout(alarm.left())
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure


def _look_up(host: str, port: int, alarm: Alarm) -> Sequence[Address]:
    """Look up a host, in a thread: the system call has no timeout."""
    try:
        flags = socket.AI_NUMERICHOST
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except socket.gaierror:
        pass
    found: SimpleQueue[Sequence[Address] | OSError] = SimpleQueue()

    def look_up() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.put(error if isinstance(error, OSError) else socket.gaierror(str(error)))

    threading.Thread(target=look_up, daemon=True, name="look-up").start()
    try:
        answer = found.get(timeout=alarm.left())
    except Empty:
        raise TimeoutError("the look-up takes too long") from None
    if isinstance(answer, OSError):
        raise answer
    return answer
