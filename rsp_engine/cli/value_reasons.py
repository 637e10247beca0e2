"""Why the value of a flag is refused, in the words of the other messages."""

from __future__ import annotations

import re

__all__ = ["value_reason"]

_REASONS = (
    (r"Input should be a valid (integer|number|boolean),? .*", r"it must be \1"),
    (r"Input should be greater than or equal to (.*)", r"it must be at least \1"),
    (r"Input should be less than or equal to (.*)", r"it must be at most \1"),
    (r"Input should be (.*)", r"it must be \1"),
    (r"Value error, (.*)", r"\1"),
)
"""What pydantic says, which typer checks values with, and what to say instead."""
_KINDS = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}


def value_reason(message: str) -> str:
    """Return the reason of a refusal, without the words of the library that found it.

    >>> value_reason("Input should be a valid integer, unable to parse string as an integer")
    'it must be a whole number'
    >>> value_reason("Input should be less than or equal to 65535"), value_reason("it is late")
    ('it must be at most 65535', 'it is late')
    """
    for pattern, reason in _REASONS:
        if (found := re.fullmatch(pattern, message, re.DOTALL)) is not None:
            said = found.expand(reason)
            kind = said.removeprefix("it must be ")
            return f"it must be {_KINDS[kind]}" if kind in _KINDS else said
    return message
