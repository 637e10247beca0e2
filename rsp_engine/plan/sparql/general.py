"""The general path: the SPARQL text by which Oxigraph evaluates any query of the language.

This module rewrites RSP-QL to plain SPARQL:

    WINDOW :w { P }      GRAPH :w { P }
    WINDOW ?w { P }      { GRAPH :v { P } VALUES ?w { :v } } UNION { GRAPH :w { P } VALUES ... }
    GRAPH ?g { P }       the same over the names of the static graphs
    CONSTRUCT { T } ...  SELECT the variables of T ...; the engine fills in T
    NOW(), RAND(), ...   functions of the engine, which give the same values in every run
    ?s :p|:q ?o          { ?s :p ?o } UNION { ?s :q ?o }, see `standard_paths`
    GROUP_CONCAT(...)    STR(GROUP_CONCAT(...)): Oxigraph keeps a language tag that all texts have
    SUM, MAX, ...        aggregates of the engine, which do not depend on the order of the triples
    ORDER BY, LIMIT      with further conditions, which leave no ties
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import group_keys, is_grouped, projected_variables
from rsp_engine.grammar.triples import plain_triples
from rsp_engine.grammar.write import FUNCTIONS
from rsp_engine.operators.sparql.sparql_query import BUILTIN_NAMESPACE, SparqlConfig
from rsp_engine.operators.sparql.template import Hole, TemplateTerm, TripleTemplate
from rsp_engine.plan.sparql.oxigraph_dialect import (
    by_terms,
    exactly_aggregated,
    standard_paths,
    store_text,
    totally_ordered,
    with_separate_groups,
)
from rsp_engine.plan.variables import free_name, named_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

__all__ = [
    "ENGINE_FUNCTIONS",
    "VOLATILE_FUNCTIONS",
    "ElementGraph",
    "as_term",
    "sparql_path",
]

ENGINE_FUNCTIONS = frozenset({"NOW", "RAND", "UUID", "STRUUID"})
"""Functions that the engine evaluates in place of Oxigraph, so that runs can be repeated."""

VOLATILE_FUNCTIONS = ENGINE_FUNCTIONS | {"BNODE"}
"""Functions that may give another value at each call or each evaluation."""

_ORDER_SENSITIVE = {"SAMPLE", "GROUP_CONCAT"}


@dataclass(frozen=True, slots=True)
class ElementGraph(tree.GraphPattern):
    """GRAPH with a variable that ranges over elements; each element is a graph of its own."""


def sparql_path(
    query: tree.QueryUnit,
    functions: Mapping[str, Callable[..., Any]],
    ties: tuple[tree.OrderCondition, ...] = (),
) -> SparqlConfig:
    """Return the configuration of the general path for a query.

    `ties` are conditions that break ties of ORDER BY, before the order of terms does.
    """
    config = _general_path(query, functions)
    if not ties or not isinstance(select := query.form, tree.SelectForm):
        return config
    order_by = (*select.modifiers.order_by, *ties)
    tied = replace(select, modifiers=replace(select.modifiers, order_by=order_by))
    store_query = _general_path(replace(query, form=tied), functions).store_query
    return replace(config, store_query=store_query, timed=_timed(query))


def _timed(query: tree.QueryUnit) -> int:
    """Return the number of the window that a query reads; a query with ties reads only one."""
    names = {clause.name for clause in tree.find(query, tree.WindowPattern)}
    return next(n for n, window in enumerate(query.windows) if window.window in names)


def _general_path(
    query: tree.QueryUnit, functions: Mapping[str, Callable[..., Any]]
) -> SparqlConfig:
    plain = tree.rewrite_tree(with_separate_groups(standard_paths(query)), _Plain(query).change)
    assert isinstance(plain, tree.QueryUnit), "rewriting keeps the kind of the root"  # noqa: S101
    called = {_function_iri(name): call for name, call in functions.items()}
    match plain.form:
        case tree.SelectForm(clause, _, _, modifiers):
            assert isinstance(query.form, tree.SelectForm)  # noqa: S101
            names = projected_variables(clause, query.form.where, modifiers, query.values)
            config = _select(plain, plain.form, names, called)
        case tree.ConstructForm(template):
            config = _construct(plain, plain.form, template, called)
        case form:
            ask_query, ask_form = _ask(plain, form)
            text, store_query = _texts(ask_query, ask_form, ask_form)
            config = SparqlConfig(text, "ASK", store_query=store_query, functions=called)
    aggregates = {aggregate.function for aggregate in tree.find(query, tree.Aggregate)}
    calls = {call.name for call in tree.find(query, tree.BuiltInCall)}
    needs_order = bool(aggregates & _ORDER_SENSITIVE or calls & ENGINE_FUNCTIONS)
    return replace(config, needs_order=needs_order, makes_nodes="BNODE" in calls)


def _function_iri(name: str) -> str:
    return name if ":" in name else FUNCTIONS + name


def _texts(
    query: tree.QueryUnit, form: tree.QueryForm, ordered_form: tree.QueryForm
) -> tuple[str, str]:
    """Return the text that explains a query, and the text to evaluate, whose orders are total."""
    plain, ordered = (
        replace(query, register=None, form=replace(each, dataset=()))
        for each in (form, ordered_form)
    )
    return store_text(plain), store_text(exactly_aggregated(totally_ordered(ordered)))


def _select(
    query: tree.QueryUnit,
    form: tree.SelectForm,
    names: tuple[str, ...],
    functions: Mapping[str, Callable[..., Any]],
) -> SparqlConfig:
    modifiers = form.modifiers
    items: dict[str, tree.Var | tree.SelectAs] = {name: tree.Var(name) for name in names}
    items |= {i.variable.name: i for i in form.clause.items if isinstance(i, tree.SelectAs)}
    is_ranked = modifiers.limit is not None and bool(modifiers.order_by)
    score = None
    if is_ranked:
        score, items = _scored(modifiers.order_by[0].expression, items, form)
    clause = replace(form.clause, items=tuple(items.values()) or (_one(form),))
    ordered, cut = _ordered(modifiers, names)
    plain = replace(form, clause=clause)
    text, store_query = _texts(query, plain, replace(plain, modifiers=ordered))
    return SparqlConfig(
        text,
        "SELECT",
        names,
        store_query=store_query,
        is_ordered=bool(ordered.order_by),
        cut=cut,
        score=score,
        is_ranked=is_ranked,
        functions=functions,
    )


def _scored(
    expression: tree.Expression,
    items: dict[str, tree.Var | tree.SelectAs],
    form: tree.SelectForm,
) -> tuple[str | None, dict[str, tree.Var | tree.SelectAs]]:
    """Return the variable of the score, and the items with it.

    With DISTINCT or REDUCED another column would change the answer, so there is no score.
    """
    if isinstance(expression, tree.Var) and expression.name in items:
        return expression.name, items
    if form.clause.modifier is not None:
        return None, items
    score = _score_variable(form)
    return score, {**items, score: tree.SelectAs(expression, tree.Var(score))}


def _one(form: tree.QueryForm) -> tree.SelectAs:
    """Return a constant item, for a SELECT that has no variables."""
    return tree.SelectAs(tree.ONE, tree.Var(_score_variable(form)))


def _score_variable(form: tree.QueryForm) -> str:
    """Return the name of a variable that is not in the query."""
    return free_name("score", named_variables(form))


def _ordered(
    modifiers: tree.Modifiers, names: tuple[str, ...]
) -> tuple[tree.Modifiers, tuple[int, int | None]]:
    """Return modifiers without ties, and the OFFSET and LIMIT that the engine applies itself."""
    if modifiers.order_by or not _is_cut(modifiers):
        return replace(modifiers, order_by=_without_ties(modifiers, names)), (0, None)
    offset = 0 if modifiers.offset is None else modifiers.offset.value
    limit = None if modifiers.limit is None else modifiers.limit.value
    return replace(modifiers, offset=None, limit=None), (offset, limit)


def _without_ties(
    modifiers: tree.Modifiers, names: tuple[str, ...]
) -> tuple[tree.OrderCondition, ...]:
    """Return an order that is total over the rows; empty if rows need no order."""
    if not modifiers.order_by and not _is_cut(modifiers):
        return ()
    return (*modifiers.order_by, *by_terms(*names))


def _is_cut(modifiers: tree.Modifiers) -> bool:
    return modifiers.limit is not None or modifiers.offset is not None


def _construct(
    query: tree.QueryUnit,
    form: tree.ConstructForm,
    template: tree.TriplesBlock | None,
    functions: Mapping[str, Callable[..., Any]],
) -> SparqlConfig:
    triples = () if template is None else tuple(plain_triples(template))
    holes = {node.name for triple in triples for node in triple if isinstance(node, tree.Var)}
    if is_grouped(tree.SelectClause(()), form.modifiers):
        holes &= group_keys(form.modifiers)  # the others are unbound in a group
    names = tuple(sorted(holes))
    clause = tree.SelectClause(tuple(map(tree.Var, names)) or (_one(form),))
    modifiers, cut = _ordered(form.modifiers, names)
    plain = tree.SelectForm(clause, (), form.where, form.modifiers)
    text, store_query = _texts(query, plain, replace(plain, modifiers=modifiers))
    return SparqlConfig(
        text,
        "CONSTRUCT",
        names,
        store_query=store_query,
        is_ordered=bool(modifiers.order_by),
        cut=cut,
        template=TripleTemplate(tuple((as_term(s), as_term(p), as_term(o)) for s, p, o in triples)),
        functions=functions,
    )


def _ask(query: tree.QueryUnit, form: tree.QueryForm) -> tuple[tree.QueryUnit, tree.QueryForm]:
    """Return an ASK without groups: Oxigraph supports these in a sub-query only."""
    if not isinstance(form, tree.AskForm) or not is_grouped(tree.SelectClause(()), form.modifiers):
        return query, form
    clause = tree.SelectClause((_one(form),))
    select = tree.SubSelect(clause, form.where, form.modifiers, query.values)
    ask = tree.AskForm(form.dataset, tree.GroupPattern((select,)), tree.Modifiers())
    return replace(query, values=None), ask


def as_term(node: tree.Node) -> TemplateTerm:
    """Return a term of a query as a term of Oxigraph; raise `ValueError` if it is not valid."""
    match node:
        case tree.Var(name):
            return Hole(name)
        case tree.Iri(value):
            return ox.NamedNode(value)
        case tree.BlankNode(label):
            return ox.BlankNode(label.replace(".", "anon"))
        case tree.Literal(lexical, _, str(language)):
            return ox.Literal(lexical, language=language)
        case tree.Literal(lexical, datatype):
            return ox.Literal(lexical, datatype=ox.NamedNode(datatype))
        case _:
            raise ValueError(f"a template cannot hold {node}")


def _keys(key: tree.GroupKey) -> Iterator[tree.GroupKey]:
    """Yield a group key in a form that Oxigraph evaluates: it drops `GROUP BY (?v AS ?name)`."""
    match key:
        case tree.GroupKey(tree.Var() as variable, tree.Var() as name):
            yield tree.GroupKey(variable)
            yield tree.GroupKey(tree.BuiltInCall("COALESCE", (variable,)), name)
        case _:
            yield key


class _Plain:
    """Rewrites nodes that Oxigraph does not support to plain SPARQL."""

    def __init__(self, query: tree.QueryUnit) -> None:
        self._named_graphs = _NamedGraphs(query)

    def change(self, node: tree.Node) -> tree.Node:
        match node:
            case ElementGraph(name, group):
                return tree.GraphPattern(name, group)
            case tree.WindowPattern() | tree.GraphPattern():
                return self._named_graphs.constant(node)
            case tree.SubSelect(clause, where, modifiers, values) if _is_cut(modifiers):
                names = projected_variables(clause, where, modifiers, values)
                order = _without_ties(modifiers, names)
                return replace(node, modifiers=replace(modifiers, order_by=order))
            case tree.Modifiers(group_by):
                return replace(node, group_by=tuple(k for key in group_by for k in _keys(key)))
            case tree.NamedCall(name, arguments):
                return tree.FunctionCall(tree.Iri(FUNCTIONS + name), arguments)
            case tree.Aggregate("GROUP_CONCAT"):
                return tree.BuiltInCall("STR", (node,))
            case tree.BuiltInCall(name, arguments) if name in ENGINE_FUNCTIONS:
                return tree.FunctionCall(tree.Iri(BUILTIN_NAMESPACE + name), arguments)
            case _:
                return node


_NO_GRAPH = tree.Iri("urn:rsp-engine:no-graph")


class _NamedGraphs:
    """The names of a query's windows and static graphs.

    `Graph(?g, P)` is the union over the names of `Join(eval(P, name), {?g -> name})` (SPARQL 1.1,
    section 18.6). So P does not see ?g unless it binds it, and a sub-query in P reads one graph.
    Oxigraph evaluates P over all graphs at once instead, those of windows, static data and services
    alike.
    """

    def __init__(self, query: tree.QueryUnit) -> None:
        clauses = query.form.dataset
        self._windows = dict.fromkeys(w.window for w in query.windows)
        self._graphs = dict.fromkeys(c.graph for c in clauses if isinstance(c, tree.FromNamed))

    def constant(self, node: tree.WindowPattern | tree.GraphPattern) -> tree.Pattern:
        """Return GRAPH with a constant name; a variable becomes a union over the names."""
        variable, group = node.name, node.group
        if isinstance(variable, tree.Iri):
            return tree.GraphPattern(variable, group)
        names = self._windows if isinstance(node, tree.WindowPattern) else self._graphs
        if not names:
            return tree.GroupPattern(
                (tree.InlineData((variable,), ()), tree.GraphPattern(_NO_GRAPH, group))
            )
        groups = tuple(_in_graph(variable, name, group) for name in names)
        return tree.UnionPattern(groups) if len(groups) > 1 else groups[0]


def _in_graph(variable: tree.Var, name: tree.Iri, group: tree.GroupPattern) -> tree.GroupPattern:
    named = tree.InlineData((variable,), ((name,),))
    return tree.GroupPattern((tree.GraphPattern(name, group), named))
