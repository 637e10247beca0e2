"""The configuration of the SERVICE evaluator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.evaluators.service.evaluator import ServiceEvaluator
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
class ServiceConfig:
    """The clauses are in the order in which their data are needed."""

    tag: ClassVar[str] = "Served"

    query: SparqlConfig
    clauses: tuple[ServiceClause, ...]

    @property
    def scan_kind(self) -> ScanKind:
        """Triples; with their times if the answer depends on these."""
        return "timed triples" if self.query.is_timed else "triples"

    def evaluator(self, context: EvaluatorContext) -> ServiceEvaluator:
        """Return the evaluator of a run."""
        # Imported by a run that needs it: the planner reads only configurations.
        from rsp_engine.evaluators.service.evaluator import ServiceEvaluator

        return ServiceEvaluator(self, context.store(), context.scans, context.refreshes)
