"""Values are taken as they are exactly where typer would convert them to the same."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from rsp_engine.cli import app
from rsp_engine.cli.app import take_plain_values

TEXTS = "0 1 -1 007 1.5 1e3 ٣ local Local (] json x 10s true".split()
VALUES: list[Any] = [None, 0, 7, -3, 2.5, True, False, "", " 5", *TEXTS]
LISTS: list[Any] = [None, (), ["a", "b"], ("a",), [1], ["a", 2]]


def params(*, plain: bool) -> list[tuple[str, Any]]:
    """Return the parameters of all commands, some of which take plain values."""
    group: Any = typer.main.get_command(app)
    found = []
    for name in ("run", "explain", "demo", "validate", "replay", "doctor"):
        module = __import__(f"rsp_engine.cli.{name}", fromlist=["app"])
        command: Any = group.commands[name] if plain else typer.main.get_command(module.app)
        found += [(f"{name} {param.name}", param) for param in command.params]
    return found


def outcome(param: Any, value: Any) -> tuple[Any, ...]:
    param.callback = None
    try:
        converted = param.process_value(typer.Context(typer.core.TyperCommand("run")), value)
    except Exception as error:
        return type(error), getattr(error, "message", str(error))
    return type(converted), converted


PAIRS = [(name, plain, usual) for (name, plain), (_, usual)
         in zip(params(plain=True), params(plain=False), strict=True)]  # fmt: skip


@pytest.mark.parametrize(("name", "plain", "usual"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_a_plain_value_is_what_typer_makes_of_it(name, plain, usual):
    is_list = usual.nargs == -1 or getattr(usual, "multiple", False)
    for value in LISTS if is_list else VALUES:
        assert outcome(plain, value) == outcome(usual, value), value
    assert outcome(plain, plain.default) == outcome(usual, usual.default)


def test_a_value_of_another_kind_is_converted():
    group: Any = typer.main.get_command(app)
    run = group.commands["run"]
    count = next(param for param in run.params if param.name == "n")
    converted = []
    count.process_value = lambda _, value: converted.append(value)
    take_plain_values(run, typer.Context(run))
    for value in ("5", "+5", "x", 5, None):
        count.process_value(None, value)
    assert converted == ["+5", "x", 5]
