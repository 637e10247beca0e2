"""The command `rsp` and what all its words share.

Output for machines goes to standard output, talk to standard error. Exit codes: 0 all is well,
2 what the user gave is wrong, 3 something else failed.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine import __version__
from rsp_engine.errors import DriverError, QueryError, QueryFileError, RspError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["USERS_FAULT", "WORLDS_FAULT", "OutputFormat", "app", "exit_on_error"]

USERS_FAULT, WORLDS_FAULT = 2, 3


class OutputFormat(StrEnum):
    """For whom something is printed."""

    text = "text"
    json = "json"


app = typer.Typer(
    name="rsp",
    help="Continuous top-k queries in RSP-QL over RDF streams and remote SPARQL data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rsp-engine {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Continuous top-k queries in RSP-QL over RDF streams and remote SPARQL data."""


@contextmanager
def exit_on_error(code: int = USERS_FAULT) -> Iterator[None]:
    """Tell what the engine refuses in a few lines, and end with an exit code."""
    from rsp_engine.monitor.redaction import Redactor

    hide = Redactor(os.environ)
    try:
        yield
    except QueryError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code) from None
    except RspError as error:
        hint = "" if error.hint is None else f"\n  = hint: {error.hint}"
        where = f"{error.path}: " if isinstance(error, QueryFileError) else ""
        typer.echo(hide(f"error: {where}{error.message}{hint}"), err=True)
        raise typer.Exit(WORLDS_FAULT if isinstance(error, DriverError) else code) from None
