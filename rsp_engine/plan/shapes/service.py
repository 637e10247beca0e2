"""The shape of queries with SERVICE on the general path: its clauses are answered from replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rsp_engine.plan.shapes.shape import Choice, NoMatchError, Shape
from rsp_engine.plan.shapes.sparql import general_path
from rsp_engine.plan.sparql.service_rewrite import service_path

if TYPE_CHECKING:
    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.options import QueryOptions

__all__ = ["SERVICE_SHAPE"]


def _choose(query: LogicalQuery, options: QueryOptions) -> Choice:
    if not query.services:
        raise NoMatchError("there is no SERVICE clause", query)
    rewritten, why = general_path(query, options)
    text = service_path(query, options)[0].query.sparql
    config, services = service_path(query, options, rewritten)
    why += "; SERVICE is answered from a replica"
    config = replace(config, query=replace(config.query, sparql=text))
    return Choice(config, why, services, rewritten.blocks)


SERVICE_SHAPE = Shape("service", _choose)
