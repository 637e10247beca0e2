"""What the commands that talk to a server share: its address, and how its errors are shown."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine.cli.app import EXIT_USER_ERROR, exit_on_error
from rsp_engine.client import DEFAULT_SERVER, Client
from rsp_engine.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ServerFlag", "client_of"]

ServerFlag = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="RSP_SERVER",
        help="The address of the server; its token is in the variable RSP_SERVE_TOKEN.",
    ),
]
USUAL_SERVER = DEFAULT_SERVER


@contextmanager
def client_of(url: str) -> Iterator[Client]:
    """Yield a client of a server; print its errors, with the places in a query."""
    with exit_on_error(), Client(url) as client:
        try:
            yield client
        except ServerError as error:
            if not error.diagnostics:
                raise
            for each in error.diagnostics:
                hint = f"\n  = hint: {each['hint']}" if each.get("hint") else ""
                place = f"{each['line']}:{each['column']}"
                typer.echo(f"{place}: {each['severity']}: {each['message']}{hint}", err=True)
            raise typer.Exit(EXIT_USER_ERROR) from None
