"""The commands of `rsp`, each imported when it is called: none waits for the others."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import typer

from rsp_engine.cli.plain_values import take_plain_values
from rsp_engine.garbage import no_garbage_collection
from rsp_engine.lazy_registry import LazyRegistry

__all__ = ["command_app", "commands"]

_NAMES = "demo doctor explain policies replay run validate experiment".split()
"""Each is the name of a command and of its module, in the order of help."""


def commands() -> LazyRegistry[Any]:
    """Return the commands by their names."""
    return LazyRegistry({name: partial(_command, name) for name in _NAMES})


@no_garbage_collection()
def _command(name: str) -> Any:  # noqa: ANN401 - typer has no public type
    command = typer.main.get_command(import_module(f"rsp_engine.cli.{name}").app)
    take_plain_values(command, typer.Context(command))
    return command


def command_app() -> typer.Typer:
    """Return what a module registers its command with, and keeps as `app`."""
    return typer.Typer(add_completion=False, rich_markup_mode=None)
