"""The shape of ranked queries that a top-k operator evaluates.

The query has one window, over event time or a count. The window has filters and one triple pattern,
or several if each solution comes from one element; no property path. Beside the window there are
filters only, which may read static graphs. ORDER BY has one condition, and there is a LIMIT. No
function is volatile, since the operator evaluates a pane once for several windows.

The recognisers of other rankings share the parts of this shape: `StreamSide`, `topk_refusals` and
the configurations of the SPARQL texts.
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
from rsp_engine.operators.sparql.pane_matcher import MatcherConfig
from rsp_engine.operators.sparql.projector import OBJECTS, variable_iri
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.shapes.pair_pattern import objects_of
from rsp_engine.plan.shapes.ranker_choice import chosen_ranker, slides_of
from rsp_engine.plan.sparql.general import (
    VOLATILE_FUNCTIONS,
    ElementGraph,
    as_term,
    sparql_path,
)
from rsp_engine.plan.sparql.solution_nodes import free_name, node_patterns
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
    "batch_config",
    "counts_triples",
    "cutoff",
    "free_variable",
    "is_ranking",
    "is_ranking_of_groups",
    "matching_of",
    "object_config",
    "order_expression",
    "projection",
    "select_config",
    "stream_side",
    "topk_path",
    "topk_refusals",
]

Functions = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The reason why an operator cannot evaluate a query."""

    reason: str


@dataclass(frozen=True, slots=True)
class StreamSide:
    """The window of a ranked query: its triple patterns, and whether there are filters."""

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
        """The variables of the patterns, in order of appearance."""
        terms = (term for triple in self.triples for term in triple)
        return tuple(dict.fromkeys(t.name for t in terms if isinstance(t, tree.Var)))

    @property
    def patterns(self) -> tuple[OnePattern, ...]:
        """The patterns as matchers of triples."""
        return tuple(OnePattern(*map(as_term, triple)) for triple in self.triples)


def is_ranking(query: tree.QueryUnit) -> bool:
    """Return whether a query ranks: a SELECT with ORDER BY and LIMIT."""
    form = query.form
    if not isinstance(form, tree.SelectForm):
        return False
    return bool(form.modifiers.order_by) and form.modifiers.limit is not None


def is_ranking_of_groups(query: tree.QueryUnit) -> bool:
    """Return whether a query ranks groups of solutions."""
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
    """Return the configuration of a top-k operator, or why there is none for the query.

    Without a ranker, `chosen_ranker` chooses one.
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
    k, offset = cutoff(select)
    slides = slides_of(query.windows[0].frame)
    return TopkConfig(
        **{field.name: getattr(base, field.name) for field in fields(base)},
        matching=replace(
            matching_of(query, side, order_expression(select), functions), ordered=True
        ),
        projected=projection(query, side.names, base, functions),
        descending=select.modifiers.order_by[0].descending,
        k=k,
        offset=offset,
        ranker=ranker or chosen_ranker(slides, k).ranker,
        slides=slides,
    )


def cutoff(select: tree.SelectForm) -> tuple[int, int]:
    """Return how many rows a ranking needs, those that OFFSET skips included, and the offset."""
    modifiers = select.modifiers
    assert modifiers.limit is not None, "a ranking has a limit"  # noqa: S101
    offset = 0 if modifiers.offset is None else modifiers.offset.value
    return offset + modifiers.limit.value, offset


def stream_side(query: tree.QueryUnit, match: MatchRule = "window") -> StreamSide | WhyNot:
    """Return the stream side of a SELECT without SERVICE, or why it has none.

    No solution spans panes if each comes from one triple, or from one element by the user's word.
    """
    select = query.form
    assert isinstance(select, tree.SelectForm), "only a SELECT ranks"  # noqa: S101
    if len(query.windows) != 1:
        return WhyNot("a top-k operator needs exactly one window")
    if query.values is not None:
        return WhyNot("VALUES after the query joins data that is not in the stream")
    others = [
        e
        for e in select.where.elements
        if not isinstance(e, tree.FilterClause | tree.WindowPattern)
    ]
    windows = [e for e in select.where.elements if isinstance(e, tree.WindowPattern)]
    if others:
        return WhyNot(f"a {_word(others[0])} next to WINDOW may give several solutions or none")
    if len(windows) != 1 or not isinstance(windows[0].name, tree.Iri):
        return WhyNot("a top-k operator needs exactly one WINDOW clause")
    inside = windows[0].group.elements
    triples = plain_terms([e for e in inside if not isinstance(e, tree.FilterClause)])
    if not triples:
        return WhyNot("the window has more than plain triple patterns and filters")
    if len(triples) > 1 and match == "window":
        return WhyNot("solutions may span panes: the window has more than one triple pattern")
    if len(triples) > 1 and counts_triples(query.windows[0]):
        return WhyNot("solutions may span panes: the window may cut through an element")
    if len(triples) > 1 and objects_of(triples) is not None:
        return WhyNot("a solution is a pair of objects, which may arrive in two elements")
    filters = tree.find(select.where, tree.FilterClause)
    side = StreamSide(windows[0].name, triples, any(True for _ in filters))
    return side if side.names else WhyNot("the triple pattern has no variable")


def counts_triples(window: tree.FromWindow) -> bool:
    """Return whether a window counts triples, so that it may cut through an element."""
    return isinstance(window.frame, tree.CountWindow) and window.frame.unit == "TRIPLES"


def topk_refusals(select: tree.SelectForm) -> Iterator[WhyNot]:
    """Yield why a top-k operator cannot evaluate a ranking, apart from its patterns."""
    modifiers = select.modifiers
    if not modifiers.order_by or modifiers.limit is None:
        yield WhyNot("only ORDER BY with LIMIT ranks")
        return
    if len(modifiers.order_by) > 1:
        yield WhyNot("ORDER BY has more than one condition, but a score is one number")
    if modifiers.limit.value < 1:
        yield WhyNot("LIMIT 0 ranks nothing")
    if select.clause.modifier is not None:
        yield WhyNot(f"{select.clause.modifier} may merge several objects into one row")
    called = {call.name for call in tree.find(select, tree.BuiltInCall)} & VOLATILE_FUNCTIONS
    if called:
        yield WhyNot(f"{min(called)}() may return a different value in each window")
    windows = tree.find(select.where, tree.WindowPattern)
    inside = (exists for window in windows for exists in tree.find(window, tree.Exists))
    beside = tree.find(select.where, tree.Exists)
    if any(map(_reads_here, inside)) or any(any(tree.find(e, tree.WindowPattern)) for e in beside):
        yield WhyNot("EXISTS reads the whole window")
    if any(True for part in (select.clause, modifiers) for _ in tree.find(part, tree.Exists)):
        yield WhyNot("EXISTS outside FILTER is evaluated over whole graphs")


def _reads_here(node: tree.Node) -> bool:
    """Return whether a pattern reads the active graph."""
    if isinstance(node, tree.GraphPattern | tree.ServicePattern):
        return False
    return isinstance(node, tree.TriplesBlock) or any(map(_reads_here, tree.children(node)))


def order_expression(select: tree.SelectForm) -> tree.Expression:
    """Return the expression of ORDER BY, with names of SELECT replaced by their expressions."""
    named = {i.variable.name: i for i in select.clause.items if isinstance(i, tree.SelectAs)}

    def expand(node: tree.Node) -> tree.Node:
        if isinstance(node, tree.Var) and (item := named.get(node.name)) is not None:
            return tree.rewrite_tree(item.expression, expand)
        return node

    condition = select.modifiers.order_by[0]
    changed: Any = tree.rewrite_tree(condition.expression, expand)
    return changed  # type: ignore[no-any-return]


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
        side.is_filtered,
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


def _word(element: tree.Node) -> str:
    match element:
        case tree.TriplesBlock():
            return "pattern over static data"
        case tree.GroupPattern():
            return "group"
        case _:
            return element.keyword
