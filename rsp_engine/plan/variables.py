"""The variables of a pattern: named in it, in scope, or bound in every solution; and new ones."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, assert_never

from rsp_engine.grammar import tree
from rsp_engine.plan.logical import algebra as logical
from rsp_engine.plan.logical.translate import translate_group

if TYPE_CHECKING:
    from collections.abc import Collection

    from rsp_engine.plan.logical.algebra import Logical

__all__ = [
    "certain_variables",
    "free_name",
    "named_variables",
    "scope_variables",
    "visible_variables",
]

Element = tree.Pattern | tree.SubSelect


def named_variables(node: tree.Node) -> set[str]:
    """Return all variables that occur in a node."""
    return {variable.name for variable in tree.find(node, tree.Var)}


def free_name(stem: str, taken: Collection[str]) -> str:
    """Return the name of a variable that is not taken.

    >>> free_name("row", {"rsp_row"})
    'rsp_row1'
    """
    return next(name for n in count() if (name := f"rsp_{stem}{n or ''}") not in taken)


def scope_variables(group: tree.GroupPattern) -> tuple[str, ...]:
    """Return the variables in scope of a group, in the order of the text."""
    seen = visible_variables(group)
    return tuple(dict.fromkeys(v.name for v in tree.find(group, tree.Var) if v.name in seen))


def visible_variables(*elements: Element | Logical) -> set[str]:
    """Return the variables that a plan, or elements of a group, bring into scope."""
    return _variables(_translated(elements), is_certain=False)


def certain_variables(*elements: Element | Logical) -> set[str]:
    """Return variables that are bound in every solution of a plan, or of elements of a group.

    The result is conservative: it leaves out a variable that may be unbound, such as that of a
    BIND, whose expression may fail.
    """
    return _variables(_translated(elements), is_certain=True)


def _translated(elements: tuple[Element | Logical, ...]) -> Logical:
    match elements:
        case (logical.LogicalNode() as node,):
            return node
        case _:
            return translate_group(tree.GroupPattern(elements))  # type: ignore[arg-type]


def _variables(node: Logical, *, is_certain: bool) -> set[str]:
    def of(below: Logical) -> set[str]:
        return _variables(below, is_certain=is_certain)

    match node:
        case logical.Bgp(triples):
            return {t.name for triple in triples for t in triple if isinstance(t, tree.Var)}
        case logical.Join(left, right):
            return of(left) | of(right)
        case logical.LeftJoin(left, right):
            return of(left) if is_certain else of(left) | of(right)
        case logical.Union(left, right):
            return of(left) & of(right) if is_certain else of(left) | of(right)
        case (
            logical.Graph(name, below) | logical.Window(name, below) | logical.Service(name, below)
        ):
            return of(below) | named_variables(name)
        case logical.Values(tree.InlineData(variables, rows)):
            columns = enumerate(variables)
            return {
                v.name
                for n, v in columns
                if not (is_certain and any(row[n] is None for row in rows))
            }
        case logical.Extend(below, variable):
            return of(below) if is_certain else of(below) | {variable.name}
        case logical.Group(keys, below):
            names = (name for key in keys for name in (key.expression, key.variable))
            return of(below) & {name.name for name in names if isinstance(name, tree.Var)}
        case logical.Project(variables, below):
            return of(below) & set(variables) if is_certain else set(variables)
        case (
            logical.Minus(below) | logical.Filter(_, below) | logical.OrderBy(_, below)
            | logical.Distinct(below) | logical.Reduced(below) | logical.Slice(below)
            | logical.Construct(_, below) | logical.Ask(below) | logical.Stream(_, below)
        ):  # fmt: skip
            return of(below)
        case _ as unreachable:
            assert_never(unreachable)
