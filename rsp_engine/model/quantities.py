"""Quantities: a number and what it counts, in the singular or the plural."""

from __future__ import annotations

__all__ = ["quantity"]


def quantity(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun; the plural has an `s` unless it is given.

    >>> quantity(1, "element"), quantity(2_000, "element"), quantity(0, "query", "queries")
    ('1 element', '2,000 elements', '0 queries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
