"""The flags of a command, derived from dataclasses of options, and the completion of their values.

A shell completes choices by itself, and file names where nothing else fits. Values that are names
of the engine are completed here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from rsp_engine.cli.app import exit_on_error
from rsp_engine.errors import BindingError
from rsp_engine.model.option import Options, declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rsp_engine.model.option import Option

__all__ = ["COMPLETIONS", "is_set", "placeholder", "takes_flags"]

_Made = TypeVar("_Made", bound=Options)
_FLAGS = "flags"
"""The parameter of a command that takes the derived flags."""
_LONGEST_METAVAR = 24


def takes_flags(groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for each option of a dataclass whose fields are `Options`.

    The command takes the dataclass as `flags`. If it has a parameter with the name of an option,
    this takes the place of the derived flag.
    """
    kinds: dict[str, type[Options]] = get_type_hints(groups)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(signature(command, eval_str=True).parameters)
        del own[_FLAGS]
        derived = [
            _parameter(known, kind.title)
            for kind in kinds.values()
            for known in declared(kind)
            if known.name not in own
        ]

        @wraps(command)
        def run(**values: Any) -> None:  # noqa: ANN401 - whatever a flag can be
            with exit_on_error():
                made = {name: _options(kind, values, own) for name, kind in kinds.items()}
                flags = groups(**made)
            command(**{name: values[name] for name in own}, flags=flags)

        parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in own.values()]
        run.__signature__ = Signature([*parameters, *derived])  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (*parameters, *derived)}
        return run

    return decorate


def is_set(context: typer.Context, name: str) -> bool:
    """Return whether the user has set a parameter: by a flag, a variable or a file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _parameter(known: Option, title: str) -> Parameter:
    """Return the parameter of a function from which typer makes the flag of an option."""
    is_number = {int, float} & {known.type, *get_args(known.type)} and not known.is_text
    flag = typer.Option(
        _default(known),
        _words(known),
        metavar=placeholder(known),
        help=_help(known),
        min=known.minimum if is_number else None,
        max=known.maximum if is_number else None,
        show_default=known.unset or known.type is not bool,
        rich_help_panel=title,
        autocompletion=COMPLETIONS.get(known.name),
    )
    return Parameter(known.name, Parameter.KEYWORD_ONLY, default=flag, annotation=_type(known))


def _words(known: Option) -> str:
    return f"{known.flag}/--no-{known.key}" if known.type == bool | None else known.flag


def placeholder(known: Option) -> str | None:
    """Return the placeholder of the value of an option in help; None for a flag without value."""
    if known.metavar is not None or bool in (known.type, *get_args(known.type)):
        return known.metavar
    if known.is_duration:
        return "DURATION"
    if known.choices:
        shown = "|".join(known.choices)
        return shown if len(shown) <= _LONGEST_METAVAR else "NAME"
    return None if known.unit is None else known.unit.upper()


def _help(known: Option) -> str:
    if known.choices and placeholder(known) == "NAME":
        return f"{known.help} It is one of {', '.join(known.choices)}."
    return known.help


def _type(known: Option) -> Any:  # noqa: ANN401 - a type, as typer takes it
    if get_origin(known.type) is Sequence:
        return list[str] | None
    if known.is_text or Path in get_args(known.type):
        return str | None
    return known.type


def _default(known: Option) -> Any:  # noqa: ANN401 - whatever an option can be
    if get_origin(known.type) is Sequence:
        return None
    is_set = known.is_text and known.default is not None
    return known.default_text if is_set else known.default


def _options(kind: type[_Made], values: dict[str, Any], own: dict[str, Parameter]) -> _Made:
    """Return the options that flags set."""
    given = {}
    for known in declared(kind):
        if known.name in own:
            continue
        value = values[known.name]
        try:
            given[known.name] = known.default if value is None else known.check(value)
        except ValueError as reason:
            raise BindingError(f"{_given(known, value, values)}: {reason}") from None
    try:
        return kind(**given)
    except ValueError as reason:
        raise BindingError(f"these options are invalid: {reason}") from None


def _given(known: Option, value: Any, values: Mapping[str, Any]) -> str:  # noqa: ANN401 - as above
    """Return a value as the user has written it: as a flag, a variable or a key of the file."""
    context: typer.Context | None = values.get("context")
    source = None if context is None else context.get_parameter_source(known.name)
    if context is None or source is None or source.name != "DEFAULT_MAP":
        return f"{known.flag} {value}"
    if os.environ.get(known.variable):
        return f"{known.variable}={value}"
    return f"{context.params['config']}: {known.key} = {value!r}"


def _policies(incomplete: str) -> list[str]:
    from rsp_engine.policies.registry import POLICIES

    return _beginning(incomplete, POLICIES)


def _formats(incomplete: str) -> list[str]:
    from rsp_engine.io.sinks import FORMATS

    return _beginning(incomplete, FORMATS)


def _beginning(start: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(start)]


COMPLETIONS: Mapping[str, Callable[[str], list[str]]] = {
    "policy": _policies,
    "output_format": _formats,
}
"""The function that completes the value of an option, by the name of the option."""
