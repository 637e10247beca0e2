"""Score bounds that decide whether an answer is exact although objects were dropped.

An object is dropped when enough better objects live as long. If the score of one of these falls
later, a dropped object may belong in an answer after all. Its score is not stored, but is at most
the best dropped so far. So two upper bounds are kept for each end (the last window of an object):
the best score that was dropped, and the best score that may be missing from an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData

__all__ = ["LEAST", "ExactnessBound"]


LEAST = -float(np.finfo(np.float64).max)
"""The lowest bound of an object; -inf is reserved for no object at all."""

_SPARE = 64  # extra entries, so that few windows need larger tables


class ExactnessBound:
    """Two score bounds for each end. Memory: two numbers for each active window."""

    def __init__(self) -> None:
        self._first = 0  # the end of the first entry
        self._dropped: Floats = np.empty(0)
        self._missing: Floats = np.empty(0)

    def reach(self, end: int) -> None:
        """Extend the tables to an end. Call this before objects with that end are recorded."""
        if (count := end - self._first + 1 - len(self._dropped)) > 0:
            none = np.full(count + _SPARE, -np.inf)
            self._dropped = np.concatenate((self._dropped, none))
            self._missing = np.concatenate((self._missing, none))

    def drop(self, end: Integers, scores: Floats) -> None:
        """Record live objects that leave the list because enough others are better."""
        if len(end):
            np.maximum.at(self._dropped, end - self._first, np.maximum(scores, LEAST))

    def pass_over(self, end: int, score: float) -> None:
        """Record that objects up to a score never entered the list; -inf means none."""
        place = end - self._first
        self._dropped[place] = max(self._dropped[place], score)

    def fall(self, end: int) -> None:
        """Record that the score of a listed object with an end fell, or that the object left.

        Objects that it kept out of the list may be missing now.
        """
        until = max(0, end - self._first + 1)
        np.maximum(self._missing[:until], self._dropped[:until], out=self._missing[:until])

    def miss(self, end: Integers, scores: Floats) -> None:
        """Record objects that may be missing from answers, with upper bounds of their scores."""
        if len(end):
            np.maximum.at(self._missing, end - self._first, np.maximum(scores, LEAST))

    def missing(self, window: int) -> float:
        """Return an upper bound of the scores missing from a window; -inf if none is missing."""
        return float(self._missing[max(0, window - self._first) :].max(initial=-np.inf))

    def kept_out(self, end: int) -> float:
        """Return an upper bound of the scores outside the list for one end."""
        place = end - self._first
        return float(max(self._dropped[place], self._missing[place]))

    def expire(self, window: int) -> None:
        """Remove the bounds of ends before a window."""
        if (expired := window - self._first) > 0:
            self._first = window
            self._dropped, self._missing = self._dropped[expired:], self._missing[expired:]

    def state(self) -> StateData:
        """Return the bounds as plain data."""
        tables = {"dropped": self._dropped.tolist(), "missing": self._missing.tolist()}
        return {"first": self._first, **tables}

    def restore(self, state: StateData) -> None:
        """Restore the bounds."""
        self._first = state["first"]
        self._dropped = np.array(state["dropped"], dtype=np.float64)
        self._missing = np.array(state["missing"], dtype=np.float64)
