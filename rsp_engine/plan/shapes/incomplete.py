"""The shape of rankings of incomplete objects, whose attributes arrive in several streams.

    { WINDOW :r1 { ?flow :size ?s } }           WINDOW :rain { ?place :points ?rain }
    UNION { WINDOW :r2 { ?flow :size ?s } }     OPTIONAL { WINDOW :wind { ?place :points ?wind } }
    ... GROUP BY ?flow, SUM(?s)                 ... ?rain + COALESCE(?wind, 0)

Each attribute is a block: one WINDOW with filters and one triple pattern, or several if each
solution comes from one element. All blocks have the same key, over time windows or over one count
window. ORDER BY has one condition, descending, and there is a LIMIT. The query either groups by the
key and ranks by SUM or MAX of the variable that has the values in all blocks; or it adds up the
values of the blocks with positive weights, with COALESCE(?v, 0) for a value that may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.incomplete.config import Attribute, IncompleteConfig
from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import aggregates
from rsp_engine.operators.scoring.scoring_function import (
    Add,
    Divide,
    Multiply,
    Negate,
    Number,
    Scoring,
    Subtract,
    Variable,
)
from rsp_engine.operators.scoring.term_scores import number
from rsp_engine.operators.sparql.pane_matcher import MatcherConfig
from rsp_engine.plan.logical.algebra import (
    LeftJoin,
    Union,
    Window,
    find_expressions,
    find_nodes,
)
from rsp_engine.plan.logical.query import GroupParts, Part, logical_query
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.shapes.ranking import (
    StreamSide,
    check_choice,
    check_ranking,
    counts_triples,
    cutoff,
    order_expression,
)
from rsp_engine.plan.shapes.shape import Choice, NoMatchError, Shape, select_of
from rsp_engine.plan.sparql.element_blocks import by_element
from rsp_engine.plan.sparql.general import as_term, sparql_path
from rsp_engine.plan.sparql.object_texts import batch_config, free_variable, select_config
from rsp_engine.plan.term_filters import term_filters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rsp_engine.evaluators.incomplete.config import Algorithm
    from rsp_engine.operators.incomplete.observations import ScoreAggregate
    from rsp_engine.options import MatchRule, OperatorName
    from rsp_engine.plan.logical.algebra import Logical
    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.options import QueryOptions

__all__ = [
    "ALGORITHMS",
    "INCOMPLETE_SHAPE",
    "has_optional_windows",
    "incomplete_config",
    "linear",
]

ALGORITHMS: dict[OperatorName, Algorithm] = {
    "eaa": "EAA",
    "sla": "SLA",
    "approximate": "approximate",
    "oracle": "Oracle",
}
_WHY: dict[Algorithm, str] = {
    "EAA": "it keeps only instances of objects that can still reach an answer",
    "SLA": "it keeps all instances in sorted lists, which the threshold algorithm reads",
    "approximate": "it keeps only instances of objects that are likely to reach an answer",
    "Oracle": "it recomputes each window",
}


@dataclass(frozen=True, slots=True)
class _AttributeBlock:
    """The WINDOW block of an attribute, the number of its window, and its patterns."""

    window: Window
    scan: int
    side: StreamSide
    is_required: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the block, in order of appearance."""
        return self.side.names


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The ranking of objects: their key, and how the values of attributes make a score.

    `values` has the variable and the weight of each block. `function` combines the values of
    streams, and `repeats` several values of one stream.
    """

    keys: tuple[str, ...]
    values: tuple[tuple[str, float], ...]
    function: ScoreAggregate
    repeats: ScoreAggregate


def _choose(query: LogicalQuery, options: QueryOptions) -> Choice:
    check_choice(query, options, *ALGORITHMS)
    if query.services:
        raise NoMatchError("attributes are not joined with SERVICE", query.services[0])
    rewritten = by_element(query, options, opens_nodes=True)
    config = incomplete_config(logical_query(rewritten.query), options)
    why = "attributes of one key, combined from several blocks, with zero for a missing one"
    text = sparql_path(query.unit, options.functions).sparql
    config = replace(config, query=replace(config.query, sparql=text))
    return Choice(config, f"{why}: {_WHY[config.algorithm]}", (), rewritten.blocks)


def has_optional_windows(query: LogicalQuery) -> bool:
    """Return whether a query has WINDOW clauses in UNION or OPTIONAL."""
    if query.select is None:
        return False
    return any(
        any(find_nodes(node, Window)) or any(find_expressions(node, tree.WindowPattern))
        for kind, node in query.select.group.parts
        if kind in {"UNION", "OPTIONAL"}
    )


def incomplete_config(query: LogicalQuery, options: QueryOptions) -> IncompleteConfig:
    """Return the configuration of the evaluator of incomplete objects; raise if there is none."""
    select, unit = select_of(query), query.unit
    check_ranking(query)
    blocks = _attribute_blocks(query, options.ranking.match)
    _check_windows(query)
    if not select.order[0].descending:
        reason = "lower scores rank first, but a missing value counts as zero"
        raise NoMatchError(reason, select.order[0])
    is_union = any(kind == "UNION" for kind, _ in select.group.parts)
    ranking = (_grouped if is_union else _added)(query, blocks, options)
    base = sparql_path(unit, options.functions)
    k, _ = cutoff(select)
    if options.ranking.max_instances is not None and options.ranking.max_instances < k:
        raise BindingError(
            f"{options.ranking.max_instances} instances are too few for the {k} best objects",
            "allow more instances, or lower LIMIT",
        )
    return IncompleteConfig(
        query=base,
        windows=tuple(window.window.value for window in query.windows),
        streams=tuple(query.windows[block.scan].stream.value for block in blocks),
        attributes=tuple(
            _attribute(unit, block, ranking.keys, value, options)
            for block, value in zip(blocks, ranking.values, strict=True)
        ),
        function=ranking.function,
        repeats=ranking.repeats,
        k=k,
        algorithm=_algorithm(options),
        bound=options.ranking.max_instances,
    )


def _attribute_blocks(query: LogicalQuery, match: MatchRule) -> tuple[_AttributeBlock, ...]:
    """Return the blocks of a query: the branches of a UNION, or a WINDOW and those in OPTIONAL."""
    select = select_of(query)
    if exists := next(find_expressions(select.where, tree.Exists), None):
        raise NoMatchError("EXISTS in a filter reads more than the object", exists)
    if select.values is not None:
        raise NoMatchError(
            "VALUES after the query joins data that is not in the stream", select.values
        )
    group = select.group
    match group:
        case GroupParts((Part("UNION", node),), ()):
            branches = map(GroupParts.of, _branches(node))
            return tuple(_block(query, each, match, is_required=False) for each in branches)
        case GroupParts((Part("WINDOW"), *parts)):
            blocks = [_block(query, GroupParts(group.parts[:1], ()), match, is_required=True)]
            for part in parts:
                inside = GroupParts((part,), ())
                if is_optional := isinstance(part.node, LeftJoin):
                    inside = GroupParts(GroupParts.of(part.node.right).parts, part.node.conditions)
                blocks.append(_block(query, inside, match, is_required=not is_optional))
            if group.filters:
                reason = "the block of an attribute has more than one WINDOW"
                raise NoMatchError(reason, group.filters[0])
            if all(block.is_required for block in blocks):
                raise NoMatchError("no attribute can be missing, since there is no OPTIONAL", query)
            return tuple(blocks)
        case _:
            reason = (
                "attributes must come from a UNION of WINDOW blocks alone, or from one WINDOW and"
                " others in OPTIONAL"
            )
            raise NoMatchError(reason, query)


def _branches(node: Logical) -> Iterator[Logical]:
    """Yield the branches of a UNION of two or more."""
    if isinstance(node, Union):
        yield from _branches(node.left)
        yield node.right
    else:
        yield node


def _block(
    query: LogicalQuery, group: GroupParts, match: MatchRule, *, is_required: bool
) -> _AttributeBlock:
    match group:
        case GroupParts((Part("WINDOW", Window(tree.Iri(name), inner) as window),), ()):
            pass
        case _:
            at = group.parts[0].node if group.parts else query
            raise NoMatchError("the block of an attribute has more than one WINDOW", at)
    scan = [each.window.value for each in query.windows].index(name)
    inside = GroupParts.of(inner)
    triples = inside.plain_patterns
    if not triples:
        raise NoMatchError("a window has more than plain triple patterns and filters", window)
    if len(triples) > 1:
        _check_match(query.windows[scan], window, match)
    side = StreamSide(tree.Iri(name), triples, inside.filters)
    return _AttributeBlock(window, scan, side, is_required)


def _check_match(clause: tree.FromWindow, window: Window, match: MatchRule) -> None:
    """Raise if the triples of an attribute may come from several elements."""
    if counts_triples(clause):
        raise NoMatchError("the window may cut through the triples of an attribute", clause)
    if match == "window":
        reason = (
            "the triples of an attribute may arrive in several elements"
            " (--match element rules this out)"
        )
        raise NoMatchError(reason, window)


def _algorithm(options: QueryOptions) -> Algorithm:
    if options.ranking.operator in ALGORITHMS:
        return ALGORITHMS[options.ranking.operator]
    return "EAA" if options.ranking.max_instances is None else "approximate"


def _check_windows(query: LogicalQuery) -> None:
    """Raise if the order in which two observations expire is not known."""
    counted = [w for w in query.windows if isinstance(w.frame, tree.CountWindow)]
    if counted and len(query.windows) > 1:
        reason = "one of several windows counts elements, so the order of expiry is not known"
        raise NoMatchError(reason, counted[0])


def _grouped(
    query: LogicalQuery, blocks: tuple[_AttributeBlock, ...], options: QueryOptions
) -> _Ranking:
    """Return the ranking of the groups of a UNION."""
    select = select_of(query)
    if not select.keys:
        raise NoMatchError("a UNION without GROUP BY does not combine attributes", query)
    if select.having:
        raise NoMatchError("HAVING removes groups", select.having[0])
    keys = []
    for key in select.keys:
        if not isinstance(key.expression, tree.Var) or key.variable is not None:
            raise NoMatchError("a key of GROUP BY is an expression", key)
        keys.append(key.expression.name)
    expression, condition = order_expression(select), select.order[0]
    match list(dict.fromkeys(aggregates(expression))):
        case [tree.Aggregate("SUM" | "MAX" as name, tree.Var(value), is_distinct) as aggregate]:
            pass
        case [tree.Aggregate("MIN" | "AVG" as name)]:
            reason = f"{name} may fall when an attribute arrives, so no object can be dropped"
            raise NoMatchError(reason, condition)
        case _:
            reason = "attributes must be combined by one SUM or MAX of a variable"
            raise NoMatchError(reason, condition)
    if is_distinct and name == "SUM":
        raise NoMatchError("DISTINCT drops equal values", aggregate)
    for block in blocks:
        if missing := [each for each in (*keys, value) if each not in block.names]:
            reason = f"a block of the UNION does not bind ?{missing[0]}"
            raise NoMatchError(reason, block.window)
    variable = free_variable(query.unit, "aggregate")

    def renamed(node: tree.Node) -> tree.Node:
        return tree.Var(variable) if node == aggregate else node

    changed: Any = tree.rewrite_tree(expression, renamed)
    weights = _weights(changed, condition, options)
    if set(weights) != {variable}:
        raise NoMatchError("the score depends on more than the aggregate", condition)
    function: ScoreAggregate = "sum" if name == "SUM" else "max"
    return _Ranking(tuple(keys), tuple((value, 1.0) for _ in blocks), function, function)


def _added(
    query: LogicalQuery, blocks: tuple[_AttributeBlock, ...], options: QueryOptions
) -> _Ranking:
    """Return the ranking by a weighted sum of the values of OPTIONAL blocks."""
    select = select_of(query)
    condition = select.order[0]
    if select.keys or any(True for item in select.computed for _ in aggregates(item)):
        raise NoMatchError("a group over OPTIONAL blocks has several values", query)
    common = set.intersection(*(set(block.names) for block in blocks))
    if not common:
        raise NoMatchError("the blocks have no variable in common", query)
    seen = set(common)
    for block in blocks:
        own = set(block.names) - common
        if shared := sorted(own & seen):
            raise NoMatchError(f"?{shared[0]} is in some blocks, but not in all", block.window)
        seen |= own
    optional = {n for b in blocks if not b.is_required for n in b.names} - common
    score = _without_coalesce(order_expression(select), optional)
    weights = _weights(score, condition, options)
    values = []
    for block in blocks:
        own = set(block.names) - common
        own_weights = [(name, weight) for name, weight in weights.items() if name in own]
        if len(own_weights) != 1:
            raise NoMatchError("the score must use exactly one value of each block", condition)
        values.append(own_weights[0])
    if others := sorted(set(weights) - {name for name, _ in values}):
        raise NoMatchError(f"the score depends on the key ?{others[0]}", condition)
    keys = tuple(name for name in blocks[0].names if name in common)
    return _Ranking(keys, tuple(values), "sum", "max")


def _without_coalesce(expression: tree.Expression, optional: set[str]) -> tree.Expression:
    """Return a score with a variable in place of each COALESCE(?v, 0).

    Raise if an optional variable occurs without COALESCE.
    """

    def variable_of(node: tree.Node) -> tree.Var | None:
        match node:
            case tree.BuiltInCall("COALESCE", (tree.Var() as variable, tree.Literal() as other)):
                return variable if number(as_term(other)) == 0 else None
            case _:
                return None

    others = tree.rewrite_outermost(expression, lambda node: variable_of(node) and tree.ONE)
    for variable in tree.find(others, tree.Var):
        if variable.name in optional:
            name = f"?{variable.name}"
            reason = f"the score needs {name}, which may be missing: write COALESCE({name}, 0)"
            raise NoMatchError(reason, variable)
    score: Any = tree.rewrite_outermost(expression, variable_of)
    return score  # type: ignore[no-any-return]


def _weights(
    expression: tree.Expression, condition: tree.OrderCondition, options: QueryOptions
) -> Mapping[str, float]:
    """Return the weight of each variable of a score; raise if one is not positive."""
    score = scoring_of(expression, options.functions)
    weights = None if score is None else linear(score)
    if weights is None:
        raise NoMatchError("the score is not a weighted sum", condition)
    weights = {name: weight for name, weight in weights.items() if name}
    if wrong := [name for name, weight in weights.items() if not weight > 0]:
        raise NoMatchError(f"the score does not rise with ?{wrong[0]}", condition)
    return weights


def linear(score: Scoring) -> dict[str, float] | None:
    """Return the weights of the variables in a linear score, with the constant under `""`; or None.

    >>> linear(Add(Multiply(Number(2.0), Variable("a")), Divide(Variable("b"), 4.0)))
    {'a': 2.0, 'b': 0.25}
    """
    match score:
        case Number(value):
            return {"": value}
        case Variable(name):
            return {name: 1.0}
        case Add(left, right) | Subtract(left, right):
            first, second = linear(left), linear(right)
            if first is None or second is None:
                return None
            sign = 1.0 if isinstance(score, Add) else -1.0
            names = dict.fromkeys((*first, *second))
            return {n: first.get(n, 0.0) + sign * second.get(n, 0.0) for n in names}
        case Multiply(left, right):
            first, second = linear(left), linear(right)
            if first is None or second is None:
                return None
            if set(second) == {""}:
                first, second = second, first
            if set(first) != {""}:
                return None
            return {name: first[""] * weight for name, weight in second.items()}
        case Divide(left, divisor):
            weights = linear(left)
            return None if weights is None else {n: w / divisor for n, w in weights.items()}
        case Negate(operand):
            weights = linear(operand)
            return None if weights is None else {n: -w for n, w in weights.items()}
        case _:
            return None


def _attribute(
    query: tree.QueryUnit,
    block: _AttributeBlock,
    keys: tuple[str, ...],
    value: tuple[str, float],
    options: QueryOptions,
) -> Attribute:
    name, weight = value
    names = block.names
    items: tuple[tree.Var | tree.SelectAs, ...] = (
        *map(tree.Var, names),
        tree.SelectAs(tree.Var(name), tree.Var(free_variable(query, "number"))),
    )
    clause: Any = block.window.source
    where, functions, side = tree.GroupPattern((clause,)), options.functions, block.side
    matching = MatcherConfig(
        side.window.value,
        names,
        side.patterns,
        select_config(query, items, where, functions),
        term_filters(side.filters, names),
        Variable(name),
        None if len(side.triples) == 1 else batch_config(query, items, where, functions),
    )
    _, high = options.ranges.get(query.windows[block.scan].stream.value, (0.0, 1.0))
    return Attribute(
        block.scan,
        matching,
        tuple(map(names.index, keys)),
        names.index(name),
        weight,
        weight * high,
        block.is_required,
    )


INCOMPLETE_SHAPE = Shape("incomplete", _choose)
