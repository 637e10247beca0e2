"""How many examples Hypothesis tries: a part of them in a usual run, or many times as many."""

from __future__ import annotations

import os

from hypothesis import settings

__all__ = ["IS_FAST", "TIMES", "examples", "scaled"]

TIMES = 10 if os.environ.get("RSP_THOROUGH") == "1" else 1
"""So many times as many as a test names: `RSP_THOROUGH=1` asks for them."""
USUAL_SHARE = 3
"""A usual run, whose examples are the same each time, tries one in three of those named."""
IS_FAST = os.environ.get("RSP_FAST") == "1"
"""Whether this is `make test-fast`: a tenth of the usual examples, no process and no server."""


def scaled(usual: int) -> int:
    """Return how many examples this run tries where a test names `usual`."""
    if TIMES > 1:
        return TIMES * usual
    return max(1, usual // (10 if IS_FAST else USUAL_SHARE))


def examples(usual: int) -> settings:
    """Let a test try a third of so many examples in a usual run, and ten times as many in the soak.

    Each names how many, so that all tests together take minutes; one that takes more than 5 seconds
    says why.
    """
    return settings(max_examples=scaled(usual))
