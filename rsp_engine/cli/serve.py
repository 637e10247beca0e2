"""`rsp serve`: a service of streams and queries that come and go."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from importlib.util import find_spec

import typer

from rsp_engine.cli.app import GroupedCommand, command_app, exit_on_error
from rsp_engine.cli.flag_signature import takes_flags
from rsp_engine.errors import BindingError
from rsp_engine.model.extras import install_command
from rsp_engine.server.options import ServeOptions

__all__ = ["check_installed"]


@dataclass(frozen=True, kw_only=True)
class ServeFlags:
    """The flags of `rsp serve`."""

    service: ServeOptions


app = command_app()


@app.command("serve", cls=GroupedCommand)
@takes_flags(ServeFlags)
def serve_streams(flags: ServeFlags) -> None:
    """Serve streams and queries that come and go over HTTP, and a console for browsers.

    What is declared and registered is kept in the data folder: the next start goes on with it.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    with exit_on_error():
        check_installed("rsp serve")
        from rsp_engine.server.web.listener import serve

        serve(flags.service, _announce)


def check_installed(command: str) -> None:
    """Raise `BindingError` if the packages of the extra `serve` are missing."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        hint = f"install it: {install_command('serve')}"
        raise BindingError(f"{command} needs the extra serve", hint)


def _announce(address: str) -> None:
    typer.echo(f"serving on {address}", err=True)
