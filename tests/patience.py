"""Time as a test of a deadline counts it: what other processes took is not counted."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["stopwatch"]


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Give a clock that starts now, and stands still while this thread waits for a processor."""
    start, waited = time.monotonic(), _waited()
    yield lambda: time.monotonic() - start - (_waited() - waited)


def _waited() -> float:
    """Return how many seconds this thread could have run, and was not let."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:  # no such figure here
        return 0.0
