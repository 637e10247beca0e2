"""The remote values x_D of a ranked query: one number for each key of the replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.terms.numerals import SURE
from rsp_engine.operators.scoring.exact_scores import NumberKind, read_column
from rsp_engine.operators.scoring.term_scores import column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.acquatop.plain_scores import PlainScores
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.pattern import RemoteSolution
    from rsp_engine.replica.store.replica import Replica

__all__ = ["RemoteValues"]

_NONE, _DOUBLE, _OTHER = -1, SURE + 1, SURE + 2
"""Number kinds as integers: no value, double, no number; from 0 to SURE, fractional digits."""


class RemoteValues:
    """The number of each key: x_D of its only solution.

    It is NaN if the key is cold or has no solution, -inf if x_D is not a number, and 0 if the score
    does not use x_D. For a key with several solutions it is that of the first, which is never used
    to rank: see `PlainScores`.
    """

    def __init__(self, replica: Replica, config: AcquaTopConfig, scores: PlainScores) -> None:
        self._replica = replica
        self._config = config
        self._scores = scores
        self._values: Floats = np.empty(0)
        self._kinds = np.empty(0, dtype=np.int8)
        self._are_several: Booleans = np.empty(0, dtype=np.bool_)
        self.renew(replica.known_keys())

    def renew(self, keys: Integers) -> None:
        """Read the values of changed keys again."""
        self._grow()
        answers = self._replica.look(keys)
        has_any = np.array([bool(solutions) for solutions in answers], dtype=np.bool_)
        self._values[keys[~has_any]], self._kinds[keys[~has_any]] = np.nan, _NONE
        first = [solutions[0] for solutions in answers if solutions]
        self._values[keys[has_any]], self._kinds[keys[has_any]] = self._read(first)
        self._are_several[keys] = [len(solutions) > 1 for solutions in answers]

    def _read(self, solutions: Sequence[RemoteSolution]) -> tuple[Floats, Integers]:
        """Return the number of each solution, and its kind."""
        if self._config.remote is None or not solutions:
            return np.zeros(len(solutions)), np.zeros(len(solutions), dtype=np.int8)
        terms = [solution.get(self._config.remote) for solution in solutions]
        numbers = read_column(terms)
        if numbers is None:
            values = column(terms)
            return np.where(np.isnan(values), -np.inf, values), _kinds(terms)
        kind = numbers.kind
        is_uniform = kind.name == "double" or kind == NumberKind("exact")
        return numbers.values, np.full(len(terms), _number(kind)) if is_uniform else _kinds(terms)

    def of(self, keys: Integers) -> Floats:
        """Return the value of each key, and record the kinds for the scores."""
        self._grow()
        if self._are_several[keys].any():
            self._scores.answer_several()
        kinds = self._kinds[keys]
        if (kinds != _NONE).any():
            self._scores.answer(_kind(kinds[kinds != _NONE]))
        return self._values[keys]

    def _grow(self) -> None:
        if (more := self._replica.keys.size - len(self._values)) > 0:
            more = max(more, len(self._values))
            self._values = np.concatenate((self._values, np.full(more, np.nan)))
            self._kinds = np.concatenate((self._kinds, np.full(more, _NONE, dtype=np.int8)))
            self._are_several = np.concatenate((self._are_several, np.zeros(more, dtype=np.bool_)))

    def solutions(self, keys: Integers) -> list[tuple[RemoteSolution, ...]]:
        """Return all remote solutions of each key."""
        return self._replica.look(keys)

    def use(self, keys: Integers) -> None:
        """Mark keys as used by an answer: a bounded replica drops others first."""
        self._replica.values(keys)

    def solution(self, key: int) -> RemoteSolution:
        """Return the only remote solution of a key, and mark it as used."""
        [[solution]] = self._replica.values([key])
        return solution


def _kinds(terms: Sequence[Term | None]) -> Integers:
    read = [read_column([term]) for term in terms]
    return np.array([_OTHER if one is None else _number(one.kind) for one in read], dtype=np.int8)


def _number(kind: NumberKind) -> int:
    return _DOUBLE if kind.name == "double" else kind.digits


def _kind(kinds: Integers) -> NumberKind | None:
    """Return the common kind of values whose kinds have these integers.

    >>> _kind(np.array([0, 2])), _kind(np.array([_DOUBLE, 2])), _kind(np.array([0, _OTHER]))
    (NumberKind(name='exact', digits=2), NumberKind(name='mixed', digits=2), None)
    """
    most = int(kinds.max())
    if most == _OTHER:
        return None
    if most < _DOUBLE:
        return NumberKind("exact", most)
    digits = int(kinds[kinds < _DOUBLE].max(initial=-1))
    return NumberKind("double") if digits < 0 else NumberKind("mixed", digits)
