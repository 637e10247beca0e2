"""In which order a ranked query has its rows, and why that is the query's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.incomplete import IncompleteConfig
from rsp_engine.evaluators.pairs import PairsConfig
from rsp_engine.evaluators.topk import TopkConfig

if TYPE_CHECKING:
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig

__all__ = ["explain_order"]

_TERMS = "SPARQL's, completed to one order of all terms"


def explain_order(config: SparqlConfig) -> str | None:
    """Return the order of a ranked query in a sentence; nothing if it does not rank."""
    if not config.is_ranked:
        return None
    match config:
        case TopkConfig(ranker=ranker):
            by = f"{ranker} ranks what float64 has in this order, MinTopk the ranks of other terms"
            return f"{_TERMS}: {by}; equal ones by {_SOLUTION}"
        case AcquaTopConfig(grouping=None):
            by = "numbers that float64 has in this order are ranked as such, others by their terms"
            return f"{_TERMS}: {by}; equal ones by {_SOLUTION}"
        case GroupTopkConfig() | AcquaTopConfig():
            by = "sums are exact, and what float64 may order otherwise is ranked by its terms"
            return f"{_TERMS}: {by}; equal groups by {_GROUP}"
        case PairsConfig():
            by = "scores are those of float64 where it has this order, else the window is asked"
            return f"{_TERMS}: {by}; equal ones by {_PAIR}"
        case IncompleteConfig():
            by = "objects are found by float64, and the best are asked for their terms"
            return f"{_TERMS}: {by}; equal ones by their terms"
        case _ if config.is_timed:
            return f"{_TERMS}: Oxigraph sorts by keys of the terms; equal ones by {_SOLUTION}"
        case _:
            return f"{_TERMS}: Oxigraph sorts by keys of the terms; equal ones by their terms"


_SOLUTION = "the later event time, then the larger solution"
_PAIR = "the event time of the later object, then of the other one"
_GROUP = "their latest event time, then the larger key"
