"""Rules about the answer: its form, its rows, and what they are made of."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from rsp_engine.grammar.expressions import parts, ungrouped_variables
from rsp_engine.grammar.rules.finding import Finding, error, warning
from rsp_engine.grammar.scope import Scopes, group_keys
from rsp_engine.grammar.tree import (
    Bind,
    Construct,
    Describe,
    Filter,
    From,
    Graph,
    Group,
    GroupKey,
    InlineData,
    Node,
    Query,
    Select,
    SelectAs,
    Service,
    SubSelect,
    TriplesBlock,
    Var,
    Window,
    children,
    find,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "conditions_are_bound",
    "default_graph_has_content",
    "describe_is_not_streamable",
    "groups_have_one_value",
    "limit_ranks",
    "variables_are_bound",
]


def describe_is_not_streamable(query: Query) -> Iterator[Finding]:
    """DESCRIBE leaves open what it answers, so answers of two windows cannot be compared."""
    if isinstance(query.form, Describe):
        hint = "write the triples that you want with CONSTRUCT"
        yield error("DESCRIBE cannot be evaluated over a stream", query.form, hint)


def default_graph_has_content(query: Query) -> Iterator[Finding]:
    """A triple pattern outside WINDOW, GRAPH and SERVICE reads the graphs of FROM."""
    if not query.windows or any(isinstance(c, From) for c in query.form.dataset):
        return
    for block in _blocks_of_default_graph(query.form.where):
        hint = "put it into WINDOW :w { ... }, or name a static graph with FROM"
        yield warning("this pattern reads no window, and no graph is given by FROM", block, hint)


def _blocks_of_default_graph(where: Group | None) -> Iterator[TriplesBlock]:
    waiting: list[Node] = [where] if where is not None else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, TriplesBlock):
            yield node
        elif not isinstance(node, Window | Graph | Service):
            waiting.extend(reversed(list(children(node))))


def limit_ranks(query: Query) -> Iterator[Finding]:
    """The first k of solutions in no order are any k."""
    for node in walk(query):
        if not isinstance(node, Select | SubSelect | Construct):
            continue
        if (limit := node.modifiers.limit) is not None:
            if not node.modifiers.order_by:
                hint = "rank them: ORDER BY DESC(?score)"
                yield warning("LIMIT without ORDER BY keeps any rows", limit, hint)
            if limit.value == 0:
                yield warning("LIMIT 0 leaves no row at all", limit)


def variables_are_bound(query: Query) -> Iterator[Finding]:
    """A variable of the answer, or of its order, that nothing binds is empty in every row."""
    modifiers = query.form.modifiers
    is_grouped = bool(modifiers.group_by) and not isinstance(query.form, Select)
    visible = group_keys(modifiers) if is_grouped else Scopes(query).visible
    named: set[str] = set()
    for variable in _answered(query, named):
        if variable.name not in visible | named:
            yield _unbound(variable, visible | named)


def conditions_are_bound(query: Query) -> Iterator[Finding]:
    """A condition on a variable that nothing binds fails for every solution."""
    nodes = list(walk(query))
    named = {n.variable.name for n in nodes if isinstance(n, Bind | SelectAs)}
    named |= {n.variable.name for n in nodes if isinstance(n, GroupKey) and n.variable}
    binding = [n for n in nodes if isinstance(n, TriplesBlock | InlineData)]
    names = [n.name for n in nodes if isinstance(n, Window | Graph | Service)]
    bound = named | {v.name for node in (*binding, *names) for v in find(node, Var)}
    for node in nodes:
        if isinstance(node, Filter | Bind):
            condition = node.condition if isinstance(node, Filter) else node.expression
            for variable in (v for v in parts(condition) if isinstance(v, Var)):
                if variable.name not in bound:
                    yield _unbound(variable, bound)


def _unbound(variable: Var, bound: set[str]) -> Finding:
    close = get_close_matches(variable.name, sorted(bound), n=1)
    hint = f"did you mean ?{close[0]}?" if close else None
    return warning(f"nothing binds ?{variable.name}", variable, hint)


def groups_have_one_value(query: Query) -> Iterator[Finding]:
    """A group has no value for a variable that is not in GROUP BY, so it cannot be ranked by it."""
    bound = Scopes(query).visible
    for node in walk(query):
        if not isinstance(node, Select | SubSelect) or not node.modifiers.group_by:
            continue
        named = {item.variable.name for item in node.clause.items if isinstance(item, SelectAs)}
        conditions = (*node.modifiers.having, *(o.expression for o in node.modifiers.order_by))
        for variable in (v for c in conditions for v in ungrouped_variables(c)):
            if variable.name in bound - group_keys(node.modifiers) - named:
                hint = f"add ?{variable.name} to GROUP BY, or write MAX(?{variable.name})"
                yield warning(f"?{variable.name} has no value in a group", variable, hint)


def _answered(query: Query, named: set[str]) -> Iterator[Var]:
    match query.form:
        case Select(clause):
            for item in clause.items:
                yield from ungrouped_variables(
                    item.expression if isinstance(item, SelectAs) else item
                )
                if isinstance(item, SelectAs):
                    named.add(item.variable.name)
        case Construct(template) if template is not None:
            yield from (node for node in walk(template) if isinstance(node, Var))
        case _:
            pass
    for condition in query.form.modifiers.order_by:
        yield from ungrouped_variables(condition.expression)
