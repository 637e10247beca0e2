"""What a shape is: its recogniser says yes with a choice, or no with a reason and its place."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.errors import Span
    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.evaluators.protocol import EvaluatorConfig
    from rsp_engine.operators.joins.triple_selection import TripleSelection
    from rsp_engine.plan.logical.query import LogicalQuery, SelectPlan
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.plan.sparql.element_blocks import ElementBlocks

__all__ = ["Choice", "NoMatchError", "Shape", "WhyNot", "select_of"]


class Choice(NamedTuple):
    """The configuration of the chosen evaluator, the reason, and the plans of SERVICE clauses.

    For the windows in `blocks`, the evaluator reads solutions of the blocks instead of triples.
    With a `selection`, it reads only triples of the windows that the patterns can match.
    """

    operator: EvaluatorConfig
    why: str
    services: tuple[ServicePlan, ...] = ()
    blocks: ElementBlocks = MappingProxyType({})
    selection: TripleSelection | None = None


class WhyNot(NamedTuple):
    """The reason why a query does not have a shape, and its place in the text of the query."""

    reason: str
    span: Span


class _Placed(Protocol):
    @property
    def span(self) -> Span: ...


class NoMatchError(Exception):
    """A query does not have a shape: the reason, and the construct that it is about."""

    def __init__(self, reason: str, at: _Placed) -> None:
        super().__init__(reason)
        self.why_not = WhyNot(reason, at.span)


def select_of(query: LogicalQuery) -> SelectPlan:
    """Return the levels of a SELECT; raise if the query is of another form."""
    if query.select is None:
        raise NoMatchError("only a SELECT can rank", query)
    return query.select


@dataclass(frozen=True, slots=True)
class Shape:
    """The queries that one evaluator takes.

    `choose` configures the evaluator for a query; it raises `NoMatchError` if the query does not
    have the shape.
    """

    name: str
    choose: Callable[[LogicalQuery, QueryOptions], Choice]

    def recognise(self, query: LogicalQuery, options: QueryOptions) -> Choice | WhyNot:
        """Return the configuration of the evaluator for a query, or why there is none."""
        try:
            return self.choose(query, options)
        except NoMatchError as error:
            return error.why_not
