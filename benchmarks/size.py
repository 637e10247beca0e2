"""The size of the benchmarks: short by default, or full, as `make bench FULL=1` asks for.

The figures in `docs/explanation/performance.md` are those of the full size.
"""

from __future__ import annotations

import os
from typing import TypeVar

__all__ = ["IS_FULL", "sized"]

Value = TypeVar("Value")

IS_FULL = bool(os.environ.get("RSP_FULL"))


def sized(*, short: Value, full: Value) -> Value:
    """Return the value for the size of this run."""
    return full if IS_FULL else short
