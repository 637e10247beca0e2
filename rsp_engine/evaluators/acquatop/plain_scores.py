"""F and its remote values x_D over float64, with which Topk+N ranks.

The kinds of x_S and x_D are tracked as values arrive: integers and decimals, with their number of
fractional digits, or doubles. For these kinds, F is computed exactly. After the first other value
or score (a string, a date, an unbound variable, a very large product), float64 may not preserve the
order any more, and objects are ranked by terms: see `ByTerms`. The same holds after the first key
with several remote solutions, each of which is a row of its own.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from pyoxigraph import Literal, NamedNode

from rsp_engine.model.terms.numerals import DECIMAL, SURE
from rsp_engine.operators.scoring.exact_scores import (
    Column,
    NumberKind,
    fractional_digits,
    ordered_scores,
    read_column,
)
from rsp_engine.operators.scoring.scoring_function import evaluate
from rsp_engine.operators.scoring.term_scores import column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.pattern import RemoteSolution
    from rsp_engine.replica.store.replica import Replica

__all__ = ["PlainScores", "RemoteValues"]

_NONE, _DOUBLE, _OTHER = -1, SURE + 1, SURE + 2
"""Number kinds as integers: no value, double, no number; from 0 to SURE, fractional digits."""


class PlainScores:
    """F of a query. Its scores have the order of SPARQL as long as `is_plain`."""

    def __init__(self, config: AcquaTopConfig) -> None:
        self.is_plain = True
        self._config = config
        self._streaming: NumberKind | None = None
        self._remote: NumberKind | None = None

    def stream(self, kind: NumberKind | None) -> None:
        """Record the kind of some x_S; None if float64 may not preserve their order."""
        if self._config.streaming is not None:
            self._streaming = self._join_kinds(self._streaming, kind)

    def answer(self, kind: NumberKind | None) -> None:
        """Record the kind of some x_D; None if float64 may not preserve their order."""
        if self._config.remote is not None:
            self._remote = self._join_kinds(self._remote, kind)

    def answer_several(self) -> None:
        """Record that a key has several remote solutions."""
        self.is_plain = False

    def _join_kinds(self, before: NumberKind | None, kind: NumberKind | None) -> NumberKind | None:
        self.is_plain &= kind is not None
        return kind if before is None or kind is None else before.joined(kind)

    def __call__(self, streaming: Floats, remote: Floats) -> Floats:
        """Return F, larger is better; NaN only without a remote value."""
        if self.is_plain:
            scores = self._exact(streaming, remote)
            if scores is not None:
                return scores
            self.is_plain = False
        return self.in_float64(streaming, remote)

    def in_float64(self, streaming: Floats, remote: Floats) -> Floats:
        """Return F in float64 arithmetic, whatever the kinds: larger is better.

        It is NaN only without a remote value; an object without a score gets -inf.
        """
        config = self._config
        columns = {config.streaming: streaming, config.remote: remote}
        scores = evaluate(config.scoring, {n: c for n, c in columns.items() if n is not None})
        scores = np.broadcast_to(scores if config.descending else -scores, streaming.shape)
        return np.where(np.isnan(remote), np.nan, np.where(np.isnan(scores), -np.inf, scores))

    def _exact(self, streaming: Floats, remote: Floats) -> Floats | None:
        if not len(remote):
            return np.empty(0)
        known = ~np.isnan(remote)
        if known.all():
            return self._exact_of_known(streaming, remote)
        scores = np.full(len(remote), np.nan)
        if not known.any():
            return scores
        exact = self._exact_of_known(streaming[known], remote[known])
        if exact is None:
            return None
        scores[known] = exact
        return scores

    def _exact_of_known(self, streaming: Floats, remote: Floats) -> Floats | None:
        config = self._config
        columns = {}
        if config.streaming is not None and self._streaming is not None:
            columns[config.streaming] = Column(streaming, self._streaming)
        if config.remote is not None and self._remote is not None:
            columns[config.remote] = Column(remote, self._remote)
        scores = ordered_scores(config.scoring, columns, len(remote))
        if scores is None or not np.isfinite(scores).all():
            return None
        return scores if config.descending else -scores

    def streamed_term(self, value: float) -> Term:
        """Return an x_S as a term of the kind of its variable.

        It is a double if the kind is not known, or if there are several.
        """
        kind = self._streaming
        if kind is None or kind.name != "exact" or not isfinite(value):
            return Literal(value)
        if kind.digits == 0:
            return Literal(int(value))
        return Literal(f"{value:.{kind.digits}f}", datatype=NamedNode(DECIMAL))

    def for_other_replica(self) -> PlainScores:
        """Return F for the same stream and another replica, as the oracle needs it."""
        other = PlainScores(self._config)
        other.is_plain, other._streaming = self.is_plain, self._streaming
        return other

    def state(self) -> StateData:
        """Return the recorded kinds, as plain data."""
        sides = {"streaming": self._streaming, "remote": self._remote}
        kinds = {side: None if kind is None else [*kind] for side, kind in sides.items()}
        return {"is_plain": self.is_plain, **kinds}

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self.is_plain = state["is_plain"]
        self._streaming, self._remote = (
            None if state[side] is None else NumberKind(*state[side])
            for side in ("streaming", "remote")
        )


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
        self._are_unread: Booleans = np.empty(0, dtype=np.bool_)
        self.renew(replica.known_keys())

    def renew(self, keys: Integers) -> None:
        """Read the values of changed keys again, once they are asked for: most never are."""
        self._grow()
        self._are_unread[keys] = True

    def _read_those_of(self, keys: Integers) -> None:
        """Read the values of those of these keys that have changed."""
        keys = np.unique(keys[self._are_unread[keys]])
        if not len(keys):
            return
        answers = self._replica.look(keys)
        sizes = np.fromiter(map(len, answers), dtype=np.int64, count=len(answers))
        has_any = sizes > 0
        self._values[keys[~has_any]], self._kinds[keys[~has_any]] = np.nan, _NONE
        first = [solutions[0] for solutions in answers if solutions]
        self._values[keys[has_any]], self._kinds[keys[has_any]] = self._read(first)
        self._are_several[keys] = sizes > 1
        self._are_unread[keys] = False

    def _read(self, solutions: Sequence[RemoteSolution]) -> tuple[Floats, Integers]:
        """Return the number of each solution, and its kind."""
        if self._config.remote is None or not solutions:
            return np.zeros(len(solutions)), np.zeros(len(solutions), dtype=np.int8)
        terms = [solution.get(self._config.remote) for solution in solutions]
        numbers = read_column(terms)
        if numbers is None:
            values = column(terms)
            return np.where(np.isnan(values), -np.inf, values), _kinds(terms)
        return numbers.values, _kinds_of_numbers(numbers.kind, terms)

    def of(self, keys: Integers) -> Floats:
        """Return the value of each key, and record the kinds for the scores."""
        self._grow()
        self._read_those_of(keys)
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
            none = np.zeros(more, dtype=np.bool_)
            self._are_several = np.concatenate((self._are_several, none))
            self._are_unread = np.concatenate((self._are_unread, none))

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


def _kinds_of_numbers(kind: NumberKind, terms: Sequence[Term | None]) -> Integers:
    """Return the kind of each number of a column that has a kind."""
    if kind.name == "double" or kind == NumberKind("exact"):
        return np.full(len(terms), _number(kind), dtype=np.int8)
    if kind.name == "mixed":
        return _kinds(terms)
    digits = [fractional_digits(term.value) for term in terms if term is not None]
    return np.array(digits, dtype=np.int8)


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
