"""The general path: any query of the language, asked of Oxigraph.

What the text of the query says about streams is turned into plain SPARQL here:

    WINDOW :w { P }      GRAPH :w { P }
    WINDOW ?w { P }      { VALUES ?w { the windows } GRAPH ?w { P } }
    GRAPH ?g { P }       { VALUES ?g { the static graphs } GRAPH ?g { P } }
    CONSTRUCT { T } ...  SELECT the variables of T ..., and T is filled by the engine
    NOW(), RAND(), ...   functions of the engine, which give the same in every run
    ORDER BY, LIMIT      with more conditions, until there are no ties
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import group_keys, projected_variables
from rsp_engine.grammar.triples import plain_triples
from rsp_engine.grammar.write import FUNCTIONS, serialise
from rsp_engine.operators.asking import BUILTINS, GeneralConfig
from rsp_engine.operators.template import Hole, Template, TemplateTerm
from rsp_engine.plan.total_order import totally_ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

__all__ = ["as_term", "general_path"]

# Of doubles, a sum depends on its order; and so does which of `1` and `1.0` is the largest.
_BY_ORDER = {"SAMPLE", "GROUP_CONCAT", "SUM", "AVG", "MIN", "MAX"}
_ENGINE_MADE = {"NOW", "RAND", "UUID", "STRUUID"}


def general_path(query: tree.Query, functions: Mapping[str, Callable[..., Any]]) -> GeneralConfig:
    """Return the configuration of the general operator for a query."""
    plain = tree.rewrite(query, _Plain(query).change)
    assert isinstance(plain, tree.Query), "rewriting keeps the kind of the root"  # noqa: S101
    called = {_function_iri(name): call for name, call in functions.items()}
    match plain.form:
        case tree.Select():
            config = _select(plain, plain.form, called)
        case tree.Construct(template):
            config = _construct(plain, plain.form, template, called)
        case _:
            text, asked = _texts(plain, plain.form)
            config = GeneralConfig(text, "ASK", asked=asked, functions=called)
    aggregates = {aggregate.function for aggregate in tree.find(query, tree.Aggregate)}
    calls = {call.name for call in tree.find(query, tree.BuiltInCall)}
    needs_order = bool(aggregates & _BY_ORDER or calls & _ENGINE_MADE)
    return replace(config, needs_order=needs_order, makes_nodes="BNODE" in calls)


def _function_iri(name: str) -> str:
    return name if ":" in name else FUNCTIONS + name


def _texts(query: tree.Query, form: tree.Form) -> tuple[str, str]:
    """Return what a query means, and what is asked: the same, with orders that are total."""
    plain = replace(query, register=None, form=replace(form, dataset=()))
    return serialise(plain), serialise(totally_ordered(plain))


def _select(
    query: tree.Query, form: tree.Select, functions: Mapping[str, Callable[..., Any]]
) -> GeneralConfig:
    modifiers = form.modifiers
    names = projected_variables(form.clause, form.where, modifiers, query.values)
    items: dict[str, tree.Var | tree.SelectAs] = {name: tree.Var(name) for name in names}
    items |= {i.variable.name: i for i in form.clause.items if isinstance(i, tree.SelectAs)}
    is_ranked = modifiers.limit is not None and bool(modifiers.order_by)
    score = None
    if is_ranked:
        score, items = _scored(modifiers.order_by[0].expression, items, form)
    clause = replace(form.clause, items=tuple(items.values()))
    ordered, cut = _ordered(modifiers, names)
    text, asked = _texts(query, replace(form, clause=clause, modifiers=ordered))
    return GeneralConfig(
        text,
        "SELECT",
        names,
        asked=asked,
        is_ordered=bool(ordered.order_by),
        cut=cut,
        score=score,
        is_ranked=is_ranked,
        functions=functions,
    )


def _scored(
    expression: tree.Expression,
    items: dict[str, tree.Var | tree.SelectAs],
    form: tree.Select,
) -> tuple[str | None, dict[str, tree.Var | tree.SelectAs]]:
    """Return the variable of the score, projected beside the others if it is not one of them.

    With DISTINCT one more variable would change the answer, so there is no score then.
    """
    if isinstance(expression, tree.Var) and expression.name in items:
        return expression.name, items
    if form.clause.modifier is not None:
        return None, items
    score = _free_name(form)
    return score, {**items, score: tree.SelectAs(expression, tree.Var(score))}


def _free_name(form: tree.Form) -> str:
    """Return a variable that the query does not have."""
    taken = {variable.name for variable in tree.find(form, tree.Var)}
    return next(name for n in count() if (name := f"rsp_score{n or ''}") not in taken)


def _ordered(
    modifiers: tree.Modifiers, names: tuple[str, ...]
) -> tuple[tree.Modifiers, tuple[int, int | None]]:
    """Return modifiers that leave no ties; rows without an order are cut by the engine."""
    if modifiers.order_by or not _is_cut(modifiers):
        return replace(modifiers, order_by=_without_ties(modifiers, names)), (0, None)
    offset = 0 if modifiers.offset is None else modifiers.offset.value
    limit = None if modifiers.limit is None else modifiers.limit.value
    return replace(modifiers, offset=None, limit=None), (offset, limit)


def _without_ties(
    modifiers: tree.Modifiers, names: tuple[str, ...]
) -> tuple[tree.OrderCondition, ...]:
    """Add to an order all that can tell two rows apart. A cut without an order gets one."""
    if not modifiers.order_by and not _is_cut(modifiers):
        return ()
    more = (condition for name in names for condition in _by_term(tree.Var(name)))
    return (*modifiers.order_by, *more)


def _is_cut(modifiers: tree.Modifiers) -> bool:
    return modifiers.limit is not None or modifiers.offset is not None


def _by_term(variable: tree.Var) -> Iterator[tree.OrderCondition]:
    yield tree.OrderCondition(variable)
    yield tree.OrderCondition(tree.BuiltInCall("STR", (variable,)))
    for name in ("DATATYPE", "LANG"):
        call = tree.BuiltInCall(name, (variable,))
        yield tree.OrderCondition(tree.BuiltInCall("STR", (call,)))


def _construct(
    query: tree.Query,
    form: tree.Construct,
    template: tree.TriplesBlock | None,
    functions: Mapping[str, Callable[..., Any]],
) -> GeneralConfig:
    triples = () if template is None else tuple(plain_triples(template))
    holes = {node.name for triple in triples for node in triple if isinstance(node, tree.Var)}
    if form.modifiers.group_by:
        holes &= group_keys(form.modifiers)  # the others have no value in a group
    names = tuple(sorted(holes))
    one = tree.SelectAs(tree.Literal("1", tree.XSD + "integer"), tree.Var(_free_name(form)))
    clause = tree.SelectClause(tuple(map(tree.Var, names)) or (one,))
    modifiers, cut = _ordered(form.modifiers, names)
    text, asked = _texts(query, tree.Select(clause, (), form.where, modifiers))
    return GeneralConfig(
        text,
        "CONSTRUCT",
        names,
        asked=asked,
        is_ordered=bool(modifiers.order_by),
        cut=cut,
        template=Template(tuple((as_term(s), as_term(p), as_term(o)) for s, p, o in triples)),
        functions=functions,
    )


def as_term(node: tree.Node) -> TemplateTerm:
    """Return a term of a query as Oxigraph has it, or raise why it has none."""
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


class _Plain:
    """Turns what Oxigraph does not know into what it knows."""

    def __init__(self, query: tree.Query) -> None:
        dataset = query.form.dataset
        self._windows = tuple(w.window for w in query.windows)
        self._graphs = tuple(c.graph for c in dataset if isinstance(c, tree.FromNamed))

    def change(self, node: tree.Node) -> tree.Node:
        match node:
            case tree.Window(name, group):
                return _graph(name, group, self._windows)
            case tree.Graph(name, group):
                return _graph(name, group, self._graphs)
            case tree.SubSelect(clause, where, modifiers, values) if _is_cut(modifiers):
                names = projected_variables(clause, where, modifiers, values)
                order = _without_ties(modifiers, names)
                return replace(node, modifiers=replace(modifiers, order_by=order))
            case tree.NamedCall(name, arguments):
                return tree.FunctionCall(tree.Iri(FUNCTIONS + name), arguments)
            case tree.BuiltInCall(name, arguments) if name in _ENGINE_MADE:
                return tree.FunctionCall(tree.Iri(BUILTINS + name), arguments)
            case _:
                return node


def _graph(
    name: tree.Var | tree.Iri, group: tree.Group, names: tuple[tree.Iri, ...]
) -> tree.Graph | tree.Group:
    """Return GRAPH; a variable ranges over these names only."""
    if isinstance(name, tree.Iri):
        return tree.Graph(name, group)
    rows = tuple((iri,) for iri in dict.fromkeys(names))
    return tree.Group((tree.InlineData((name,), rows), tree.Graph(name, group)))
