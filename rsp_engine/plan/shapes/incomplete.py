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

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.incomplete import Attribute, IncompleteConfig
from rsp_engine.grammar import tree
from rsp_engine.grammar.expressions import aggregates
from rsp_engine.grammar.triples import plain_terms
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
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.shapes.topk import (
    StreamSide,
    WhyNot,
    batch_config,
    counts_triples,
    cutoff,
    free_variable,
    order_expression,
    select_config,
    topk_refusals,
)
from rsp_engine.plan.sparql.general import as_term, sparql_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rsp_engine.evaluators.incomplete import Algorithm
    from rsp_engine.operators.incomplete.observations import ScoreAggregate
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.plan.options import MatchRule, OperatorName, QueryOptions

__all__ = [
    "ALGORITHMS",
    "has_optional_windows",
    "incomplete_path",
    "linear",
    "refuse_undeclared",
]

ALGORITHMS: dict[OperatorName, Algorithm] = {
    "eaa": "EAA",
    "sla": "SLA",
    "approximate": "approximate",
    "oracle": "Oracle",
}


class _NotIncompleteError(Exception):
    """The reason why a query does not have this shape."""


@dataclass(frozen=True, slots=True)
class _AttributeBlock:
    """The WINDOW block of an attribute, the number of its window, and its patterns."""

    clause: tree.WindowPattern
    scan: int
    side: StreamSide
    is_optional: bool

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


def incomplete_path(query: tree.QueryUnit, options: QueryOptions) -> IncompleteConfig | WhyNot:
    """Return the configuration of the evaluator of incomplete objects, or why there is none."""
    try:
        return _config(query, options)
    except _NotIncompleteError as error:
        return WhyNot(str(error))


def has_optional_windows(query: tree.QueryUnit) -> bool:
    """Return whether a query has WINDOW clauses in UNION or OPTIONAL."""
    select = query.form
    if not isinstance(select, tree.SelectForm):
        return False
    kinds = (
        e for e in select.where.elements if isinstance(e, tree.UnionPattern | tree.OptionalPattern)
    )
    return any(True for element in kinds for _ in tree.find(element, tree.WindowPattern))


def refuse_undeclared(options: QueryOptions, chosen: Iterable[SparqlConfig]) -> None:
    """Raise if the user sets a range or a bound that no query uses."""
    configs = [config for config in chosen if isinstance(config, IncompleteConfig)]
    hint = "only ranked queries that collect attributes from several streams use this option"
    if options.max_instances is not None and not any(c.is_approximate for c in configs):
        raise BindingError("no query has instances to bound", hint)
    read = {stream for config in configs for stream in config.streams}
    for stream in sorted(set(options.ranges) - read):
        raise BindingError(f"no query collects attributes from stream <{stream}>", hint)


def _config(query: tree.QueryUnit, options: QueryOptions) -> IncompleteConfig:
    select = query.form
    if not isinstance(select, tree.SelectForm):
        raise _NotIncompleteError("only a SELECT can rank")
    if refusal := next(topk_refusals(select), None):
        raise _NotIncompleteError(refusal.reason)
    blocks = _attribute_blocks(query, select, options.match)
    _check_windows(query)
    modifiers = select.modifiers
    if not modifiers.order_by[0].descending:
        raise _NotIncompleteError("lower scores rank first, but a missing value counts as zero")
    is_union = isinstance(select.where.elements[0], tree.UnionPattern)
    ranking = (_grouped if is_union else _added)(query, select, blocks, options)
    base = sparql_path(query, options.functions)
    k, _ = cutoff(select)
    if options.max_instances is not None and options.max_instances < k:
        raise BindingError(
            f"{options.max_instances} instances are too few for the {k} best objects",
            "allow more instances, or lower LIMIT",
        )
    return IncompleteConfig(
        **{field.name: getattr(base, field.name) for field in fields(base)},
        windows=tuple(window.window.value for window in query.windows),
        streams=tuple(query.windows[block.scan].stream.value for block in blocks),
        attributes=tuple(
            _attribute(query, block, ranking.keys, value, options)
            for block, value in zip(blocks, ranking.values, strict=True)
        ),
        function=ranking.function,
        repeats=ranking.repeats,
        k=k,
        algorithm=_algorithm(options),
        bound=options.max_instances,
    )


def _attribute_blocks(
    query: tree.QueryUnit, select: tree.SelectForm, match: MatchRule
) -> tuple[_AttributeBlock, ...]:
    """Return the blocks of a query: the branches of a UNION, or a WINDOW and those in OPTIONAL."""
    elements = select.where.elements
    if any(True for _ in tree.find(select.where, tree.Exists)):
        raise _NotIncompleteError("EXISTS in a filter reads more than the object")
    if query.values is not None:
        raise _NotIncompleteError("VALUES after the query joins data that is not in the stream")
    match elements:
        case (tree.UnionPattern(groups),):
            return tuple(_block(query, g.elements, match, is_optional=False) for g in groups)
        case (tree.WindowPattern(), *_):
            blocks = []
            for element in elements:
                inside = (
                    element.group.elements
                    if isinstance(element, tree.OptionalPattern)
                    else (element,)
                )
                is_optional = isinstance(element, tree.OptionalPattern)
                blocks.append(_block(query, inside, match, is_optional=is_optional))
            if not any(block.is_optional for block in blocks):
                raise _NotIncompleteError("no attribute can be missing, since there is no OPTIONAL")
            return tuple(blocks)
        case _:
            raise _NotIncompleteError(
                "attributes must come from a UNION of WINDOW blocks alone, or from one WINDOW and"
                " others in OPTIONAL"
            )


def _block(
    query: tree.QueryUnit, elements: Sequence[tree.Node], match: MatchRule, *, is_optional: bool
) -> _AttributeBlock:
    match elements:
        case (tree.WindowPattern(tree.Iri(name), group) as clause,):
            pass
        case _:
            raise _NotIncompleteError("the block of an attribute has more than one WINDOW")
    numbers = [n for n, window in enumerate(query.windows) if window.window.value == name]
    if not numbers:
        raise _NotIncompleteError(f"there is no window <{name}>")
    triples = plain_terms([e for e in group.elements if not isinstance(e, tree.FilterClause)])
    if not triples:
        raise _NotIncompleteError("a window has more than plain triple patterns and filters")
    if len(triples) > 1:
        _check_match(query.windows[numbers[0]], match)
    filters = tree.find(group, tree.FilterClause)
    side = StreamSide(tree.Iri(name), triples, any(True for _ in filters))
    return _AttributeBlock(clause, numbers[0], side, is_optional)


def _check_match(window: tree.FromWindow, match: MatchRule) -> None:
    """Raise if the triples of an attribute may come from several elements."""
    if counts_triples(window):
        raise _NotIncompleteError("the window may cut through the triples of an attribute")
    if match == "window":
        raise _NotIncompleteError(
            "the triples of an attribute may arrive in several elements"
            " (--match element rules this out)"
        )


def _algorithm(options: QueryOptions) -> Algorithm:
    if options.operator in ALGORITHMS:
        return ALGORITHMS[options.operator]
    return "EAA" if options.max_instances is None else "approximate"


def _check_windows(query: tree.QueryUnit) -> None:
    """Raise if the order in which two observations expire is not known."""
    counted = [w for w in query.windows if isinstance(w.frame, tree.CountWindow)]
    if counted and len(query.windows) > 1:
        raise _NotIncompleteError(
            "one of several windows counts elements, so the order of expiry is not known"
        )


def _grouped(
    query: tree.QueryUnit,
    select: tree.SelectForm,
    blocks: tuple[_AttributeBlock, ...],
    options: QueryOptions,
) -> _Ranking:
    """Return the ranking of the groups of a UNION."""
    modifiers = select.modifiers
    if not modifiers.group_by:
        raise _NotIncompleteError("a UNION without GROUP BY does not combine attributes")
    if modifiers.having:
        raise _NotIncompleteError("HAVING removes groups")
    keys = []
    for key in modifiers.group_by:
        if not isinstance(key.expression, tree.Var) or key.variable is not None:
            raise _NotIncompleteError("a key of GROUP BY is an expression")
        keys.append(key.expression.name)
    expression = order_expression(select)
    match list(dict.fromkeys(aggregates(expression))):
        case [tree.Aggregate("SUM" | "MAX" as name, tree.Var(value), is_distinct) as aggregate]:
            pass
        case _:
            raise _NotIncompleteError("attributes must be combined by one SUM or MAX of a variable")
    if is_distinct and name == "SUM":
        raise _NotIncompleteError("DISTINCT drops equal values")
    for block in blocks:
        if missing := [each for each in (*keys, value) if each not in block.names]:
            raise _NotIncompleteError(f"a block of the UNION does not bind ?{missing[0]}")
    variable = free_variable(query, "aggregate")

    def renamed(node: tree.Node) -> tree.Node:
        return tree.Var(variable) if node == aggregate else node

    changed: Any = tree.rewrite_tree(expression, renamed)
    weights = _weights(changed, options)
    if set(weights) != {variable}:
        raise _NotIncompleteError("the score depends on more than the aggregate")
    function: ScoreAggregate = "sum" if name == "SUM" else "max"
    return _Ranking(tuple(keys), tuple((value, 1.0) for _ in blocks), function, function)


def _added(
    query: tree.QueryUnit,
    select: tree.SelectForm,
    blocks: tuple[_AttributeBlock, ...],
    options: QueryOptions,
) -> _Ranking:
    """Return the ranking by a weighted sum of the values of OPTIONAL blocks."""
    if select.modifiers.group_by or any(True for _ in aggregates(select.clause)):
        raise _NotIncompleteError("a group over OPTIONAL blocks has several values")
    common = set.intersection(*(set(block.names) for block in blocks))
    if not common:
        raise _NotIncompleteError("the blocks have no variable in common")
    seen = set(common)
    for block in blocks:
        own = set(block.names) - common
        if shared := sorted(own & seen):
            raise _NotIncompleteError(f"?{shared[0]} is in some blocks, but not in all")
        seen |= own
    optional = {n for b in blocks if b.is_optional for n in b.names} - common
    weights = _weights(_without_coalesce(order_expression(select), optional), options)
    values = []
    for block in blocks:
        own = set(block.names) - common
        own_weights = [(name, weight) for name, weight in weights.items() if name in own]
        if len(own_weights) != 1:
            raise _NotIncompleteError("the score must use exactly one value of each block")
        values.append(own_weights[0])
    if others := sorted(set(weights) - {name for name, _ in values}):
        raise _NotIncompleteError(f"the score depends on the key ?{others[0]}")
    keys = tuple(name for name in blocks[0].names if name in common)
    return _Ranking(keys, tuple(values), "sum", "max")


def _without_coalesce(expression: tree.Expression, optional: set[str]) -> tree.Expression:
    """Return a score with a variable in place of each COALESCE(?v, 0).

    Raise if an optional variable occurs without COALESCE.
    """
    coalesced = set()

    def change(node: tree.Node) -> tree.Node:
        match node:
            case tree.BuiltInCall("COALESCE", (tree.Var(name), tree.Literal() as other)) if (
                number(as_term(other)) == 0
            ):
                coalesced.add(name)
                return tree.Var(f"{name} or 0")
            case _:
                return node

    changed: Any = tree.rewrite_tree(expression, change)
    for variable in tree.find(changed, tree.Var):
        if variable.name in optional:
            raise _NotIncompleteError(
                f"the score needs ?{variable.name}, which may be missing: write"
                f" COALESCE(?{variable.name}, 0)"
            )
    back = {f"{name} or 0": name for name in coalesced}

    def restored(node: tree.Node) -> tree.Node:
        return (
            tree.Var(back[node.name]) if isinstance(node, tree.Var) and node.name in back else node
        )

    score: tree.Expression = tree.rewrite_tree(changed, restored)  # type: ignore[assignment]
    return score


def _weights(expression: tree.Expression, options: QueryOptions) -> Mapping[str, float]:
    """Return the weight of each variable of a score; raise if one is not positive."""
    score = scoring_of(expression, options.functions)
    weights = None if score is None else linear(score)
    if weights is None:
        raise _NotIncompleteError("the score is not a weighted sum")
    weights = {name: weight for name, weight in weights.items() if name}
    if wrong := [name for name, weight in weights.items() if not weight > 0]:
        raise _NotIncompleteError(f"the score does not rise with ?{wrong[0]}")
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
    where, functions, side = tree.GroupPattern((block.clause,)), options.functions, block.side
    matching = MatcherConfig(
        side.window.value,
        names,
        side.patterns,
        select_config(query, items, where, functions),
        side.is_filtered,
        Variable(name),
        None if len(side.triples) == 1 else batch_config(query, items, where, functions),
    )
    _, high = options.ranges.get(query.windows[block.scan].stream.value, (0.0, 1.0))
    is_union = isinstance(query.form, tree.SelectForm) and isinstance(
        query.form.where.elements[0], tree.UnionPattern
    )
    return Attribute(
        block.scan,
        matching,
        tuple(map(names.index, keys)),
        names.index(name),
        weight,
        weight * high,
        not block.is_optional and not is_union,
    )
