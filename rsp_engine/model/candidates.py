"""Candidates: the input of a refresh policy, with the replica's entries and the score outlook.

(ACQUA: Dehghanzadeh, Dell'Aglio, Gao, Della Valle, Mileo, Bernstein: Approximate continuous query
answering over streams and dynamic linked data sets, ICWE 2015. A proposer selects the candidates, a
ranker orders them, and the maintainer fetches the first of these: the elected set.)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["Candidates", "Entries", "Outlook"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """The distributions of the candidates' scores: one row per candidate, in the same order.

    A row of `scores` lists the possible scores of an object, and the row of `chances` their
    probabilities, which sum to 1. `precedence` breaks ties: the larger one ranks higher. `horizon`
    weighs a refresh by the evaluations that it serves; it is 1 if that is the current one only.
    """

    scores: Floats
    chances: Floats
    precedence: Integers
    horizon: Floats

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or self.scores.shape != self.chances.shape:
            raise ValueError("each score that an object may have must have a chance")
        if not len(self.scores) == len(self.precedence) == len(self.horizon):
            raise ValueError("each object must have its scores, its precedence and its horizon")

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The objects that a policy may elect, best first, without duplicates.

    `keys` are dense join key numbers, `scores` the current scores. `lives` is the number of
    evaluations that an object takes part in, the current one included (L in ACQUA). `k` is the
    LIMIT of the query, `step` its slide in milliseconds (beta). Policies that estimate the value of
    a refresh also get an `outlook`, if one can be made, and what a refresh is worth `elsewhere`:
    to other queries that share a budget.
    """

    keys: Integers
    scores: Floats
    lives: Integers
    k: int
    step: int
    outlook: Outlook | None = None
    elsewhere: Floats | None = None

    def __post_init__(self) -> None:
        if not len(self.keys) == len(self.scores) == len(self.lives):
            raise ValueError("keys, scores and lives must be of equal length")
        if self.outlook is not None and len(self.outlook) != len(self.keys):
            raise ValueError("an outlook must be of every candidate")
        if self.elsewhere is not None and len(self.elsewhere) != len(self.keys):
            raise ValueError("each candidate must have its worth elsewhere")
        if self.k < 1 or self.step < 1:
            raise ValueError("k and step must be at least 1")

    def __len__(self) -> int:
        return len(self.keys)

    def none(self) -> Candidates:
        """Return an empty set of candidates with the same `k` and `step`."""
        return Candidates(self.keys[:0], self.scores[:0], self.lives[:0], self.k, self.step)


@dataclass(frozen=True, slots=True)
class Entries:
    """The freshness of the candidates' values in the replica, in the same order; milliseconds.

    `last_refresh` is when a value was last fetched, `last_change` when a change of it was last
    observed, `best_before` the time up to which it counts as fresh (tau in ACQUA), and `interval`
    the estimated time between changes (I).
    """

    last_refresh: Integers
    last_change: Integers
    best_before: Integers
    interval: Integers

    def __post_init__(self) -> None:
        if len({len(getattr(self, field.name)) for field in fields(self)}) > 1:
            raise ValueError("the facts about entries must be of equal length")

    def __len__(self) -> int:
        return len(self.last_refresh)

    def is_stale(self, now: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return a mask of the values that may be stale: their best-before time has come."""
        return np.asarray(self.best_before <= now)
