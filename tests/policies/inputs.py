"""Inputs of policies: drawn by Hypothesis, or written by hand."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from hypothesis import strategies as st

from rsp_engine.model.candidates import Candidates, Entries, Outlook

if TYPE_CHECKING:
    from collections.abc import Sequence

FOREVER = 2**63 - 1
times = st.integers(-50, 50) | st.sampled_from([-FOREVER - 1, FOREVER, 1_420_574_522_643])
counts = st.integers(0, 12)


class Question(NamedTuple):
    """The arguments of a policy, except the budget."""

    candidates: Candidates
    entries: Entries
    now: int
    seed: int

    def content(self) -> list[list[float]]:
        """Return every number of the question."""
        parts: tuple[np.ndarray, ...]
        parts = (self.candidates.keys, self.candidates.scores, self.candidates.lives)
        if (outlook := self.candidates.outlook) is not None:
            parts += (outlook.scores.ravel(), outlook.chances.ravel())
            parts += (outlook.precedence, outlook.horizon)
        facts = (getattr(self.entries, field.name) for field in fields(self.entries))
        return [part.tolist() for part in (*parts, *facts)]


def numbers(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def candidates(  # noqa: PLR0917 - the columns of a table
    keys: Sequence[int],
    scores: Sequence[float],
    lives: Sequence[int],
    k: int = 3,
    step: int = 2,
    outlook: Outlook | None = None,
) -> Candidates:
    known = np.array(scores, dtype=np.float64)
    return Candidates(numbers(keys), known, numbers(lives), k, step, outlook)


@st.composite
def outlooks(draw: st.DrawFn, size: int) -> Outlook:
    """Few scores for each object, many ties, some with probability 0 or 1."""
    width = draw(st.integers(1, 4))
    cells = st.lists(st.integers(0, 4), min_size=size * width, max_size=size * width)
    weights = np.array(draw(cells), dtype=np.float64).reshape(size, width)
    weights[:, 0] += weights.sum(axis=1) == 0
    return Outlook(
        np.array(draw(cells), dtype=np.float64).reshape(size, width),
        weights / weights.sum(axis=1, keepdims=True),
        numbers(draw(st.permutations(range(size)))),
        np.array(draw(st.lists(st.integers(1, 3), min_size=size, max_size=size)), dtype=float),
    )


def entries(
    size: int,
    *,
    last_refresh: Sequence[int] | None = None,
    best_before: Sequence[int] | None = None,
    interval: Sequence[int] | None = None,
) -> Entries:
    """Return entries; omitted columns are 0, intervals 1."""
    nothing = [0] * size
    return Entries(
        numbers(last_refresh or nothing),
        numbers(nothing),
        numbers(best_before or nothing),
        numbers(interval or [1] * size),
    )


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Few keys, many ties, and times that mean never or forever."""
    keys = draw(st.lists(st.integers(0, 30), max_size=9, unique=True))
    size = len(keys)

    def many(one: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(one, min_size=size, max_size=size))

    pairs = sorted(zip(many(st.integers(0, 3)), keys, strict=True), reverse=True)
    asked = candidates(
        [key for _, key in pairs],
        [score for score, _ in pairs],
        many(st.integers(1, 4)),
        draw(st.integers(1, 6)),
        draw(st.integers(1, 5)),
        draw(st.none() | outlooks(size)),
    )
    facts = Entries(
        numbers(many(times)),
        numbers(many(times)),
        numbers(many(times)),
        numbers(many(st.integers(0, 20) | st.just(FOREVER))),
    )
    return Question(asked, facts, draw(st.integers(-50, 50)), draw(st.integers(-3, 3)))
