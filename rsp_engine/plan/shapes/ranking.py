"""What the shapes of rankings share: the window of a ranked query, its score and its cut.

A ranking has ORDER BY with one condition, and a LIMIT. No function is volatile, since an operator
evaluates a pane once for several windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rsp_engine.grammar import tree
from rsp_engine.operators.sparql.one_pattern import OnePattern
from rsp_engine.plan.logical.algebra import Service, Window, find_expressions, find_nodes
from rsp_engine.plan.logical.query import GroupParts
from rsp_engine.plan.shapes.pair_pattern import objects_of
from rsp_engine.plan.shapes.shape import NoMatchError, select_of
from rsp_engine.plan.sparql.general import VOLATILE_FUNCTIONS, as_term

if TYPE_CHECKING:
    from rsp_engine.grammar.triples import PlainTerms
    from rsp_engine.operators.sparql.pane_matcher import Matching
    from rsp_engine.options import MatchRule
    from rsp_engine.plan.logical.query import LogicalQuery, SelectPlan
    from rsp_engine.plan.options import QueryOptions

__all__ = [
    "StreamSide",
    "check_choice",
    "check_ranking",
    "counts_triples",
    "cutoff",
    "order_expression",
    "pattern_words",
    "stream_side",
]


@dataclass(frozen=True, slots=True)
class StreamSide:
    """The window of a ranked query: its triple patterns, and the filters on them."""

    window: tree.Iri
    triples: tuple[PlainTerms, ...]
    filters: tuple[tree.Expression, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the patterns, in order of appearance."""
        terms = (term for triple in self.triples for term in triple)
        return tuple(dict.fromkeys(t.name for t in terms if isinstance(t, tree.Var)))

    @property
    def patterns(self) -> tuple[OnePattern, ...]:
        """The patterns as matchers of triples."""
        return tuple(OnePattern(*map(as_term, triple)) for triple in self.triples)


def pattern_words(matching: Matching) -> str:
    """Return what matches a pane, in words."""
    is_one = len(matching.patterns) == 1
    return "one triple pattern" if is_one else "triple patterns that one element matches"


def check_choice(query: LogicalQuery, options: QueryOptions, *others: str) -> None:
    """Raise if the query does not rank, or the user chose an operator that is not of `others`."""
    if options.ranking.operator not in ("auto", *others):
        raise NoMatchError(f"the operator {options.ranking.operator} was asked for", query)
    if not query.is_ranking:
        raise NoMatchError("only a SELECT with ORDER BY and LIMIT ranks", query)


def stream_side(
    query: LogicalQuery,
    match: MatchRule = "window",
    *,
    windows: tuple[tree.FromWindow, ...] | None = None,
    has_services: bool = False,
) -> StreamSide:
    """Return the stream side of a SELECT; raise if it has none.

    No solution spans panes if each comes from one triple, or from one element by the user's word.
    `windows` are all that the query declares if they are not given. SERVICE clauses may stand
    beside the window if it `has_services`.
    """
    select = select_of(query)
    windows = query.windows if windows is None else windows
    if len(windows) != 1:
        raise NoMatchError("a top-k operator needs exactly one window", query)
    if select.values is not None:
        raise NoMatchError("VALUES after the query joins what is not in the stream", select.values)
    group = select.group
    for kind, node in group.parts:
        if kind != "WINDOW" and not (has_services and isinstance(node, Service)):
            raise NoMatchError(f"a {kind} beside WINDOW may give several solutions or none", node)
    if len(group.windows) != 1 or not isinstance(name := group.windows[0].name, tree.Iri):
        raise NoMatchError("a top-k operator needs exactly one WINDOW clause", query)
    [window] = group.windows
    inside = GroupParts.of(window.input)
    triples = inside.plain_patterns
    if not triples:
        raise NoMatchError("the window has more than plain triple patterns and filters", window)
    if len(triples) > 1 and match == "window":
        reason = "solutions may span panes: the window has more than one triple pattern"
        raise NoMatchError(reason, window)
    if len(triples) > 1 and counts_triples(windows[0]):
        reason = "solutions may span panes: the window may cut through an element"
        raise NoMatchError(reason, windows[0])
    if len(triples) > 1 and objects_of(triples) is not None:
        reason = "a solution is a pair of objects, which may come in two elements"
        raise NoMatchError(reason, window)
    side = StreamSide(name, triples, (*group.filters, *inside.filters))
    if not side.names:
        raise NoMatchError("the triple pattern has no variable", window)
    return side


def counts_triples(window: tree.FromWindow) -> bool:
    """Return whether a window counts triples, so that it may cut through an element."""
    return isinstance(window.frame, tree.CountWindow) and window.frame.unit == "TRIPLES"


def check_ranking(query: LogicalQuery) -> None:
    """Raise if a top-k operator cannot evaluate a ranking, apart from its patterns."""
    select = select_of(query)
    if not select.is_ranking:
        raise NoMatchError("only ORDER BY with LIMIT ranks", query)
    if len(select.order) > 1:
        reason = "ORDER BY has more than one condition, and a score is one number"
        raise NoMatchError(reason, select.order[1])
    if select.limit == 0:
        raise NoMatchError("LIMIT 0 ranks nothing", query)
    if select.modifier is not None:
        reason = f"{select.modifier} may make one row of several objects"
        raise NoMatchError(reason, select.project)
    calls = {call.name: call for call in find_expressions(query.plan, tree.BuiltInCall)}
    if called := sorted(calls.keys() & VOLATILE_FUNCTIONS):
        reason = f"{called[0]}() may give another value in each window"
        raise NoMatchError(reason, calls[called[0]])
    if select.having and select.grouping is None:
        raise NoMatchError("HAVING without groups leaves solutions out", select.having[0])
    for window in find_nodes(select.where, Window):
        for exists in find_expressions(window, tree.Exists):
            if _reads_here(exists):
                raise NoMatchError("EXISTS looks at the whole window", exists)
    for exists in find_expressions(select.where, tree.Exists):
        if any(tree.find(exists, tree.WindowPattern)):
            raise NoMatchError("EXISTS looks at the whole window", exists)
    outside = (*select.computed, *select.keys, *select.having, *select.order)
    for exists in (e for part in outside for e in tree.find(part, tree.Exists)):
        raise NoMatchError("EXISTS outside FILTER is asked of whole graphs", exists)


def _reads_here(node: tree.Node) -> bool:
    """Return whether a pattern reads the active graph."""
    if isinstance(node, tree.GraphPattern | tree.ServicePattern):
        return False
    return isinstance(node, tree.TriplesBlock) or any(map(_reads_here, tree.children(node)))


def cutoff(select: SelectPlan) -> tuple[int, int]:
    """Return how many rows a ranking needs, those that OFFSET skips included, and the offset."""
    assert select.limit is not None, "a ranking has a limit"  # noqa: S101
    return select.offset + select.limit, select.offset


def order_expression(select: SelectPlan) -> tree.Expression:
    """Return the expression of ORDER BY, with names of SELECT replaced by their expressions."""
    named = {item.variable.name: item for item in select.computed}

    def expand(node: tree.Node) -> tree.Node:
        if isinstance(node, tree.Var) and (item := named.get(node.name)) is not None:
            return tree.rewrite_tree(item.expression, expand)
        return node

    changed: Any = tree.rewrite_tree(select.order[0].expression, expand)
    return changed  # type: ignore[no-any-return]
