"""Differences between what is expected and what was found, for people."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["difference"]


def difference(what: str, expected: Sequence[str], found: Sequence[str]) -> str:
    """Return what is missing (-) and what should not be there (+); nothing if both are equal.

    >>> print(difference("answers", ["a", "b"], ["b", "c"]))
    answers: - expected, + found
    - a
      b
    + c
    >>> difference("answers", ["a"], ["a"])
    ''
    """
    if list(expected) == list(found):
        return ""
    lines = difflib.ndiff(expected, found)
    return "\n".join([f"{what}: - expected, + found", *(line.rstrip() for line in lines)])
