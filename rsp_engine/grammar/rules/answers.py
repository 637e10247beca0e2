"""Rules about answers: the query form, LIMIT, and unbound or ungrouped variables."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from rsp_engine.grammar.rules.finding import Finding, error, warning
from rsp_engine.grammar.scope import (
    Scopes,
    aggregates,
    group_keys,
    is_grouped,
    parts,
    projected_variables,
    ungrouped_variables,
)
from rsp_engine.grammar.tree import (
    AskForm,
    Bind,
    ConstructForm,
    DescribeForm,
    FilterClause,
    GraphPattern,
    GroupKey,
    InlineData,
    Modifiers,
    Node,
    QueryUnit,
    SelectAs,
    SelectClause,
    SelectForm,
    ServicePattern,
    SubSelect,
    TriplesBlock,
    Var,
    WindowPattern,
    find,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "conditions_are_bound",
    "describe_is_not_streamable",
    "groups_have_one_value",
    "limit_ranks",
    "modifiers_are_bound",
    "variables_are_bound",
]


def describe_is_not_streamable(query: QueryUnit) -> Iterator[Finding]:
    """SPARQL does not define the answer of DESCRIBE, so two windows cannot be compared."""
    if isinstance(query.form, DescribeForm):
        hint = "write the triples that you want with CONSTRUCT"
        yield error("DESCRIBE cannot be evaluated over a stream", query.form, hint)


def limit_ranks(query: QueryUnit) -> Iterator[Finding]:
    """LIMIT without ORDER BY keeps an arbitrary set of solutions."""
    for node in walk(query):
        if not isinstance(node, SelectForm | SubSelect | ConstructForm):
            continue
        if (limit := node.modifiers.limit) is not None:
            if not node.modifiers.order_by:
                hint = "rank them: ORDER BY DESC(?score)"
                yield warning("LIMIT without ORDER BY keeps arbitrary rows", limit, hint)
            if limit.value == 0:
                yield warning("LIMIT 0 returns no rows", limit)


def variables_are_bound(query: QueryUnit) -> Iterator[Finding]:
    """A projected variable that nothing binds is empty in every row."""
    modifiers = query.form.modifiers
    has_groups = is_grouped(SelectClause(()), modifiers) and not isinstance(query.form, SelectForm)
    visible = group_keys(modifiers) if has_groups else Scopes(query).visible
    named: set[str] = set()
    for variable in _projected(query, named):
        if variable.name not in visible | named:
            yield _unbound(variable, visible | named)


def modifiers_are_bound(query: QueryUnit) -> Iterator[Finding]:
    """GROUP BY, HAVING and ORDER BY need bound variables to distinguish solutions."""
    for node in _local_selects(query):
        clause, modifiers = _clause(node), node.modifiers
        inside = set(projected_variables(SelectClause(()), node.where, Modifiers()))
        named = {item.variable.name for item in clause.items if isinstance(item, SelectAs)}
        keys = {key.variable.name for key in modifiers.group_by if key.variable is not None}
        after = inside | named | keys | _trailing_values(query, node)
        for key in modifiers.group_by:
            yield from _unbound_among(ungrouped_variables(key.expression), inside)
        conditions = (*modifiers.having, *(o.expression for o in modifiers.order_by))
        for condition in conditions:
            yield from _unbound_among(ungrouped_variables(condition), after)
        calls = (call for part in (*clause.items, *conditions) for call in aggregates(part))
        aggregated = [part for call in calls for part in parts(call) if isinstance(part, Var)]
        yield from _unbound_among((v for v in aggregated if v.name not in named), inside)
        for variable in (v for v in aggregated if v.name in named):
            message = f"?{variable.name} has no value inside an aggregate, which is computed first"
            yield warning(message, variable, "compute it in a sub-query")


def _unbound_among(variables: Iterable[Var], bound: set[str]) -> Iterator[Finding]:
    return (_unbound(variable, bound) for variable in variables if variable.name not in bound)


def _local_selects(query: QueryUnit) -> Iterator[SelectForm | SubSelect | ConstructForm | AskForm]:
    """Yield the query and its sub-queries, except those inside SERVICE, which run remotely."""
    remote = {id(node) for service in find(query, ServicePattern) for node in walk(service)}
    for node in walk(query):
        if (
            isinstance(node, SelectForm | SubSelect | ConstructForm | AskForm)
            and id(node) not in remote
        ):
            yield node


def _clause(node: SelectForm | SubSelect | ConstructForm | AskForm) -> SelectClause:
    return node.clause if isinstance(node, SelectForm | SubSelect) else SelectClause(())


def conditions_are_bound(query: QueryUnit) -> Iterator[Finding]:
    """A FILTER or BIND over a variable that nothing binds fails for every solution."""
    nodes = list(walk(query))
    named = {n.variable.name for n in nodes if isinstance(n, Bind | SelectAs)}
    named |= {n.variable.name for n in nodes if isinstance(n, GroupKey) and n.variable}
    binding = [n for n in nodes if isinstance(n, TriplesBlock | InlineData)]
    names = [n.name for n in nodes if isinstance(n, WindowPattern | GraphPattern | ServicePattern)]
    bound = named | {v.name for node in (*binding, *names) for v in find(node, Var)}
    for node in nodes:
        if isinstance(node, FilterClause | Bind):
            condition = node.condition if isinstance(node, FilterClause) else node.expression
            for variable in (v for v in parts(condition) if isinstance(v, Var)):
                if variable.name not in bound:
                    yield _unbound(variable, bound)


def _unbound(variable: Var, bound: set[str]) -> Finding:
    close = get_close_matches(variable.name, sorted(bound), n=1)
    hint = f"did you mean ?{close[0]}?" if close else None
    return warning(f"nothing binds ?{variable.name}", variable, hint)


def groups_have_one_value(query: QueryUnit) -> Iterator[Finding]:
    """A variable that is not in GROUP BY has no single value per group.

    SPARQL takes an arbitrary sample of its values then.
    """
    for node in _local_selects(query):
        clause = _clause(node)
        if not is_grouped(clause, node.modifiers):
            continue
        named = {item.variable.name for item in clause.items if isinstance(item, SelectAs)}
        inside = projected_variables(SelectClause(()), node.where, Modifiers())
        single = group_keys(node.modifiers) | named | _trailing_values(query, node)
        ungrouped = set(inside) - single
        conditions = (*node.modifiers.having, *(o.expression for o in node.modifiers.order_by))
        for variable in (v for c in conditions for v in ungrouped_variables(c)):
            if variable.name in ungrouped:
                hint = f"add ?{variable.name} to GROUP BY, or write MAX(?{variable.name})"
                message = f"?{variable.name} is neither in GROUP BY nor inside an aggregate"
                yield error(message, variable, hint)


def _trailing_values(query: QueryUnit, node: Node) -> set[str]:
    """Return the variables of the VALUES after a query, which is joined to its groups."""
    values = node.values if isinstance(node, SubSelect) else query.values
    return set() if values is None else {variable.name for variable in values.variables}


def _projected(query: QueryUnit, named: set[str]) -> Iterator[Var]:
    """Yield the variables that the answer uses; add each name of AS to `named` after its use."""
    match query.form:
        case SelectForm(clause):
            for item in clause.items:
                yield from ungrouped_variables(
                    item.expression if isinstance(item, SelectAs) else item
                )
                if isinstance(item, SelectAs):
                    named.add(item.variable.name)
        case ConstructForm(template) if template is not None:
            yield from (node for node in walk(template) if isinstance(node, Var))
        case _:
            pass
