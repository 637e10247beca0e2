"""Why a query has no top-k operator: the reason of the ranking shape that is closest to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.errors import Diagnostic
from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.plan.shapes.acquatop import acquatop_plan
from rsp_engine.plan.shapes.group_topk import group_topk_plan
from rsp_engine.plan.shapes.incomplete import ALGORITHMS, has_optional_windows, incomplete_config
from rsp_engine.plan.shapes.pairs import is_of_pairs, pairs_config
from rsp_engine.plan.shapes.shape import NoMatchError
from rsp_engine.plan.shapes.topk import TOPK_OPERATORS, topk_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.plan.shapes.shape import Choice, WhyNot

    Configure = Callable[[LogicalQuery, QueryOptions], object]

__all__ = ["ranking_refusal", "refused_memory", "refused_operator", "refused_oracle"]


def ranking_refusal(query: LogicalQuery, options: QueryOptions) -> WhyNot | None:
    """Return why no top-k operator can evaluate a ranked query; None if one can."""
    return _refusal(_closest(query), query, options)


def refused_operator(query: LogicalQuery, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield why the operator that the user chose cannot run the query."""
    configure: Configure | None = None
    if options.ranking.operator in ALGORITHMS and (
        has_optional_windows(query) or options.ranking.operator not in TOPK_OPERATORS
    ):
        configure = incomplete_config
    elif options.ranking.operator in TOPK_OPERATORS:
        configure = topk_config
    if configure is not None and (why_not := _refusal(configure, query, options)) is not None:
        message = f"the operator {options.ranking.operator} cannot run this query: {why_not.reason}"
        yield Diagnostic("semantic", message, query.span, "leave the choice to the planner")


def refused_oracle(query: LogicalQuery, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield why an oracle cannot judge the answers of the query."""
    message = "--oracle needs a ranked query with one SERVICE"
    if not query.is_ranking or not query.services:
        yield Diagnostic("semantic", message, query.span, "remove --oracle")
    elif (why_not := ranking_refusal(query, options)) is not None:
        yield Diagnostic("semantic", f"{message}: {why_not.reason}", query.span)


def refused_memory(choice: Choice, why_not: str | None) -> str | None:
    """Return why a query with this choice cannot be ranked with the list alone.

    `why_not` is the reason of the shape of AcquaTop, if it refused the query.
    """
    config = choice.operator
    if not isinstance(config, AcquaTopConfig):
        what = "it is for ranked queries that join a window with one SERVICE by a key"
        return what if why_not is None else f"{what}: {why_not}"
    if config.grouping is not None:
        return "groups change as the window slides, so all of them are kept"
    [service] = choice.services
    names = config.matching.names
    known = {*(names[place] for place in config.key), config.streaming}
    if lost := [name for name in names if name not in known]:
        return f"?{lost[0]} would be forgotten with the objects that leave the list"
    if service.policy.proposer != "list":
        return f"the policy {service.policy.name} considers all objects"
    if config.arrivals == "all":
        return "with --arrivals all, each arrival is an object, but only join keys are remembered"
    return "the oracle ranks all objects" if config.is_judged else None


def _refusal(configure: Configure, query: LogicalQuery, options: QueryOptions) -> WhyNot | None:
    try:
        configure(query, options)
    except NoMatchError as error:
        return error.why_not
    return None


def _closest(query: LogicalQuery) -> Configure:
    """Return how to configure the operator that is closest to a ranked query."""
    if has_optional_windows(query) and not query.services:
        return incomplete_config
    if query.is_ranking_of_groups:
        return group_topk_plan
    if query.services:
        return acquatop_plan
    return pairs_config if is_of_pairs(query) else topk_config
