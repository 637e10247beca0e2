"""Solutions as nodes of a graph with a property for each variable, and patterns that read them.

[ <...:user> ?user ; <...:n> ?n ]     where each variable has a value in every solution
{ SELECT ?user ?n { GRAPH ... { ?row <...:user> ?user OPTIONAL { ?row <...:n> ?n } } } }
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from rsp_engine.grammar import tree
from rsp_engine.model.terms.term import XSD
from rsp_engine.plan.variables import certain_variables, visible_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

__all__ = ["described", "free_name", "in_text", "open_node", "read_nodes"]

_TRUE = tree.Literal("true", XSD + "boolean")


def free_name(stem: str, taken: Collection[str]) -> str:
    """Return a variable that is not taken.

    >>> free_name("row", {"rsp_row"})
    'rsp_row1'
    """
    return next(name for n in count() if (name := f"rsp_{stem}{n or ''}") not in taken)


def in_text(group: tree.GroupPattern) -> tuple[str, ...]:
    """Return the variables that a group brings into scope, in the order of the text."""
    seen = visible_variables(group)
    return tuple(dict.fromkeys(v.name for v in tree.find(group, tree.Var) if v.name in seen))


def read_nodes(
    group: tree.GroupPattern,
    iri: Callable[[str], str],
    within: Callable[[tree.GroupPattern], tree.GraphPattern | tree.WindowPattern],
    taken: Collection[str],
) -> tree.GraphPattern | tree.WindowPattern | tree.GroupPattern:
    """Return a pattern that reads the solutions of a group from their nodes.

    `iri` has the property of each variable, that of no name marks a node without values. `within`
    is where the nodes are. Where variables may have no value, the node is a variable, and a
    sub-query hides it.
    """
    names, sure = in_text(group), certain_variables(group)
    unsure = tuple(name for name in names if name not in sure)
    if not unsure:
        node = tree.BlankNodeProperties(_properties(names, iri))
        return within(tree.GroupPattern((tree.TriplesBlock((tree.SubjectTriples(node, ()),)),)))
    row = tree.Var(free_name("row", taken))
    known = described(row, [name for name in names if name in sure], unsure, iri)
    select = tree.SelectClause(tuple(map(tree.Var, names)))
    where = tree.GroupPattern((within(tree.GroupPattern(known)),))
    return tree.GroupPattern((tree.SubSelect(select, where, tree.Modifiers()),))


def open_node(
    group: tree.GroupPattern,
    iri: Callable[[str], str],
    within: Callable[[tree.GroupPattern], tree.WindowPattern],
    node: str,
) -> tree.WindowPattern:
    """Return a pattern that reads solutions in which all variables have values; it has the node."""
    return within(tree.GroupPattern(described(tree.Var(node), in_text(group), (), iri)))


def described(
    node: tree.Var, sure: Sequence[str], unsure: Sequence[str], iri: Callable[[str], str]
) -> tuple[tree.Pattern, ...]:
    """Return the patterns of a node that has some variables, and may have others."""
    known = tree.TriplesBlock((tree.SubjectTriples(node, _properties(sure, iri)),))
    others = (
        tree.TriplesBlock((tree.SubjectTriples(node, (_property(name, iri),)),)) for name in unsure
    )
    return (known, *(tree.OptionalPattern(tree.GroupPattern((block,))) for block in others))


def _properties(names: Sequence[str], iri: Callable[[str], str]) -> tuple[tree.Property, ...]:
    found = tuple(_property(name, iri) for name in names)
    return found or (tree.Property(tree.Iri(iri("")), (_TRUE,)),)


def _property(name: str, iri: Callable[[str], str]) -> tree.Property:
    return tree.Property(tree.Iri(iri(name)), (tree.Var(name),))
