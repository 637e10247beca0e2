"""Named expressions over groups: `SELECT (COUNT(?v) AS ?m) (?m * 2 AS ?k) ... ORDER BY DESC(?m)`.

A later expression of SELECT, HAVING and ORDER BY may use the name of an earlier one. Oxigraph
rejects this where solutions are grouped, and its HAVING does not see the names. So a sub-query
computes the groups and their aggregates, and the outer query computes the rest: SELECT extends,
then HAVING filters (SPARQL 1.1, section 18.2.4).

    SELECT ?s (COUNT(?v) AS ?m) (?m * 2 AS ?k) WHERE { P } GROUP BY ?s HAVING (?m > 1)

    SELECT ?s ?m ?k WHERE {
      { SELECT ?s (COUNT(?v) AS ?rsp_aggregate) WHERE { P } GROUP BY ?s }
      BIND (?rsp_aggregate AS ?m) BIND (?m * 2 AS ?k) FILTER (?m > 1)
    }
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, cast

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import aggregates, group_keys, is_aggregate, is_grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["with_separate_groups"]


def with_separate_groups(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query in which no expression over groups uses the name of another expression."""
    taken = {variable.name for variable in tree.find(query, tree.Var)}
    names = (f"rsp_aggregate{n or ''}" for n in count())
    fresh = (name for name in names if name not in taken)

    def change(node: tree.Node) -> tree.Node:
        if isinstance(node, tree.SubSelect):
            return _separated(node, fresh)
        if isinstance(node, tree.QueryUnit) and isinstance(form := node.form, tree.SelectForm):
            whole = tree.SubSelect(form.clause, form.where, form.modifiers, node.values)
            split = _separated(whole, fresh)
            select = tree.SelectForm(split.clause, form.dataset, split.where, split.modifiers)
            return replace(node, form=replace(select, span=form.span), values=split.values)
        return node

    return cast("tree.QueryUnit", tree.rewrite_tree(query, change))


def _separated(select: tree.SubSelect, fresh: Iterator[str]) -> tree.SubSelect:
    """Return a SELECT whose groups are in a sub-query; the SELECT itself if Oxigraph accepts it."""
    modifiers = select.modifiers
    grouped = is_grouped(select.clause, modifiers)
    named = [item for item in select.clause.items if isinstance(item, tree.SelectAs)]
    moves_having = bool(_free_variables(modifiers.having) & _names(named))
    if not moves_having and not (grouped and _uses_names(named, modifiers)):
        return select
    conditions = modifiers.having if moves_having else ()
    outer_parts = (*named, *conditions, *modifiers.order_by)
    distinct = dict.fromkeys(a for part in outer_parts for a in aggregates(part))
    variables = {aggregate: tree.Var(next(fresh)) for aggregate in distinct}

    def renamed(node: tree.Node) -> tree.Node | None:
        return node if isinstance(node, tree.Exists) else variables.get(node)

    def outer(expression: tree.Expression) -> tree.Expression:
        return cast("tree.Expression", tree.rewrite_outermost(expression, renamed))

    inner = replace(modifiers, having=() if moves_having else modifiers.having)
    groups = tree.GroupPattern((_groups(select.where, inner, variables, tree.Var(next(fresh))),))
    values = () if select.values is None else (select.values,)
    binds = (tree.Bind(outer(item.expression), item.variable) for item in named)
    filters = (tree.FilterClause(outer(condition)) for condition in conditions)
    order = (replace(c, expression=outer(c.expression)) for c in modifiers.order_by)
    items = (i.variable if isinstance(i, tree.SelectAs) else i for i in select.clause.items)
    return tree.SubSelect(
        replace(select.clause, items=tuple(items)),
        tree.GroupPattern((groups if grouped else select.where, *values, *binds, *filters)),
        replace(modifiers, group_by=(), having=(), order_by=tuple(order)),
    )


def _groups(
    where: tree.GroupPattern,
    modifiers: tree.Modifiers,
    variables: Mapping[tree.Node, tree.Var],
    unused: tree.Var,
) -> tree.SubSelect:
    """Return a sub-query with the keys and the aggregates of each group."""
    keys = map(tree.Var, sorted(group_keys(modifiers)))
    values = (tree.SelectAs(cast("tree.Expression", a), v) for a, v in variables.items())
    items: tuple[tree.Var | tree.SelectAs, ...] = (*keys, *values)
    clause = tree.SelectClause(items or (tree.SelectAs(tree.ONE, unused),))
    return tree.SubSelect(clause, where, tree.Modifiers(modifiers.group_by, modifiers.having))


def _uses_names(named: list[tree.SelectAs], modifiers: tree.Modifiers) -> bool:
    """Return whether an expression uses a variable that is neither a key nor aggregated.

    A condition of ORDER BY that is the name of an expression does not count: Oxigraph supports it.
    """
    if any(_free_variables([item]) & _names(named[:n]) for n, item in enumerate(named)):
        return True
    order = [condition.expression for condition in modifiers.order_by]
    alone = [e for e in order if isinstance(e, tree.Var) and e.name in _names(named)]
    return bool(_free_variables(e for e in order if e not in alone) - group_keys(modifiers))


def _names(items: Iterable[tree.SelectAs]) -> set[str]:
    return {item.variable.name for item in items}


def _free_variables(expressions: Iterable[tree.Node]) -> set[str]:
    """Return the variables outside aggregates, including those in the patterns of EXISTS."""
    names, waiting = set[str](), list(expressions)
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Var):
            names.add(node.name)
        elif not is_aggregate(node):
            waiting.extend(tree.children(node))
    return names
