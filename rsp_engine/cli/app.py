"""The command `rsp`: its subcommands, where they differ from what typer makes of a function.

Results go to standard output, messages to standard error. Exit codes: 0 success, 2 wrong user
input, 3 any other failure.

A command is imported when it is called: none waits for the others. Its help has groups of flags, in
which nothing is cut, and refusals are in plain words.

Values of flags that need no conversion are taken as they are. typer converts every value by
pydantic, also a default, and to import pydantic takes longer than to run a small stream. A text for
a flag that takes a text, a known choice, a decimal number in range and a default are what the
conversion would return; whatever else there is goes to typer, which also words the refusals.
"""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from importlib import import_module
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from rsp_engine import __version__
from rsp_engine.cli.value_reasons import value_reason
from rsp_engine.errors import DriverError, QueryError, QueryFileError, RspError
from rsp_engine.garbage import no_garbage_collection
from rsp_engine.lazy_registry import LazyRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "EXIT_FAILURE",
    "EXIT_USER_ERROR",
    "CommandGroup",
    "GroupedCommand",
    "OutputFormat",
    "app",
    "command_app",
    "commands",
    "exit_on_error",
    "main",
    "take_plain_values",
]

EXIT_USER_ERROR, EXIT_FAILURE = 2, 3
_NAMES = (
    *"demo doctor explain policies record replay run test validate experiment".split(),
    *"serve submit jobs tail stop".split(),
)
"""Each is the name of a command and of its module, in the order of help."""


class OutputFormat(StrEnum):
    """The format of the output: text for people, JSON for programs."""

    text = "text"
    json = "json"


def commands() -> LazyRegistry[Any]:
    """Return the commands by their names."""
    return LazyRegistry({name: partial(_command, name) for name in _NAMES})


@no_garbage_collection(is_loading=True)
def _command(name: str) -> Any:  # noqa: ANN401 - typer has no public type
    command = typer.main.get_command(import_module(f"rsp_engine.cli.{name}").app)
    take_plain_values(command, typer.Context(command))
    return command


def command_app() -> typer.Typer:
    """Return what a module registers its command with, and keeps as `app`."""
    return typer.Typer(add_completion=False, rich_markup_mode=None)


def take_plain_values(command: Any, context: Any) -> None:  # noqa: ANN401 - typer has no public type
    """Let the parameters of a command convert only values that need it."""
    for param in command.get_params(context):
        _take_plain_values(param)


def _take_plain_values(param: Any) -> None:  # noqa: ANN401 - typer has no public type
    convert = param.process_value

    def process(context: Any, value: Any) -> Any:  # noqa: ANN401 - whatever a flag can be
        match _plain(param, value):
            case (plain,) if plain or not param.required:
                return plain if param.callback is None else param.callback(context, param, plain)
            case _:
                return convert(context, value)

    param.process_value = process


def _plain(param: Any, value: Any) -> tuple[Any] | None:  # noqa: ANN401 - whatever a flag can be
    """Return what the conversion of a value would return, in a tuple; None if it is not known."""
    # Only recent versions of typer have a descriptor; others do not convert by pydantic.
    descriptor = getattr(param, "type_descriptor", None)
    if descriptor is None:
        return None
    if value is None:
        return ((),) if param.multiple or param.nargs == -1 else (None,)
    kind, choices = descriptor.annotation, descriptor.choices
    if choices is not None:
        found = [each for each in choices if each == value]
        return (found[0],) if found else None
    if kind == list[str] and all(isinstance(each, str) for each in value):
        return (list(value),)
    if kind in (str, bool) and type(value) is kind:
        return (value,)
    if kind in (int, float) and type(value) is kind and value == param.default:
        return (value,)
    if kind is int and isinstance(value, str) and value.isascii() and value.isdecimal():
        number, limits = int(value), descriptor.parameter_info
        is_low = limits.min is not None and number < limits.min
        is_high = limits.max is not None and number > limits.max
        return None if is_low or is_high else (number,)
    return None


class GroupedCommand(TyperCommand):
    """A command whose help has a heading for each group of flags."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer has no public type
        """Write the help of the parameters, group by group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                is_argument = param.param_type_name == "argument"
                shown = (str(param.metavar), getattr(param, "help", "")) if is_argument else record
                usual = "Arguments" if is_argument else "Options"
                title = getattr(param, "rich_help_panel", None) or usual
                groups.setdefault(title, []).append(shown)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write(_two_columns(records, formatter.width))


class CommandGroup(TyperGroup):
    """A group of commands: its help has the first sentence of each, its errors plain reasons."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - typer has no public type
        super().__init__(**attributes)
        self.commands = commands()  # type: ignore[assignment]  # nobody adds one

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer has no public type
        """Parse the flags before the command; typer has added its own to them by now."""
        take_plain_values(self, ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - typer has no public type
        """Run a command; say in plain words why the value of a flag is refused."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = value_reason(error.message)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer has no public type
        """Write a line or more for each command."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        records = [(n, c.get_short_help_str(limit=200)) for n, c in commands if c is not None]
        with formatter.section("Commands"):
            formatter.write(_two_columns(records, formatter.width))


def _two_columns(records: list[tuple[str, str]], width: int) -> str:
    """Return names and their help side by side; no word is cut, not at a hyphen either."""
    column = 4 + max(len(name) for name, _ in records)
    lines = []
    for name, text in records:
        first, *more = wrap(text, width - column, break_on_hyphens=False, break_long_words=False)
        lines.append(f"  {name:<{column - 2}}{first}")
        lines += (f"{'':<{column}}{line}" for line in more)
    return "\n".join(lines) + "\n"


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
