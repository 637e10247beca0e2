"""The SPARQL texts of rankings: over panes, over elements, and over objects for rows and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rsp_engine.grammar import tree
from rsp_engine.operators.scoring.scoring_function import variables
from rsp_engine.operators.sparql.pane_matcher import MatcherConfig
from rsp_engine.operators.sparql.projector import OBJECTS, variable_iri
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.sparql.general import ElementGraph, sparql_path
from rsp_engine.plan.sparql.solution_nodes import node_patterns
from rsp_engine.plan.term_filters import term_filters
from rsp_engine.plan.variables import free_name, named_variables

if TYPE_CHECKING:
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.plan.shapes.ranking import StreamSide

__all__ = [
    "Functions",
    "batch_config",
    "free_variable",
    "matching_of",
    "object_config",
    "projection",
    "select_config",
]

Functions = Mapping[str, Callable[..., Any]]


def matching_of(
    query: tree.QueryUnit, side: StreamSide, number: tree.Expression, functions: Functions
) -> MatcherConfig:
    """Return how to match the solutions of a pane, and to compute a number for each of them."""
    select = query.form
    assert isinstance(select, tree.SelectForm), "only a SELECT ranks"  # noqa: S101
    names: tuple[tree.Var | tree.SelectAs, ...] = tuple(map(tree.Var, side.names))
    items = (*names, tree.SelectAs(number, tree.Var(free_variable(query, "number"))))
    scored = scoring_of(number, functions)
    if scored is not None and not set(variables(scored)) <= set(side.names):
        scored = None  # Oxigraph handles an unbound variable
    return MatcherConfig(
        side.window.value,
        side.names,
        side.patterns,
        select_config(query, items, select.where, functions),
        term_filters(side.filters, side.names),
        scored,
        None if len(side.triples) == 1 else batch_config(query, items, select.where, functions),
    )


def batch_config(
    query: tree.QueryUnit,
    items: tuple[tree.Var | tree.SelectAs, ...],
    where: tree.GroupPattern,
    functions: Functions,
) -> SparqlConfig | None:
    """Return a query over many elements at once, with the graph of the element as the last column.

    There is none with EXISTS, which may read static graphs: the store of elements has none.
    """
    if any(True for _ in tree.find(where, tree.Exists)):
        return None
    graph = tree.Var(free_variable(query, "element"))

    def of_elements(node: tree.Node) -> tree.Node:
        return ElementGraph(graph, node.group) if isinstance(node, tree.WindowPattern) else node

    changed: Any = tree.rewrite_tree(where, of_elements)
    return select_config(query, (*items, graph), changed, functions)


def projection(
    query: tree.QueryUnit,
    bound: tuple[str, ...],
    base: SparqlConfig,
    functions: Functions,
    unsure: tuple[str, ...] = (),
) -> SparqlConfig | None:
    """Return the query that computes rows from objects (see `Projector`); None if none is needed.

    Every object binds the variables in `bound`, and may bind those in `unsure`.
    """
    select = query.form
    assert isinstance(select, tree.SelectForm), "only a SELECT has rows"  # noqa: S101
    named = {i.variable.name: i for i in select.clause.items if isinstance(i, tree.SelectAs)}
    items = [named.get(name, tree.Var(name)) for name in base.variables]
    if base.score is not None and base.score not in base.variables:
        condition = select.modifiers.order_by[0]
        items.append(tree.SelectAs(condition.expression, tree.Var(base.score)))
    if not any(isinstance(item, tree.SelectAs) for item in items):
        return None
    return object_config(query, tuple(items), functions, bound, unsure)


def object_config(
    query: tree.QueryUnit,
    items: tuple[tree.Var | tree.SelectAs, ...],
    functions: Functions,
    bound: tuple[str, ...],
    unsure: tuple[str, ...] = (),
) -> SparqlConfig:
    """Return a query that gives the node of each object and columns computed from its variables."""
    node = tree.Var(free_variable(query, "object"))
    itself = tree.Property(tree.Iri(variable_iri("")), (node,))
    # Without bound variables the first pattern would look for a mark, which `itself` is already.
    known: tuple[tree.Pattern, ...] = (
        tree.TriplesBlock((tree.SubjectTriples(node, (itself,)),)),
        *node_patterns(node, bound, unsure, variable_iri)[0 if bound else 1 :],
    )
    where = tree.GroupPattern((tree.GraphPattern(tree.Iri(OBJECTS), tree.GroupPattern(known)),))
    return select_config(query, (node, *items), where, functions)


def select_config(
    query: tree.QueryUnit,
    items: tuple[tree.Var | tree.SelectAs, ...],
    where: tree.GroupPattern,
    functions: Functions,
) -> SparqlConfig:
    """Return the configuration of a SELECT with these columns, in any order of rows."""
    clause = tree.SelectClause(items)
    select = tree.SelectForm(clause, query.form.dataset, where, tree.Modifiers())
    return sparql_path(replace(query, form=select), functions)


def free_variable(query: tree.QueryUnit, stem: str) -> str:
    """Return the name of a variable that is not in the query."""
    return free_name(stem, named_variables(query))
