"""The configuration of the general path with SERVICE: which clauses a query reads, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rsp_engine.operators.sparql.sparql_query import SparqlConfig

__all__ = ["ServiceClause", "ServiceConfig"]


@dataclass(frozen=True, slots=True)
class ServiceClause:
    """A SERVICE clause as the query reads it.

    `keys` asks the store for the keys that count; nothing means that the clause is asked for as a
    whole. `is_marked` where a remote solution may have no values at all, and its node needs a
    triple none the less.
    """

    graph: str
    keys: SparqlConfig | None
    is_marked: bool


@dataclass(frozen=True, slots=True)
class ServiceConfig(SparqlConfig):
    """As for the general path. The clauses are in the order in which their data must be there."""

    tag: ClassVar[str] = "Served"

    clauses: tuple[ServiceClause, ...] = ()
