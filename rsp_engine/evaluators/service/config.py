"""The configuration of the general path with SERVICE: which clauses a query reads, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rsp_engine.operators.sparql.sparql_query import GeneralConfig

__all__ = ["ServedClause", "ServedConfig"]


@dataclass(frozen=True, slots=True)
class ServedClause:
    """A SERVICE clause as the query reads it.

    `keys` asks the store for the keys that count; nothing means that the clause is asked for as a
    whole. `is_marked` where a remote solution may have no values at all, and its node needs a
    triple none the less.
    """

    graph: str
    keys: GeneralConfig | None
    is_marked: bool


@dataclass(frozen=True, slots=True)
class ServedConfig(GeneralConfig):
    """As for the general path. The clauses are in the order in which their data must be there."""

    tag: ClassVar[str] = "Served"

    clauses: tuple[ServedClause, ...] = ()
