"""How many examples Hypothesis tries: a few, or many times as many in a thorough run."""

from __future__ import annotations

import os

from hypothesis import settings

__all__ = ["IS_FAST", "TIMES", "examples", "scaled"]

TIMES = 10 if os.environ.get("RSP_THOROUGH") == "1" else 1
"""So many times as many as is usual: `RSP_THOROUGH=1` asks for them."""
IS_FAST = os.environ.get("RSP_FAST") == "1"
"""Whether this is `make test-fast`: a tenth of the usual examples, no process and no server."""


def scaled(usual: int) -> int:
    """Return how many examples this run tries where a usual run tries `usual`."""
    return max(1, usual // 10) if IS_FAST else TIMES * usual


def examples(usual: int) -> settings:
    """Let a test try so many examples in a usual run.

    Each says how many, so that all tests together take minutes; one that takes more than 5 seconds
    says why.
    """
    return settings(max_examples=scaled(usual))
