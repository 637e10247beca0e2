"""What a refresh policy looks at: the objects it may elect, and what the replica knows of them.

(ACQUA: Dehghanzadeh, Dell'Aglio, Gao, Della Valle, Mileo, Bernstein: Approximate continuous query
answering over streams and dynamic linked data sets, ICWE 2015. A proposer gives the candidates, a
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
    """What the scores of candidates may be: a row for each, in their order.

    `scores` are those that an object may have, `chances` how likely each of them is: a row of these
    sums to 1. Of equal scores the object with the larger `precedence` is the better one. `horizon`
    is how much a refresh counts, the evaluations to come included; 1 if it serves this one alone.
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
    """The objects that a policy may elect, best first, each once.

    `keys` are dense numbers, `scores` what is known of the objects now. `lives` is how many
    evaluations hold an object, the one at hand included (L in ACQUA). `k` is how many the query
    asks for, `step` the time from one evaluation to the next in milliseconds (beta). A policy that
    learns is given an `outlook` too, where there can be one.
    """

    keys: Integers
    scores: Floats
    lives: Integers
    k: int
    step: int
    outlook: Outlook | None = None

    def __post_init__(self) -> None:
        if not len(self.keys) == len(self.scores) == len(self.lives):
            raise ValueError("keys, scores and lives must be of equal length")
        if self.outlook is not None and len(self.outlook) != len(self.keys):
            raise ValueError("an outlook must be of every candidate")
        if self.k < 1 or self.step < 1:
            raise ValueError("k and step must be at least 1")

    def __len__(self) -> int:
        return len(self.keys)

    def none(self) -> Candidates:
        """Return none of them, of the same query."""
        return Candidates(self.keys[:0], self.scores[:0], self.lives[:0], self.k, self.step)


@dataclass(frozen=True, slots=True)
class Entries:
    """What the replica knows of the candidates, in their order; times in milliseconds.

    `last_refresh` is when a value was last fetched, `last_change` when it was last seen to change,
    `best_before` until when it is taken to be fresh (tau in ACQUA), and `interval` the time from
    one change to the next as far as it is known (I).
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
        """Tell which values may have changed: their best-before time has come."""
        return np.asarray(self.best_before <= now)
