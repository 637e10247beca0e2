"""Which ranked queries can be run by a top-k operator.

One window, over event time or over so many elements; in it one triple pattern, or several whose
solutions come from one element each, no path, and filters; beside it filters and nothing else,
which may look into static graphs; one condition of ORDER BY, and LIMIT. Nothing tells time or
chance, since a pane is looked at once and counts in several windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import is_grouped
from rsp_engine.grammar.triples import plain_terms
from rsp_engine.operators.scoring.scoring_function import variables
from rsp_engine.operators.sparql.one_pattern import OnePattern
from rsp_engine.operators.sparql.pane_matcher import Matching
from rsp_engine.operators.sparql.projector import OBJECTS, variable_iri
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.shapes.pair_pattern import objects_of
from rsp_engine.plan.shapes.ranker_choice import chosen_ranker, slides_of
from rsp_engine.plan.sparql.general import ElementGraph, as_term, sparql_path
from rsp_engine.plan.sparql.solution_nodes import described, free_name
from rsp_engine.plan.variables import named_variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.grammar.triples import PlainTerms
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.topk.rankers import RankerName
    from rsp_engine.plan.options import MatchRule

__all__ = [
    "StreamSide",
    "WhyNot",
    "asked_of",
    "free_variable",
    "is_ranking",
    "is_ranking_of_groups",
    "matching_of",
    "of_objects",
    "order_expression",
    "projection",
    "stream_side",
    "together_of",
    "topk_path",
    "topk_refusals",
]

Functions = Mapping[str, Callable[..., Any]]
_CHANCE = {"NOW", "RAND", "UUID", "STRUUID", "BNODE"}


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a query is not run by a top-k operator."""

    reason: str


@dataclass(frozen=True, slots=True)
class StreamSide:
    """The window of a ranked query: triple patterns, mostly one, and filters on them."""

    window: tree.Iri
    triples: tuple[PlainTerms, ...]
    is_filtered: bool

    @property
    def terms(self) -> PlainTerms:
        """The subject, the verb and the object of the only pattern."""
        [only] = self.triples
        return only

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the patterns, each once."""
        terms = (term for triple in self.triples for term in triple)
        return tuple(dict.fromkeys(t.name for t in terms if isinstance(t, tree.Var)))

    @property
    def patterns(self) -> tuple[OnePattern, ...]:
        """The patterns, to be matched."""
        return tuple(OnePattern(*map(as_term, triple)) for triple in self.triples)


def is_ranking(query: tree.QueryUnit) -> bool:
    """Tell whether a query ranks: ORDER BY and LIMIT."""
    form = query.form
    if not isinstance(form, tree.SelectForm):
        return False
    return bool(form.modifiers.order_by) and form.modifiers.limit is not None


def is_ranking_of_groups(query: tree.QueryUnit) -> bool:
    """Tell whether what a query ranks are groups of solutions."""
    form = query.form
    if not is_ranking(query) or not isinstance(form, tree.SelectForm):
        return False
    return is_grouped(form.clause, form.modifiers)


def topk_path(
    query: tree.QueryUnit,
    functions: Functions,
    ranker: RankerName | None = None,
    match: MatchRule = "window",
) -> TopkConfig | WhyNot:
    """Return the configuration of the ranked operator, or why the query does not allow it.

    Without a ranker, one is chosen.
    """
    select = query.form
    if not isinstance(select, tree.SelectForm):
        return WhyNot("only a SELECT can rank")
    side = stream_side(query, match)
    if isinstance(side, WhyNot):
        return side
    if is_ranking_of_groups(query):
        return WhyNot("groups change as the window slides")
    if refusal := next(topk_refusals(select), None):
        return refusal
    base = sparql_path(query, functions)
    modifiers = select.modifiers
    assert modifiers.limit is not None, "a ranking has a limit"  # noqa: S101
    offset = 0 if modifiers.offset is None else modifiers.offset.value
    k, frame = offset + modifiers.limit.value, query.windows[0].frame
    slides = slides_of(frame)
    return TopkConfig(
        **{field.name: getattr(base, field.name) for field in fields(base)},
        matching=replace(
            matching_of(query, side, order_expression(select), functions), ordered=True
        ),
        projected=projection(query, side.names, base, functions),
        descending=modifiers.order_by[0].descending,
        k=k,
        offset=offset,
        ranker=ranker or chosen_ranker(slides, k).ranker,
        slides=slides,
    )


def stream_side(query: tree.QueryUnit, match: MatchRule = "window") -> StreamSide | WhyNot:
    """Return the stream side of a SELECT without SERVICE, or why it has none.

    A pane tells its own solutions if they come from one triple each, or if the user says that each
    comes from one element.
    """
    select = query.form
    assert isinstance(select, tree.SelectForm), "only a SELECT ranks"  # noqa: S101
    if len(query.windows) != 1:
        return WhyNot("a top-k operator needs exactly one window")
    if query.values is not None:
        return WhyNot("VALUES after the query joins what is not in the stream")
    others = [
        e
        for e in select.where.elements
        if not isinstance(e, tree.FilterClause | tree.WindowPattern)
    ]
    windows = [e for e in select.where.elements if isinstance(e, tree.WindowPattern)]
    if others:
        return WhyNot(f"a {_word(others[0])} beside WINDOW may give several solutions or none")
    if len(windows) != 1 or not isinstance(windows[0].name, tree.Iri):
        return WhyNot("a top-k operator needs exactly one WINDOW clause")
    inside = windows[0].group.elements
    triples = plain_terms([e for e in inside if not isinstance(e, tree.FilterClause)])
    if not triples:
        return WhyNot("the window has more than plain triple patterns and filters")
    if len(triples) > 1 and match == "window":
        return WhyNot("solutions may span panes: the window has more than one triple pattern")
    if len(triples) > 1 and _counts_triples(query.windows[0]):
        return WhyNot("solutions may span panes: the window may cut through an element")
    if len(triples) > 1 and objects_of(triples) is not None:
        return WhyNot("a solution is a pair of objects, which may come in two elements")
    filters = tree.find(select.where, tree.FilterClause)
    side = StreamSide(windows[0].name, triples, any(True for _ in filters))
    return side if side.names else WhyNot("the triple pattern has no variable")


def _counts_triples(window: tree.FromWindow) -> bool:
    return isinstance(window.frame, tree.CountWindow) and window.frame.unit == "TRIPLES"


def topk_refusals(select: tree.SelectForm) -> Iterator[WhyNot]:
    """Yield what keeps a ranking off a top-k operator, beside its pattern."""
    modifiers = select.modifiers
    if not modifiers.order_by or modifiers.limit is None:
        yield WhyNot("only ORDER BY with LIMIT ranks")
        return
    if len(modifiers.order_by) > 1:
        yield WhyNot("ORDER BY has more than one condition, and a score is one number")
    if modifiers.limit.value < 1:
        yield WhyNot("LIMIT 0 ranks nothing")
    if select.clause.modifier is not None:
        yield WhyNot(f"{select.clause.modifier} may make one row of several objects")
    called = {call.name for call in tree.find(select, tree.BuiltInCall)} & _CHANCE
    if called:
        yield WhyNot(f"{min(called)}() may give another value in each window")
    windows = tree.find(select.where, tree.WindowPattern)
    inside = (exists for window in windows for exists in tree.find(window, tree.Exists))
    beside = tree.find(select.where, tree.Exists)
    if any(map(_reads_here, inside)) or any(any(tree.find(e, tree.WindowPattern)) for e in beside):
        yield WhyNot("EXISTS looks at the whole window")
    if any(True for part in (select.clause, modifiers) for _ in tree.find(part, tree.Exists)):
        yield WhyNot("EXISTS outside FILTER is asked of whole graphs")


def _reads_here(node: tree.Node) -> bool:
    """Tell whether a pattern reads the graph that it stands in."""
    if isinstance(node, tree.GraphPattern | tree.ServicePattern):
        return False
    return isinstance(node, tree.TriplesBlock) or any(map(_reads_here, tree.children(node)))


def order_expression(select: tree.SelectForm) -> tree.Expression:
    """Return what ORDER BY orders by, with the expressions of SELECT in place of their names."""
    named = {i.variable.name: i for i in select.clause.items if isinstance(i, tree.SelectAs)}

    def spelt_out(node: tree.Node) -> tree.Node:
        if isinstance(node, tree.Var) and (item := named.get(node.name)) is not None:
            return tree.rewrite_tree(item.expression, spelt_out)
        return node

    condition = select.modifiers.order_by[0]
    changed: Any = tree.rewrite_tree(condition.expression, spelt_out)
    return changed  # type: ignore[no-any-return]


def matching_of(
    query: tree.QueryUnit, side: StreamSide, number: tree.Expression, functions: Functions
) -> Matching:
    """Return how the solutions of a pane are found, with a number of each."""
    select = query.form
    assert isinstance(select, tree.SelectForm), "only a SELECT ranks"  # noqa: S101
    names: tuple[tree.Var | tree.SelectAs, ...] = tuple(map(tree.Var, side.names))
    items = (*names, tree.SelectAs(number, tree.Var(free_variable(query, "number"))))
    scored = scoring_of(number, functions)
    if scored is not None and not set(variables(scored)) <= set(side.names):
        scored = None  # Oxigraph knows what a variable is that nothing binds
    return Matching(
        side.window.value,
        side.names,
        side.patterns,
        asked_of(query, items, select.where, functions),
        side.is_filtered,
        scored,
        None if len(side.triples) == 1 else together_of(query, items, select.where, functions),
    )


def together_of(
    query: tree.QueryUnit,
    items: tuple[tree.Var | tree.SelectAs, ...],
    where: tree.GroupPattern,
    functions: Functions,
) -> SparqlConfig | None:
    """Return a text that asks many elements at once, and gives the graph of each after its columns.

    EXISTS would see static graphs, which are not beside elements.
    """
    if any(True for _ in tree.find(where, tree.Exists)):
        return None
    graph = tree.Var(free_variable(query, "element"))

    def of_elements(node: tree.Node) -> tree.Node:
        return ElementGraph(graph, node.group) if isinstance(node, tree.WindowPattern) else node

    changed: Any = tree.rewrite_tree(where, of_elements)
    return asked_of(query, (*items, graph), changed, functions)


def projection(
    query: tree.QueryUnit,
    bound: tuple[str, ...],
    base: SparqlConfig,
    functions: Functions,
    unsure: tuple[str, ...] = (),
) -> SparqlConfig | None:
    """Return what makes rows of objects that have these variables: see `Projector`."""
    select = query.form
    assert isinstance(select, tree.SelectForm), "only a SELECT has rows"  # noqa: S101
    given = {i.variable.name: i for i in select.clause.items if isinstance(i, tree.SelectAs)}
    items = [given.get(name, tree.Var(name)) for name in base.variables]
    if base.score is not None and base.score not in base.variables:
        condition = select.modifiers.order_by[0]
        items.append(tree.SelectAs(condition.expression, tree.Var(base.score)))
    if not any(isinstance(item, tree.SelectAs) for item in items):
        return None
    return of_objects(query, tuple(items), functions, bound, unsure)


def of_objects(
    query: tree.QueryUnit,
    items: tuple[tree.Var | tree.SelectAs, ...],
    functions: Functions,
    bound: tuple[str, ...],
    unsure: tuple[str, ...] = (),
) -> SparqlConfig:
    """Return a text that gives objects, and these columns of each, from their variables."""
    node = tree.Var(free_variable(query, "object"))
    itself = tree.Property(tree.Iri(variable_iri("")), (node,))
    known: tuple[tree.Pattern, ...] = (
        tree.TriplesBlock((tree.SubjectTriples(node, (itself,)),)),
        *described(node, bound, unsure, variable_iri)[0 if bound else 1 :],  # it has its mark
    )
    where = tree.GroupPattern((tree.GraphPattern(tree.Iri(OBJECTS), tree.GroupPattern(known)),))
    return asked_of(query, (node, *items), where, functions)


def asked_of(
    query: tree.QueryUnit,
    items: tuple[tree.Var | tree.SelectAs, ...],
    where: tree.GroupPattern,
    functions: Functions,
) -> SparqlConfig:
    """Return a text that gives these columns, in any order of rows."""
    clause = tree.SelectClause(items)
    select = tree.SelectForm(clause, query.form.dataset, where, tree.Modifiers())
    return sparql_path(replace(query, form=select), functions)


def free_variable(query: tree.QueryUnit, stem: str) -> str:
    """Return a variable that the query does not have."""
    return free_name(stem, named_variables(query))


def _word(element: tree.Node) -> str:
    match element:
        case tree.TriplesBlock():
            return "pattern over static data"
        case tree.GroupPattern():
            return "group"
        case _:
            return element.keyword
