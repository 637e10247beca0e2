"""Solutions stored as nodes of a graph, one property for each variable, and patterns to read them.

[ <...:user> ?user ; <...:n> ?n ]     where every solution binds each variable
{ SELECT ?user ?n { GRAPH ... { ?row <...:user> ?user OPTIONAL { ?row <...:n> ?n } } } }
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.grammar import tree
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.plan.variables import certain_variables, free_name, scope_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

__all__ = ["node_patterns", "open_node", "read_nodes"]

_TRUE = tree.Literal("true", XSD + "boolean")


def read_nodes(
    group: tree.GroupPattern,
    iri: Callable[[str], str],
    within: Callable[[tree.GroupPattern], tree.GraphPattern | tree.WindowPattern],
    taken: Collection[str],
) -> tree.GraphPattern | tree.WindowPattern | tree.GroupPattern:
    """Return a pattern that reads the solutions of a group from their nodes.

    `iri` maps a variable to its property, and the empty name to the property that marks a node
    without values. `within` puts a pattern into the graph or window of the nodes. Where variables
    may be unbound, the node is a variable, which a sub-query hides.
    """
    names, sure = scope_variables(group), certain_variables(group)
    unsure = tuple(name for name in names if name not in sure)
    if not unsure:
        node = tree.BlankNodeProperties(_properties(names, iri))
        return within(tree.GroupPattern((tree.TriplesBlock((tree.SubjectTriples(node, ()),)),)))
    row = tree.Var(free_name("row", taken))
    known = node_patterns(row, [name for name in names if name in sure], unsure, iri)
    select = tree.SelectClause(tuple(map(tree.Var, names)))
    where = tree.GroupPattern((within(tree.GroupPattern(known)),))
    return tree.GroupPattern((tree.SubSelect(select, where, tree.Modifiers()),))


def open_node(
    group: tree.GroupPattern,
    iri: Callable[[str], str],
    within: Callable[[tree.GroupPattern], tree.WindowPattern],
    node: str,
) -> tree.WindowPattern:
    """Return a pattern that reads solutions without unbound variables, and binds their node."""
    return within(tree.GroupPattern(node_patterns(tree.Var(node), scope_variables(group), (), iri)))


def node_patterns(
    node: tree.Var, sure: Sequence[str], unsure: Sequence[str], iri: Callable[[str], str]
) -> tuple[tree.Pattern, ...]:
    """Return the patterns of a node that binds the `sure` variables and may bind the `unsure`."""
    known = tree.TriplesBlock((tree.SubjectTriples(node, _properties(sure, iri)),))
    others = (
        tree.TriplesBlock((tree.SubjectTriples(node, (_property(name, iri),)),)) for name in unsure
    )
    return (known, *(tree.OptionalPattern(tree.GroupPattern((block,))) for block in others))


def _properties(names: Sequence[str], iri: Callable[[str], str]) -> tuple[tree.Property, ...]:
    properties = tuple(_property(name, iri) for name in names)
    return properties or (tree.Property(tree.Iri(iri("")), (_TRUE,)),)


def _property(name: str, iri: Callable[[str], str]) -> tree.Property:
    return tree.Property(tree.Iri(iri(name)), (tree.Var(name),))
