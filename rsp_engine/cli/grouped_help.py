"""Groups of flags and commands: help texts in which nothing is cut, and plain refusals."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from rsp_engine.cli.commands import commands
from rsp_engine.cli.plain_values import take_plain_values
from rsp_engine.cli.value_reasons import value_reason

__all__ = ["CommandGroup", "GroupedCommand"]


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
