"""Values of flags that need no conversion, taken as they are.

typer converts every value by pydantic, also a default, and to import pydantic takes longer than to
run a small stream. A text for a flag that takes a text, a known choice, a decimal number in range
and a default are what the conversion would return; whatever else there is goes to typer, which also
words the refusals.
"""

from __future__ import annotations

from typing import Any

__all__ = ["take_plain_values"]


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
