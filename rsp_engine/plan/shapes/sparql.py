"""The shape of queries on the general path: Oxigraph evaluates them over whole windows.

Any query without SERVICE has this shape.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rsp_engine.evaluators.sparql import GeneralConfig
from rsp_engine.plan.arrivals import has_time, ties
from rsp_engine.plan.shapes.ranking_refusal import ranking_refusal
from rsp_engine.plan.shapes.shape import Choice, NoMatchError, Shape
from rsp_engine.plan.sparql.element_blocks import by_element
from rsp_engine.plan.sparql.general import sparql_path

if TYPE_CHECKING:
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.plan.sparql.element_blocks import ByElement

__all__ = ["SPARQL_SHAPE", "general_path", "general_query"]


def _choose(query: LogicalQuery, options: QueryOptions) -> Choice:
    if query.services:
        raise NoMatchError("SERVICE is answered from a replica", query.services[0])
    rewritten, why = general_path(query, options)
    return Choice(
        GeneralConfig(general_query(query, options, rewritten)), why, (), rewritten.blocks
    )


def general_query(query: LogicalQuery, options: QueryOptions, rewritten: ByElement) -> SparqlConfig:
    """Return the query that Oxigraph evaluates over the content of the windows."""
    text = sparql_path(query.unit, options.functions).sparql
    config = sparql_path(rewritten.query, options.functions, ties(query, rewritten.nodes))
    return replace(config, sparql=text)


def general_path(query: LogicalQuery, options: QueryOptions) -> tuple[ByElement, str]:
    """Return a query with its blocks matched by element, and why it takes the general path."""
    why = "full SPARQL 1.1 over the content of each window"
    if query.is_ranking:
        why += f"; no top-k operator, since {_why_not_ranked(query, options)}"
    is_timed = has_time(query)
    rewritten = by_element(query, options, opens_nodes=is_timed, is_timed=is_timed)
    if rewritten.blocks:
        why += "; each WINDOW block is matched within one element"
    return rewritten, why


def _why_not_ranked(query: LogicalQuery, options: QueryOptions) -> str:
    if options.ranking.operator == "general":
        return "the options select the general path"
    why_not = ranking_refusal(query, options)
    return "" if why_not is None else why_not.reason


SPARQL_SHAPE = Shape("sparql", _choose)
