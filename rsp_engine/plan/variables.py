"""The variables of a pattern: named in it, in scope, or bound in every solution."""

from __future__ import annotations

from functools import reduce
from typing import assert_never

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import group_keys, is_grouped, projected_variables

__all__ = ["certain_variables", "named_variables", "visible_variables"]

Element = tree.Pattern | tree.SubSelect


def named_variables(node: tree.Node) -> set[str]:
    """Return all variables that occur in a node."""
    return {variable.name for variable in tree.find(node, tree.Var)}


def visible_variables(*elements: Element) -> set[str]:
    """Return the variables that elements of a group bring into scope."""
    everything = tree.SelectClause(())
    return set(projected_variables(everything, tree.GroupPattern(elements), tree.Modifiers()))


def certain_variables(*elements: Element) -> set[str]:
    """Return variables that are bound in every solution of the elements of a group.

    The result is conservative: it leaves out a variable that may be unbound, such as that of a
    BIND, whose expression may fail.
    """
    return set[str]().union(*map(_certain, elements))


def _certain(element: Element) -> set[str]:
    match element:
        case tree.TriplesBlock():
            return named_variables(element)
        case tree.GroupPattern(elements):
            return certain_variables(*elements)
        case tree.UnionPattern(groups):
            return reduce(set.intersection, map(_certain, groups))
        case (
            tree.GraphPattern(name, group)
            | tree.WindowPattern(name, group)
            | tree.ServicePattern(name, group)
        ):
            return _certain(group) | named_variables(name)
        case tree.InlineData(variables, rows):
            columns = range(len(variables))
            return {variables[c].name for c in columns if all(row[c] is not None for row in rows)}
        case tree.SubSelect():
            return _certain_of_select(element)
        case tree.OptionalPattern() | tree.MinusPattern() | tree.FilterClause() | tree.Bind():
            return set()
        case _ as unreachable:
            assert_never(unreachable)


def _certain_of_select(select: tree.SubSelect) -> set[str]:
    inside = _certain(select.where)
    if is_grouped(select.clause, select.modifiers):
        inside &= group_keys(select.modifiers)
    if select.values is not None:
        inside |= _certain(select.values)
    items = select.clause.items
    return inside & {item.name for item in items if isinstance(item, tree.Var)} if items else inside
