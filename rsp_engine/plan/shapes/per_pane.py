"""The shape of queries that are evaluated pane by pane.

The query has one window over event time, with one triple pattern (no property path), and projects
all variables of the pattern. Filters use these variables only. There is no ORDER BY, no group and
no volatile function.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rsp_engine.evaluators.per_pane import PerPaneConfig
from rsp_engine.grammar import tree
from rsp_engine.operators.sparql.one_pattern import OnePattern
from rsp_engine.plan.sparql.general import VOLATILE_FUNCTIONS, as_term, sparql_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["per_pane_path"]


def per_pane_path(
    query: tree.QueryUnit, functions: Mapping[str, Callable[..., Any]]
) -> PerPaneConfig | None:
    """Return the configuration of the per-pane evaluator; None if the query does not fit."""
    match query:
        case tree.QueryUnit(_, _, tree.SelectForm() as select, None):
            pattern = _pattern(select)
        case _:
            return None
    if pattern is None or not _is_plain(select, pattern) or len(query.windows) != 1:
        return None
    if not isinstance(query.windows[0].frame, tree.TimeWindow):
        return None
    over_default = replace(query, form=replace(select, where=pattern))
    config = sparql_path(over_default, functions)
    return PerPaneConfig(config, _only(select, pattern))


def _pattern(select: tree.SelectForm) -> tree.GroupPattern | None:
    """Return the group of the only WINDOW with all filters; None if WHERE has other elements."""
    filters = tuple(e for e in select.where.elements if isinstance(e, tree.FilterClause))
    match [e for e in select.where.elements if not isinstance(e, tree.FilterClause)]:
        case [tree.WindowPattern(tree.Iri(), group)]:
            return tree.GroupPattern((*group.elements, *filters))
        case _:
            return None


def _is_plain(select: tree.SelectForm, pattern: tree.GroupPattern) -> bool:
    if select.modifiers != tree.Modifiers() or select.clause.modifier is not None:
        return False
    terms = _terms([e for e in pattern.elements if not isinstance(e, tree.FilterClause)])
    if not terms or not all(isinstance(t, tree.Var | tree.Iri | tree.Literal) for t in terms):
        return False
    named = {term.name for term in terms if isinstance(term, tree.Var)}
    projected = {item.name for item in select.clause.items if isinstance(item, tree.Var)}
    return _is_pure(select) and (not select.clause.items or named <= projected)


def _terms(elements: Sequence[tree.Node]) -> tuple[tree.Node, ...]:
    """Return the subject, verb and object if the elements are one triple pattern, else nothing."""
    match elements:
        case [tree.TriplesBlock((tree.SubjectTriples(subject, (tree.Property(verb, (value,)),)),))]:
            return subject, verb, value
        case _:
            return ()


def _only(select: tree.SelectForm, pattern: tree.GroupPattern) -> OnePattern | None:
    """Return the triple pattern if its solutions are the rows; None with filters or expressions."""
    terms = _terms(pattern.elements)
    if not terms or any(isinstance(item, tree.SelectAs) for item in select.clause.items):
        return None
    return OnePattern(*map(as_term, terms))


def _is_pure(select: tree.SelectForm) -> bool:
    """Return whether all expressions of a query depend on the variables of one solution only."""
    kinds = (tree.Exists, tree.Aggregate, tree.NamedCall, tree.FunctionCall)
    calls = {call.name for call in tree.find(select, tree.BuiltInCall)}
    is_volatile = bool(calls & VOLATILE_FUNCTIONS)
    return not is_volatile and not any(isinstance(n, kinds) for n in tree.walk(select))
