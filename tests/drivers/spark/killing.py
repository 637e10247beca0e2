"""A function of queries that kills the executor that evaluates it, once."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["killing"]


def killing(folder: Path) -> Callable[[int], int]:
    """Return a function that returns its argument, if it returns."""
    home, place = os.getpid(), str(folder / "killed")

    def call(value: int) -> int:
        if os.getpid() != home and not Path(place).exists():
            Path(place).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    return call
