"""Proofs that the score of a pair is a global scoring function.

A local score is `ABS(?x - ?y)` of one attribute of both objects, a function that is declared as a
distance of these, or any symmetric expression that is monotone in each. A global scoring function
is over local scores only, and monotone in each of them, which `monotone` proves. Where the score
falls with a local score, it rises with the negated local score.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section V.B. (The terms are those of Cheema, Lin, Wang, Wang, Zhang: A unified approach for
computing top-k pairs in multidimensional space. ICDE 2011.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

import numpy as np

from rsp_engine.operators.pairs.scoring import PairScoring, has_quotient, is_symmetric
from rsp_engine.operators.pairs.threshold_algorithm import GlobalScoring, LocalScore
from rsp_engine.operators.scoring.scoring_function import (
    Absolute,
    Negate,
    Scoring,
    ScoringCall,
    Subtract,
    Variable,
    evaluate,
    over_parts,
    variables,
)
from rsp_engine.plan.intervals import value_interval
from rsp_engine.plan.monotone import prove, scoring_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.model.arrays import Floats
    from rsp_engine.plan.intervals import ValueRange
    from rsp_engine.plan.monotone import DeclaredDirections

__all__ = ["Global", "NotGlobal", "global_scoring"]

Going = Literal["rises", "falls"]
_AWAY: dict[Going, Going] = {"rises": "falls", "falls": "rises"}


@dataclass(frozen=True, slots=True)
class NotGlobal:
    """The reason why there is no proof for a score."""

    reason: str


@dataclass(frozen=True, slots=True)
class Local:
    """A local score, its column, and its direction as the other value moves up and down."""

    score: Scoring
    column: int
    above: Going
    below: Going

    def negated(self) -> Local:
        """Return the local score that falls where this one rises."""
        return Local(Negate(self.score), self.column, _AWAY[self.above], _AWAY[self.below])

    def kernel(self) -> LocalScore:
        """Return a kernel over columns, in which the new object is the first of the pair."""
        mine, theirs = f"a{self.column}", f"b{self.column}"

        def score(values: Floats, value: float) -> Floats:
            return evaluate(self.score, {theirs: values}, {mine: np.float64(value)})

        return LocalScore(self.column, score, self.above, self.below)


@dataclass(frozen=True, slots=True)
class Global:
    """A global scoring function over local scores `l0` ..., where smaller is better."""

    score: Scoring
    local: tuple[Local, ...]

    def kernels(self) -> GlobalScoring:
        """Return the kernels of the local scores, and the function that combines their results."""

        def combine(local_scores: list[Floats]) -> Floats:
            return evaluate(self.score, {f"l{n}": scores for n, scores in enumerate(local_scores)})

        return GlobalScoring(tuple(local.kernel() for local in self.local), combine)


class _NoProofError(Exception):
    """A part of a score is not a local score."""


def global_scoring(
    scoring: PairScoring, declared: Mapping[str, DeclaredDirections]
) -> Global | NotGlobal:
    """Return a score as a global scoring function, or why there is no proof."""
    if has_quotient(scoring.score):
        return NotGlobal("its divisor may be zero")
    if not scoring.is_symmetric:
        return NotGlobal("it may change when the objects are exchanged")
    score = Negate(scoring.score) if scoring.descending else scoring.score
    local: list[Local] = []
    try:
        combined = _Splitter(local, declared, scoring.declared).split(score)
    except _NoProofError as error:
        return NotGlobal(str(error))
    ranges: dict[str, ValueRange] = {
        f"l{n}": (0.0, inf) if isinstance(each.score, Absolute) else value_interval(each.score, {})
        for n, each in enumerate(local)
    }
    for n, each in enumerate(local):
        proof = prove(combined, f"l{n}", ranges, declared)
        if proof.direction is None:
            return NotGlobal(f"it may rise or fall with {scoring_text(each.score)}")
        if proof.direction == "falls":
            local[n] = each.negated()
    for n, each in enumerate(local):
        if isinstance(each.score, Negate):
            combined = _substitute(combined, f"l{n}", Negate(Variable(f"l{n}")))
    return Global(combined, tuple(local))


class _Splitter:
    """Collects the local scores of a score, and replaces them by variables."""

    def __init__(
        self,
        local: list[Local],
        declared: Mapping[str, DeclaredDirections],
        distances: tuple[str, ...],
    ) -> None:
        self._local = local
        self._declared = declared
        self._distances = distances

    def split(self, expression: Scoring) -> Scoring:
        """Return an expression over local scores."""
        columns = {int(name[1:]) for name in variables(expression)}
        if not columns:
            return expression
        if len(columns) == 1 and (local := self._as_local(expression, columns.pop())) is not None:
            if local not in self._local:
                self._local.append(local)
            return Variable(f"l{self._local.index(local)}")
        if isinstance(expression, Variable):
            raise _NoProofError("one of its parts depends on only one of the two objects")
        return over_parts(expression, self.split)

    def _as_local(self, expression: Scoring, column: int) -> Local | None:
        mine, theirs = f"a{column}", f"b{column}"
        match expression:
            case Absolute(Subtract(Variable(one), Variable(other))) if one != other:
                return Local(expression, column, "rises", "rises")
            case ScoringCall(name, _, (Variable(one), Variable(other))) if name in self._distances:
                return Local(expression, column, "rises", "rises") if one != other else None
        if {mine, theirs} != set(variables(expression)):
            return None
        if not is_symmetric(expression, self._distances):
            return None
        match prove(expression, theirs, None, self._declared).direction:
            case "rises":
                return Local(expression, column, "rises", "falls")
            case "falls":
                return Local(expression, column, "falls", "rises")
            case _:
                return None


def _substitute(expression: Scoring, name: str, value: Scoring) -> Scoring:
    """Return an expression with another one in place of a variable."""
    if expression == Variable(name):
        return value
    return over_parts(expression, lambda part: _substitute(part, name, value))
