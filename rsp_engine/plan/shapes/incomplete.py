"""Which ranked queries collect attributes of objects, from streams that do not wait for each other.

The same key in all blocks (see `attributes`), over windows of time, or over one window that counts;
one condition of ORDER BY, descending, and LIMIT. Either groups by the key, and ranks by the SUM or
the MAX of the one variable that has the values in all blocks; or adds up the values of the blocks,
with weights above zero, where COALESCE(?v, 0) stands for one that may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.incomplete import Attribute, IncompleteConfig
from rsp_engine.grammar import tree
from rsp_engine.grammar.expressions import aggregates
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
from rsp_engine.operators.sparql.pane_matcher import Matching
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.shapes.attributes import (
    AttributeBlock,
    NotIncompleteError,
    blocks_of,
)
from rsp_engine.plan.shapes.topk import (
    WhyNot,
    asked_of,
    free_variable,
    order_expression,
    together_of,
    topk_refusals,
)
from rsp_engine.plan.sparql.general import as_term, sparql_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rsp_engine.evaluators.incomplete import Algorithm
    from rsp_engine.operators.incomplete.observations import ScoreAggregate
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.plan.options import OperatorName, QueryOptions

__all__ = ["ALGORITHMS", "incomplete_path", "linear", "refuse_undeclared"]

ALGORITHMS: dict[OperatorName, Algorithm] = {
    "eaa": "EAA",
    "sla": "SLA",
    "approximate": "approximate",
    "oracle": "Oracle",
}


@dataclass(frozen=True, slots=True)
class _Ranked:
    """How attributes are ranked: the key, the variable and the weight of each, and the functions.

    `values` has an entry for each block.
    """

    keys: tuple[str, ...]
    values: tuple[tuple[str, float], ...]
    function: ScoreAggregate
    repeats: ScoreAggregate


def incomplete_path(query: tree.QueryUnit, options: QueryOptions) -> IncompleteConfig | WhyNot:
    """Return the configuration of the operator for such queries, or why there is none."""
    try:
        return _config(query, options)
    except NotIncompleteError as error:
        return WhyNot(str(error))


def refuse_undeclared(options: QueryOptions, chosen: Iterable[SparqlConfig]) -> None:
    """Raise if a range or a bound is given that no query has a use for."""
    found = [config for config in chosen if isinstance(config, IncompleteConfig)]
    what = "ranked queries that collect attributes from several streams; `explain` tells which are"
    if options.max_instances is not None and not any(c.is_approximate for c in found):
        raise BindingError("no query keeps instances that could be bounded", f"it is for {what}")
    read = {stream for config in found for stream in config.streams}
    for stream in sorted(set(options.ranges) - read):
        raise BindingError(f"no query collects attributes from stream <{stream}>", f"for {what}")


def _config(query: tree.QueryUnit, options: QueryOptions) -> IncompleteConfig:
    select = query.form
    if not isinstance(select, tree.SelectForm):
        raise NotIncompleteError("only a SELECT can rank")
    if refusal := next(topk_refusals(select), None):
        raise NotIncompleteError(refusal.reason)
    blocks = blocks_of(query, select, options.match)
    _check_windows(query)
    modifiers = select.modifiers
    if not modifiers.order_by[0].descending:
        raise NotIncompleteError("smaller is better, and what is missing counts as zero")
    is_union = isinstance(select.where.elements[0], tree.UnionPattern)
    ranked = (_grouped if is_union else _added)(query, select, blocks, options)
    base = sparql_path(query, options.functions)
    assert modifiers.limit is not None, "a ranking has a limit"  # noqa: S101
    offset = 0 if modifiers.offset is None else modifiers.offset.value
    k = offset + modifiers.limit.value
    if options.max_instances is not None and options.max_instances < k:
        raise BindingError(
            f"{options.max_instances} instances have no room for the {k} best objects",
            "keep more of them, or ask for fewer",
        )
    return IncompleteConfig(
        **{field.name: getattr(base, field.name) for field in fields(base)},
        windows=tuple(window.window.value for window in query.windows),
        streams=tuple(query.windows[block.scan].stream.value for block in blocks),
        attributes=tuple(
            _attribute(query, block, ranked.keys, value, options)
            for block, value in zip(blocks, ranked.values, strict=True)
        ),
        function=ranked.function,
        repeats=ranked.repeats,
        k=k,
        algorithm=_algorithm(options),
        bound=options.max_instances,
    )


def _algorithm(options: QueryOptions) -> Algorithm:
    if options.operator in ALGORITHMS:
        return ALGORITHMS[options.operator]
    return "EAA" if options.max_instances is None else "approximate"


def _check_windows(query: tree.QueryUnit) -> None:
    """Raise why it is not known which of two observations expires first."""
    counted = [w for w in query.windows if isinstance(w.frame, tree.CountWindow)]
    if counted and len(query.windows) > 1:
        raise NotIncompleteError(
            "a window counts, beside another one: which observation expires first is not known"
        )


def _grouped(
    query: tree.QueryUnit,
    select: tree.SelectForm,
    blocks: tuple[AttributeBlock, ...],
    options: QueryOptions,
) -> _Ranked:
    """Return how the groups of a UNION are ranked."""
    modifiers = select.modifiers
    if not modifiers.group_by:
        raise NotIncompleteError("a UNION without GROUP BY does not put attributes together")
    if modifiers.having:
        raise NotIncompleteError("HAVING leaves groups out")
    keys = []
    for key in modifiers.group_by:
        if not isinstance(key.expression, tree.Var) or key.variable is not None:
            raise NotIncompleteError("GROUP BY makes a key of an expression")
        keys.append(key.expression.name)
    expression = order_expression(select)
    match list(dict.fromkeys(aggregates(expression))):
        case [tree.Aggregate("SUM" | "MAX" as name, tree.Var(value), is_distinct) as aggregate]:
            pass
        case _:
            raise NotIncompleteError("attributes are put together by one SUM or MAX of a variable")
    if is_distinct and name == "SUM":
        raise NotIncompleteError("DISTINCT leaves values out that are equal")
    for block in blocks:
        if missing := [each for each in (*keys, value) if each not in block.names]:
            raise NotIncompleteError(f"a block of the UNION does not have ?{missing[0]}")
    variable = free_variable(query, "aggregate")

    def renamed(node: tree.Node) -> tree.Node:
        return tree.Var(variable) if node == aggregate else node

    changed: Any = tree.rewrite_tree(expression, renamed)
    weights = _weights(changed, options)
    if set(weights) != {variable}:
        raise NotIncompleteError("the score depends on more than the aggregate")
    function: ScoreAggregate = "sum" if name == "SUM" else "max"
    return _Ranked(tuple(keys), tuple((value, 1.0) for _ in blocks), function, function)


def _added(
    query: tree.QueryUnit,
    select: tree.SelectForm,
    blocks: tuple[AttributeBlock, ...],
    options: QueryOptions,
) -> _Ranked:
    """Return how the values of OPTIONAL blocks are added up."""
    if select.modifiers.group_by or any(True for _ in aggregates(select.clause)):
        raise NotIncompleteError("groups of what OPTIONAL puts together have several values")
    common = set.intersection(*(set(block.names) for block in blocks))
    if not common:
        raise NotIncompleteError("the blocks have no variable in common")
    seen = set(common)
    for block in blocks:
        own = set(block.names) - common
        if shared := sorted(own & seen):
            raise NotIncompleteError(f"?{shared[0]} is in some blocks, but not in all")
        seen |= own
    optional = {n for b in blocks if b.is_optional for n in b.names} - common
    weights = _weights(_without_coalesce(order_expression(select), optional), options)
    values = []
    for block in blocks:
        own = set(block.names) - common
        found = [(name, weight) for name, weight in weights.items() if name in own]
        if len(found) != 1:
            raise NotIncompleteError("the score needs exactly one value of each block")
        values.append(found[0])
    if others := sorted(set(weights) - {name for name, _ in values}):
        raise NotIncompleteError(f"the score depends on the key ?{others[0]}")
    keys = tuple(name for name in blocks[0].names if name in common)
    return _Ranked(keys, tuple(values), "sum", "max")


def _without_coalesce(expression: tree.Expression, optional: set[str]) -> tree.Expression:
    """Return a score in which what may be missing is a variable; raise if it has no COALESCE."""
    told = set()

    def change(node: tree.Node) -> tree.Node:
        match node:
            case tree.BuiltInCall("COALESCE", (tree.Var(name), tree.Literal() as other)) if (
                number(as_term(other)) == 0
            ):
                told.add(name)
                return tree.Var(f"{name} or 0")
            case _:
                return node

    changed: Any = tree.rewrite_tree(expression, change)
    for variable in tree.find(changed, tree.Var):
        if variable.name in optional:
            raise NotIncompleteError(
                f"the score needs ?{variable.name}, which may be missing: say"
                f" COALESCE(?{variable.name}, 0)"
            )
    back = {f"{name} or 0": name for name in told}

    def restored(node: tree.Node) -> tree.Node:
        return (
            tree.Var(back[node.name]) if isinstance(node, tree.Var) and node.name in back else node
        )

    found: tree.Expression = tree.rewrite_tree(changed, restored)  # type: ignore[assignment]
    return found


def _weights(expression: tree.Expression, options: QueryOptions) -> Mapping[str, float]:
    """Return the weights of the variables of a score, or raise why they are not all above zero."""
    found = scoring_of(expression, options.functions)
    weights = None if found is None else linear(found)
    if weights is None:
        raise NotIncompleteError("the score is more than a sum with weights")
    weights = {name: weight for name, weight in weights.items() if name}
    if wrong := [name for name, weight in weights.items() if not weight > 0]:
        raise NotIncompleteError(f"the score does not rise with ?{wrong[0]}")
    return weights


def linear(score: Scoring) -> dict[str, float] | None:
    """Return the weights of the variables of a sum, with what is constant under no name.

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
            found = linear(left)
            return None if found is None else {n: weight / divisor for n, weight in found.items()}
        case Negate(operand):
            found = linear(operand)
            return None if found is None else {n: -weight for n, weight in found.items()}
        case _:
            return None


def _attribute(
    query: tree.QueryUnit,
    block: AttributeBlock,
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
    matching = Matching(
        side.window.value,
        names,
        side.patterns,
        asked_of(query, items, where, functions),
        side.is_filtered,
        Variable(name),
        None if len(side.triples) == 1 else together_of(query, items, where, functions),
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
