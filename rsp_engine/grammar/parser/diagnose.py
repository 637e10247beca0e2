"""From a failure of the parser to a message and a hint."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from rsp_engine.grammar.parser.error_hints import HINTS
from rsp_engine.grammar.parser.failure import END
from rsp_engine.grammar.parser.terminal_names import expectation

if TYPE_CHECKING:
    from rsp_engine.grammar.parser.failure import Failure

__all__ = ["diagnose"]


def diagnose(failure: Failure) -> tuple[str, str | None]:
    """Say what is wrong, what would have been right, and what the slip may be."""
    hint = next((hint for slip in HINTS if (hint := slip(failure)) is not None), None)
    return _message(failure), hint


def _message(failure: Failure) -> str:
    if not failure.before and failure.found == END:
        return "there is no query here"
    expected = expectation(failure.expected)
    if failure.found == END:
        return f"the query ends too early: expected {expected}"
    if failure.found is not None:
        return f"expected {expected}, found `{_short(failure.value)}`"
    if failure.value in ("'", '"'):
        return "this string has no end, or holds an escape that does not exist"
    return f"unexpected character {_character(failure.value)}"


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= 40 else f"{line[:39]}…"


def _character(character: str) -> str:
    name = unicodedata.name(character, f"U+{ord(character):04X}")
    return f"`{character}` ({name})" if character.isprintable() else name
