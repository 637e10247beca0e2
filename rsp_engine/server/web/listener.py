"""The server: its sockets, its signals, and the service behind it."""

from __future__ import annotations

import logging
import os
import re
import resource
import signal
import socket
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import uvicorn

from rsp_engine.errors import BindingError
from rsp_engine.server.access import Access
from rsp_engine.server.service import StreamService
from rsp_engine.server.web.app import application
from rsp_engine.server.web.guard import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rsp_engine.server.options import ServeOptions

__all__ = ["TOKEN", "serve"]

TOKEN = "RSP_SERVE_TOKEN"  # noqa: S105 - the name of a variable
_SHORTEST_TOKEN = 16
_TOKEN_FORM = re.compile(rf"[A-Za-z0-9._~+/=-]{{{_SHORTEST_TOKEN},}}")
_GRACE_S = 3
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(
    options: ServeOptions,
    ready: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Serve until a signal stops the server; `ready` is called with its address."""
    token = _token(options, environment)
    if (options.certificate is None) != (options.key is None):
        raise BindingError("--certificate and --key belong together", "name both files")
    access = Access(options)
    _allow_open_files()
    bound = _bound(options)
    service = StreamService(options, access)
    try:
        names = {name.lower() for name in options.trusted_host} | {"localhost", options.host}
        app = application(service, token, frozenset(names))
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,
            server_header=False,
            ssl_certfile=options.certificate,
            ssl_keyfile=options.key,
            timeout_graceful_shutdown=_GRACE_S,
            lifespan="on",
        )
        server = _Server(config, service)
        host, port = bound.getsockname()[:2]
        scheme = "http" if options.certificate is None else "https"
        shown = f"[{host}]" if ":" in host else host
        server.announce = lambda: ready(f"{scheme}://{shown}:{port}")
        server.run(sockets=[bound])
    finally:
        service.close()


class _Server(uvicorn.Server):
    """A server that ends event streams before it waits for its connections."""

    announce: Callable[[], None]

    def __init__(self, config: uvicorn.Config, service: StreamService) -> None:
        super().__init__(config)
        self._service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on the first signal, as asked; uvicorn would raise it again at the end."""
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self.started:
            self.announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and end all event streams."""
        self._service.is_stopping = True
        await super().shutdown(sockets)


def _token(options: ServeOptions, environment: Mapping[str, str]) -> str | None:
    token = environment.get(TOKEN) or None
    if token is None and not is_loopback(options.host):
        raise BindingError(
            f"others can reach {options.host}, so a token is needed",
            f"set the variable {TOKEN}, and send it: Authorization: Bearer TOKEN",
        )
    if token is not None and not _TOKEN_FORM.fullmatch(token):
        hint = f"take {_SHORTEST_TOKEN} letters, digits and . _ ~ + / = - or more"
        raise BindingError(f"{TOKEN} is too short to be secret, or has other characters", hint)
    return token


def _allow_open_files() -> None:
    """Take as many open files as the system allows: each stream has some, and each client one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _bound(options: ServeOptions) -> socket.socket:
    """Return a socket that is bound to the address; raise `BindingError` if it cannot be."""
    try:
        family, kind, *_, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM
        )[0]
        bound = socket.socket(family, kind)
        if sys.platform != "win32":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"the server cannot listen on {options.host}:{options.port}: {reason}"
        raise BindingError(message, "choose another port; 0 takes a free one") from None
    bound.setblocking(False)
    return bound
