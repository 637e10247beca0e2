"""Elements of streams as text, a line each: a time, two blanks, and Turtle."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rsp_engine.errors import CaseError
from rsp_engine.model.quantities import parse_duration
from rsp_engine.testing.term_cells import declarations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["USUAL_PREFIXES", "element_lines", "with_declarations"]

USUAL_PREFIXES = {"": "http://example.org/"}
"""The prefixes of elements, besides those of the queries."""


def element_lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield the time in milliseconds and the Turtle text of each line.

    >>> list(element_lines("1000  :a :p 1 .\n2s    :b :p 2 ."))
    [(1000, ':a :p 1 .'), (2000, ':b :p 2 .')]
    """
    for line in filter(None, map(str.strip, text.splitlines())):
        time, _, turtle = line.partition(" ")
        try:
            yield parse_duration(time), turtle.strip()
        except ValueError:
            raise CaseError(
                f"the element `{line}` does not begin with a time",
                "write milliseconds or a duration, a blank, and Turtle: 1000  :a :p 1 .",
            ) from None


def with_declarations(turtle: str, prefixes: Mapping[str, str]) -> str:
    """Return a Turtle text with the declarations of the prefixes that it may use.

    >>> with_declarations(":a a ex:B .", USUAL_PREFIXES | {"ex": "http://ex/", "y": "http://y/"})
    '@prefix : <http://example.org/> . @prefix ex: <http://ex/> . :a a ex:B .'
    """
    used = set(re.findall(r"(?<![\w-])([\w-]+):", turtle)) | {""}
    known = {**USUAL_PREFIXES, **prefixes}
    shown = {prefix: iri for prefix, iri in known.items() if prefix in used}
    return f"{declarations(shown)} {turtle}"
