"""The configuration of the SERVICE evaluator: the clauses of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rsp_engine.operators.sparql.sparql_query import SparqlConfig

__all__ = ["ServiceClause", "ServiceConfig"]


@dataclass(frozen=True, slots=True)
class ServiceClause:
    """A SERVICE clause, read from the named graph `graph`.

    `keys` is the query for the required keys; None if the clause has no keys and is fetched as a
    whole. With `is_marked`, the node of each solution gets an extra triple, since a solution may
    bind no variable and would have none.
    """

    graph: str
    keys: SparqlConfig | None
    is_marked: bool


@dataclass(frozen=True, slots=True)
class ServiceConfig(SparqlConfig):
    """As on the general path. Clauses are in the order in which their data are needed."""

    tag: ClassVar[str] = "Served"

    clauses: tuple[ServiceClause, ...] = ()
