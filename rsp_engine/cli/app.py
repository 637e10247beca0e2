"""The command `rsp`, and what its subcommands share.

Results go to standard output, messages to standard error. Exit codes: 0 success, 2 wrong user
input, 3 any other failure.
"""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rsp_engine import __version__
from rsp_engine.cli.commands import CommandGroup
from rsp_engine.errors import DriverError, QueryError, QueryFileError, RspError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXIT_FAILURE", "EXIT_USER_ERROR", "OutputFormat", "app", "exit_on_error", "main"]

EXIT_USER_ERROR, EXIT_FAILURE = 2, 3


class OutputFormat(StrEnum):
    """The format of the output: text for people, JSON for programs."""

    text = "text"
    json = "json"


app = typer.Typer(
    name="rsp",
    cls=CommandGroup,
    help="Continuous top-k queries in RSP-QL over RDF streams and remote SPARQL data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
)


def _version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"rsp-engine {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Continuous top-k queries in RSP-QL over RDF streams and remote SPARQL data."""


def main(*arguments: Any, **settings: Any) -> Any:  # noqa: ANN401 - what typer takes and returns
    """Run the command `rsp`, in a process of its own."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the engine multiplies no matrices
    # To import modules and to run queries creates hardly any cyclic garbage.
    gc.set_threshold(50_000, 20, 100)
    return app(*arguments, **settings)


@contextmanager
def exit_on_error(code: int = EXIT_USER_ERROR) -> Iterator[None]:
    """Print an error of the engine with its hint, without secrets, and exit with a code."""
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
        raise typer.Exit(EXIT_FAILURE if isinstance(error, DriverError) else code) from None
