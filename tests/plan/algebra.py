"""A naive evaluator of logical plans: the oracle for rewrite rules.

A solution is a set of pairs of a variable and a term; solutions are a bag (SPARQL 1.1, 18.5). The
evaluator supports the expressions of the generated plans: BOUND, comparisons of numbers, and `!`.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any, assert_never

from rsp_engine.grammar import tree
from rsp_engine.plan.logical import algebra as logical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rsp_engine.plan.logical.algebra import Logical

Solution = frozenset[tuple[str, tree.TermNode]]
Triples = frozenset[tuple[tree.TermNode, ...]]
Windows = dict[str, Triples]


def solutions(plan: Logical, windows: Windows, triples: Triples = frozenset()) -> Counter[Solution]:
    """Return the solutions of a plan; `triples` are those of the active graph."""

    def of(node: Logical) -> list[Solution]:
        return list(solutions(node, windows, triples).elements())

    match plan:
        case logical.Bgp(patterns):
            return Counter(_matches(patterns, triples))
        case logical.Join(left, right):
            return Counter(_merged(of(left), of(right)))
        case logical.LeftJoin(left, right, conditions):
            return Counter(_left_joined(of(left), of(right), conditions))
        case logical.Union(left, right):
            return Counter(of(left) + of(right))
        case logical.Minus(left, right):
            return Counter(s for s in of(left) if not any(_excludes(o, s) for o in of(right)))
        case logical.Filter(conditions, below):
            return Counter(s for s in of(below) if _holds(conditions, s))
        case logical.Extend(below, variable, expression):
            return Counter(s | _bound(variable.name, _value(expression, s)) for s in of(below))
        case logical.Values(data):
            names = [variable.name for variable in data.variables]
            rows = (zip(names, row, strict=True) for row in data.rows)
            return Counter(frozenset((n, t) for n, t in row if t is not None) for row in rows)
        case logical.Window(name, below):
            return Counter(_over_windows(name, below, windows))
        case logical.Project(variables, below):
            return Counter(frozenset(p for p in s if p[0] in variables) for s in of(below))
        case logical.Distinct(below):
            return Counter(set(of(below)))
        case logical.Reduced(below) | logical.Stream(_, below):
            return Counter(of(below))
        case (
            logical.Graph() | logical.Service() | logical.Group() | logical.OrderBy()
            | logical.Slice() | logical.Construct() | logical.Ask()
        ):  # fmt: skip
            raise NotImplementedError("no rule rewrites these, and none is generated")
        case _ as unreachable:
            assert_never(unreachable)


def _matches(patterns: Iterable[Any], triples: Triples) -> Iterator[Solution]:
    """Try every choice of triples. A blank node is a variable that is not in the solution."""
    for choice in product(triples, repeat=len(list(patterns))):
        bound: dict[tree.Node, tree.TermNode] = {}
        pairs = [
            pair for p, t in zip(patterns, choice, strict=True) for pair in zip(p, t, strict=True)
        ]
        if all(_fits(term, value, bound) for term, value in pairs):
            yield frozenset((v.name, t) for v, t in bound.items() if isinstance(v, tree.Var))


def _fits(term: tree.Node, value: tree.TermNode, bound: dict[tree.Node, tree.TermNode]) -> bool:
    if isinstance(term, tree.Var | tree.BlankNode):
        return bound.setdefault(term, value) == value
    return term == value


def _agree(one: Mapping[str, tree.TermNode], other: Mapping[str, tree.TermNode]) -> bool:
    return all(other[name] == term for name, term in one.items() if name in other)


def _merged(left: list[Solution], right: list[Solution]) -> Iterator[Solution]:
    return (one | other for one in left for other in right if _agree(dict(one), dict(other)))


def _left_joined(
    left: list[Solution], right: list[Solution], conditions: tuple[tree.Expression, ...]
) -> Iterator[Solution]:
    for one in left:
        found = [s for s in _merged([one], right) if _holds(conditions, s)]
        yield from found or [one]


def _excludes(other: Solution, one: Solution) -> bool:
    shared = dict(one).keys() & dict(other).keys()
    return bool(shared) and _agree(dict(one), dict(other))


def _over_windows(
    name: tree.Var | tree.Iri, below: Logical, windows: Windows
) -> Iterator[Solution]:
    for iri, triples in windows.items():
        if isinstance(name, tree.Iri) and name.value != iri:
            continue
        binding: Solution = frozenset()
        if isinstance(name, tree.Var):
            binding = frozenset({(name.name, tree.Iri(iri))})
        yield from _merged([binding], list(solutions(below, windows, triples).elements()))


def _bound(name: str, value: object) -> frozenset[Any]:
    return frozenset() if value is None else frozenset({(name, value)})


def _holds(conditions: tuple[tree.Expression, ...], solution: Solution) -> bool:
    return all(_value(condition, solution) is True for condition in conditions)


def _value(expression: tree.Expression, solution: Solution) -> Any:
    """Return the value of an expression; None for an error."""
    match expression:
        case tree.Var(name):
            return dict(solution).get(name)
        case tree.Iri() | tree.Literal():
            return expression
        case tree.BuiltInCall("BOUND", (tree.Var(name),)):
            return name in dict(solution)
        case tree.Unary("!", operand):
            value = _value(operand, solution)
            return None if value is None else not value
        case tree.Comparison("<", left, right):
            sides = [_value(side, solution) for side in (left, right)]
            numbers = [int(s.lexical) for s in sides if isinstance(s, tree.Literal)]
            return numbers[0] < numbers[1] if len(numbers) == 2 else None
        case _:
            raise NotImplementedError("no such expression is generated")
