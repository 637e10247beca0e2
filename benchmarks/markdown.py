"""Tables in Markdown, as benchmarks print and `docs/explanation/performance.md` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["print_head", "print_row", "print_table", "ratio"]


def ratio(value: float) -> str:
    """Return a ratio with two significant digits.

    >>> [ratio(value) for value in (0.034, 0.99, 1.04, 12.4, 1234.0)]
    ['0.034', '0.99', '1.0', '12', '1,234']
    """
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def print_head(head: Sequence[str]) -> None:
    """Print the head of a table."""
    print_row(head)
    print("|" + "---|" * len(head), flush=True)


def print_row(cells: Iterable[object]) -> None:
    """Print a row of a table, as soon as it is measured."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def print_table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table."""
    print_head(head)
    for row in rows:
        print_row(row)
