"""A query as its user holds it: registered, planned, and perhaps running."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from rsp_engine.plan.explain.text import explain
from rsp_engine.plan.planner import QueryPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.answers import Graph, Solutions

__all__ = ["Query"]


@dataclass(frozen=True, slots=True)
class Query(QueryPlan):
    """A registered query."""

    _snapshot: Callable[[str, int | None, int | None], Solutions | Graph] = field(
        repr=False, compare=False
    )

    def explain(self) -> str:
        """Return how it is run, and why so."""
        return explain(self)

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return f"<pre>{escape(explain(self))}</pre>"

    def now(self, k: int | None = None, range: int | None = None) -> Solutions | Graph:  # noqa: A002 - RANGE
        """Return a snapshot of a query of pairs while the engine runs: the k best of a window.

        The window is of so many milliseconds, or of so many elements if the query counts, and ends
        with the last one that was answered. Queries that share a skyband can ask for as much as
        the largest of them.
        """
        return self._snapshot(self.physical.name, k, range)
