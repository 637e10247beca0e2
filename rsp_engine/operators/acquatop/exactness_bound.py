"""Whether an answer is surely right, although objects were forgotten.

An object that is dropped is worse than enough others that live as long. If one of these later falls
back, the dropped object may have belonged into an answer after all; nobody knows, but its score was
not better than the best dropped so far. So for each end two bounds are kept: how good the best
dropped object was, and how good an object may be that is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData

__all__ = ["LEAST", "ExactnessBound"]


LEAST = -float(np.finfo(np.float64).max)
"""A bound of scores that tells a score of -inf from no score."""

_SPARE = 64  # so that few windows need new tables


class ExactnessBound:
    """Memory: two numbers for each window that is active."""

    def __init__(self) -> None:
        self._first = 0  # the end that the tables begin with
        self._dropped: Floats = np.empty(0)
        self._missing: Floats = np.empty(0)

    def reach(self, end: int) -> None:
        """Make room for objects that live until an end. None is noted that lives longer."""
        if (more := end - self._first + 1 - len(self._dropped)) > 0:
            none = np.full(more + _SPARE, -np.inf)
            self._dropped = np.concatenate((self._dropped, none))
            self._missing = np.concatenate((self._missing, none))

    def drop(self, end: Integers, scores: Floats) -> None:
        """Note objects that are kept out although they live on: so many others are better."""
        if len(end):
            np.maximum.at(self._dropped, end - self._first, np.maximum(scores, LEAST))

    def pass_over(self, end: int, score: float) -> None:
        """Note that objects are kept out that are not better than a score; -inf for none."""
        place = end - self._first
        self._dropped[place] = max(self._dropped[place], score)

    def fall(self, end: int) -> None:
        """Note that an object fell back, or left, that lives until an end.

        What it kept out of the list may be missing now.
        """
        until = max(0, end - self._first + 1)
        np.maximum(self._missing[:until], self._dropped[:until], out=self._missing[:until])

    def miss(self, end: Integers, scores: Floats) -> None:
        """Note objects outside the list that may be as good as these scores."""
        if len(end):
            np.maximum.at(self._missing, end - self._first, np.maximum(scores, LEAST))

    def missing(self, window: int) -> float:
        """Return how good an object may be that is missing in a window; -inf if none is."""
        return float(self._missing[max(0, window - self._first) :].max(initial=-np.inf))

    def kept_out(self, end: int) -> float:
        """Return how good an object may be that is kept out of the list and lives until an end."""
        place = end - self._first
        return float(max(self._dropped[place], self._missing[place]))

    def expire(self, window: int) -> None:
        """Forget what does not live until a window."""
        if (gone := window - self._first) > 0:
            self._first = window
            self._dropped, self._missing = self._dropped[gone:], self._missing[gone:]

    def state(self) -> StateData:
        """Return the bounds as plain data."""
        tables = {"dropped": self._dropped.tolist(), "missing": self._missing.tolist()}
        return {"first": self._first, **tables}

    def restore(self, state: StateData) -> None:
        """Take the bounds back."""
        self._first = state["first"]
        self._dropped = np.array(state["dropped"], dtype=np.float64)
        self._missing = np.array(state["missing"], dtype=np.float64)
