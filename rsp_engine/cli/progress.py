"""A bar on standard error that shows how far a run has come."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["progress"]


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar while tasks are done; give what is told how many are, and how many there are."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))
    with bar:
        shown = bar.add_task(name, total=None)
        yield lambda done, of: bar.update(shown, completed=done, total=of)
