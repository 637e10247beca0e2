"""The shape of ranked queries that a top-k operator evaluates.

The query has one window, over event time or a count. The window has filters and one triple pattern,
or several if each solution comes from one element; no property path. Beside the window there are
filters only, which may read static graphs. ORDER BY has one condition, and there is a LIMIT.

The operator is MinTopk or SAP. MinTopk does a little work for each candidate at every slide; SAP
does most of its work once for a partition of many slides. So SAP is faster if a window has many
slides, the more so the fewer objects a slide has; MinTopk is faster if a window has few slides, or
k is large. The threshold comes from measurements by `benchmarks/bench_sap.py`: see the table in
`docs/explanation/performance.md`. The planner does not know the number of objects in a slide: a
time window does not determine it, and a counted element may have no solution. It is not needed:
above the threshold, SAP is faster than MinTopk or close to it for any number of objects.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.grammar import tree
from rsp_engine.plan.shapes.ranking import (
    check_choice,
    check_ranking,
    cutoff,
    order_expression,
    pattern_words,
    stream_side,
)
from rsp_engine.plan.shapes.shape import Choice, NoMatchError, Shape, select_of
from rsp_engine.plan.sparql.general import sparql_path
from rsp_engine.plan.sparql.object_texts import matching_of, projection

if TYPE_CHECKING:
    from rsp_engine.operators.topk.rankers import RankerName
    from rsp_engine.options import OperatorName
    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.options import QueryOptions

__all__ = [
    "TOPK_OPERATORS",
    "TOPK_SHAPE",
    "RankerChoice",
    "chosen_ranker",
    "slides_of",
    "threshold",
    "topk_config",
]

TOPK_OPERATORS: dict[OperatorName, RankerName] = {
    "mintopk": "MinTopk",
    "sap": "SAP",
    "sap-dynamic": "SAP (dynamic)",
    "sap-equal": "SAP (equal)",
    "pretopk": "PreTopk",
    "skyband": "k-skyband",
    "sma": "SMA",
    "sma-ring": "SMA (ring buffer)",
    "oracle": "Oracle",
}
_PARTITIONS = "it keeps the best of each partition, and reads the rest only if needed"
_SCANNED = "it keeps the best, and scans the window when they run out"
_WHY: dict[RankerName, str] = {
    "MinTopk": "it keeps only solutions that can still reach an answer",
    "PreTopk": "it predicts the best of each future window",
    "Oracle": "it sorts each window from scratch",
    "SAP": _PARTITIONS,
    "SAP (dynamic)": _PARTITIONS,
    "SAP (equal)": _PARTITIONS,
    "k-skyband": "it keeps a solution until k better ones have arrived after it",
    "SMA": _SCANNED,
    "SMA (ring buffer)": _SCANNED,
}


def _choose(query: LogicalQuery, options: QueryOptions) -> Choice:
    check_choice(query, options, *TOPK_OPERATORS)
    config = topk_config(query, options)
    patterns = pattern_words(config.matching)
    why = f"{patterns} over one window, ranked by one score: {_WHY[config.ranker]}"
    if options.ranking.operator not in TOPK_OPERATORS:
        why += f"; {chosen_ranker(config.slides, config.k).why}"
    return Choice(config, why)


def topk_config(query: LogicalQuery, options: QueryOptions) -> TopkConfig:
    """Return the configuration of a top-k operator; raise if there is none for the query.

    If the user does not choose an operator, `chosen_ranker` does.
    """
    select = select_of(query)
    side = stream_side(query, options.ranking.match)
    if select.grouping is not None and select.is_ranking:
        raise NoMatchError("groups change as the window slides", select.grouping)
    check_ranking(query)
    unit, functions = query.unit, options.functions
    base = sparql_path(unit, functions)
    k, offset = cutoff(select)
    slides = slides_of(query.windows[0].frame)
    matching = matching_of(unit, side, order_expression(select), functions)
    return TopkConfig(
        query=base,
        matching=replace(matching, ordered=True),
        projected=projection(unit, side.names, base, functions),
        descending=select.order[0].descending,
        k=k,
        offset=offset,
        ranker=TOPK_OPERATORS.get(options.ranking.operator) or chosen_ranker(slides, k).ranker,
        slides=slides,
    )


def threshold(k: int) -> int:
    """Return the number of slides in a window from which SAP is chosen.

    >>> threshold(5), threshold(100), threshold(1000)
    (100, 500, 5000)
    """
    return max(100, 5 * k)


class RankerChoice(NamedTuple):
    """A ranker, and the reason for the choice."""

    ranker: Literal["MinTopk", "SAP"]
    why: str


def slides_of(frame: tree.TimeWindow | tree.CountWindow) -> int:
    """Return n / s, the number of slides in a window, rounded up."""
    if isinstance(frame, tree.TimeWindow):
        size, step = frame.range.milliseconds, (frame.step or frame.range).milliseconds
    else:
        size, step = frame.size.value, (frame.step or frame.size).value
    return max(1, -(-size // step))


def chosen_ranker(slides: int, k: int) -> RankerChoice:
    """Choose a ranker by n / s and k.

    >>> chosen_ranker(9, 5).ranker, chosen_ranker(3600, 5).ranker
    ('MinTopk', 'SAP')
    """
    sizes = f"a window has {slides:,} slide{'s' * (slides > 1)} (n / s), and k is {k:,}"
    least = threshold(k)
    if slides >= least:
        return RankerChoice("SAP", f"{sizes}: from {least:,} slides on, SAP is ahead of MinTopk")
    return RankerChoice("MinTopk", f"{sizes}: below {least:,} slides, MinTopk is ahead of SAP")


TOPK_SHAPE = Shape("topk", _choose)
