"""The score of a pair: an expression over the values of both objects, compiled to array kernels.

A pair has a first and a second object, `a` and `b`. The first has the smaller key, which is one of
their values; objects with equal keys are no pair. In a kernel, a smaller score is better; a pair
without a score ranks first in an ascending order, and last in a descending one.

>>> from rsp_engine.operators.scoring.scoring_function import Subtract, Variable
>>> scoring = PairScoring(Subtract(Variable("a1"), Variable("b1")), width=2)
>>> kernel = scoring.kernel()  # the first column is the key
>>> kernel(np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), np.array([2.0, 25.0]))
array([-15.,  nan,  -5.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from rsp_engine.operators.scoring.exact_scores import most_digits, rounded_scores
from rsp_engine.operators.scoring.scoring_function import (
    Absolute,
    Add,
    Divide,
    Multiply,
    Negate,
    Number,
    Quotient,
    Scoring,
    ScoringCall,
    Subtract,
    Variable,
    evaluate,
    over_parts,
    variables,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.arrays import Booleans, Floats
    from rsp_engine.operators.pairs.skyband import PairScore

__all__ = ["Condition", "PairScoring", "has_quotient", "is_symmetric", "swapped"]

_COMPARE: dict[str, Callable[[Floats, Floats], Booleans]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "=": np.equal, "!=": np.not_equal,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison that the two objects of a pair must satisfy."""

    operator: Literal["<", "<=", ">", ">=", "=", "!="]
    left: Scoring
    right: Scoring

    @property
    def sides(self) -> tuple[Scoring, Scoring]:
        """Both sides of the comparison."""
        return self.left, self.right


@dataclass(frozen=True, slots=True)
class PairScoring:
    """The score of a pair, and the conditions that two objects of a pair satisfy.

    The values of the first object are the variables `a0`, `a1` ..., those of the second `b0`, `b1`
    ...; `KEY` is the number of the key.
    """

    score: Scoring
    width: int
    descending: bool = False
    conditions: tuple[Condition, ...] = ()
    declared: tuple[str, ...] = ()
    """The functions declared as distances, which are symmetric."""

    KEY = 0

    @property
    def is_symmetric(self) -> bool:
        """Whether exchanging the two objects changes neither score nor conditions."""
        parts = [(each.left, each.right) for each in self.conditions]
        return is_symmetric(self.score, self.declared) and all(
            is_symmetric(Absolute(Subtract(*part)), self.declared) and each.operator in ("=", "!=")
            for part, each in zip(parts, self.conditions, strict=True)
        )

    def kernel(
        self,
        *,
        exact: bool = False,
        digits: int | None = None,
        on_ambiguous: Callable[[], None] = lambda: None,
    ) -> PairScore:
        """Return a function that scores an object (a row) with others (columns).

        With `exact` values, which are integers and decimals, a division by zero has no value. If
        the values have `digits` fractional digits, scores are rounded to the decimals of SPARQL.
        SPARQL tells NaN, an infinity and no value apart where these scores do not: then
        `on_ambiguous` is called.
        """
        one_way, is_symmetric = self._one_way, self.is_symmetric

        def score(columns: Floats, row: Floats) -> Floats:
            keys = columns[self.KEY]
            ways = [one_way(columns, row, ("a", "b"), exact=exact, digits=digits)]
            if not is_symmetric:
                ways.append(one_way(columns, row, ("b", "a"), exact=exact, digits=digits))
            if not exact:
                ambiguous = np.logical_or.reduce([is_ambiguous for _, is_ambiguous in ways])
                ambiguous &= (keys != row[self.KEY]) & ~np.isnan(columns).any(axis=0)
                if ambiguous.any() and not np.isnan(row).any():
                    on_ambiguous()
            scores = ways[0][0]
            if not is_symmetric:
                exchanged = ways[1][0]
                scores = np.where(row[self.KEY] < keys, scores, exchanged)
            scores[keys == row[self.KEY]] = np.nan
            return scores

        return score

    def _one_way(
        self,
        columns: Floats,
        row: Floats,
        sides: tuple[str, str],
        *,
        exact: bool,
        digits: int | None,
    ) -> tuple[Floats, Booleans]:
        """Return the scores, and which of them could be NaN, infinite or no value.

        `sides` are the names of the new object and of the others.
        """
        own_side, other_side = sides
        others = {f"{other_side}{n}": values for n, values in enumerate(columns)}
        own = {f"{own_side}{n}": value for n, value in enumerate(row)}

        def value(expression: Scoring) -> Floats:
            values = evaluate(expression, others, own)
            known = None if digits is None else most_digits(expression, digits)
            return values if known is None else rounded_scores(values, known)

        scores = value(self.score)
        if self.descending:
            np.negative(scores, out=scores)
        unscored = np.inf if self.descending else -np.inf
        if exact:
            scores[np.isinf(scores)] = unscored
        is_nan = np.isnan(scores)
        is_ambiguous = is_nan | (scores == unscored)
        scores[is_nan] = unscored
        for condition in self.conditions:
            left, right = value(condition.left), value(condition.right)
            is_met = _COMPARE[condition.operator](left, right)
            is_nan = np.isnan(left) | np.isnan(right)
            is_ambiguous |= is_nan
            is_met &= ~is_nan  # an error excludes the pair
            scores[~is_met] = np.nan
        return scores, is_ambiguous

    @property
    def compared(self) -> tuple[str, ...]:
        """The variables of the conditions."""
        parts = (part for each in self.conditions for part in (each.left, each.right))
        return tuple(dict.fromkeys(name for part in parts for name in variables(part)))


def has_quotient(expression: Scoring) -> bool:
    """Return whether an expression divides by anything other than a constant."""
    match expression:
        case Quotient():
            return True
        case Add(left, right) | Subtract(left, right) | Multiply(left, right):
            return has_quotient(left) or has_quotient(right)
        case Divide(operand) | Negate(operand) | Absolute(operand):
            return has_quotient(operand)
        case ScoringCall(_, _, arguments):
            return any(map(has_quotient, arguments))
        case _:
            return False


def is_symmetric(expression: Scoring, distances: tuple[str, ...] = ()) -> bool:
    """Return whether a score is known to be the same, to the last bit, for exchanged objects.

    >>> is_symmetric(Absolute(Subtract(Variable("a1"), Variable("b1"))))
    True
    >>> is_symmetric(Subtract(Variable("a1"), Variable("b1")))
    False
    """
    return _canonical(expression, distances) == _canonical(swapped(expression), distances)


def swapped(expression: Scoring) -> Scoring:
    """Return a score with the first and the second object exchanged."""
    if isinstance(expression, Variable):
        return Variable({"a": "b", "b": "a"}[expression.name[0]] + expression.name[1:])
    return over_parts(expression, swapped)


def _canonical(expression: Scoring, distances: tuple[str, ...]) -> str:
    """Return a text that is equal for scores that differ only in the order of operands."""

    def text(part: Scoring) -> str:
        return _canonical(part, distances)

    match expression:
        case Add(left, right) | Multiply(left, right):
            sign = "+" if isinstance(expression, Add) else "*"
            return f"({sign.join(sorted((text(left), text(right))))})"
        case Absolute(Subtract(left, right)):
            return f"|{'-'.join(sorted((text(left), text(right))))}|"
        case Subtract(left, right):
            return f"({text(left)}-{text(right)})"
        case Quotient(left, right):
            return f"({text(left)}/{text(right)})"
        case Divide(left, divisor):
            return f"({text(left)}/{divisor!r})"
        case Negate(operand):
            return f"-{text(operand)}"
        case Absolute(operand):
            return f"|{text(operand)}|"
        case ScoringCall(name, _, arguments):
            parts = [text(argument) for argument in arguments]
            return f"{name}({','.join(sorted(parts) if name in distances else parts)})"
        case Variable(name):
            return f"?{name}"
        case Number(value):
            return repr(value)
