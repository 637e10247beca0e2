"""A registered query, as the Python API returns it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from rsp_engine.plan.planner import QueryPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.answers import Graph, Solutions

__all__ = ["Query"]


@dataclass(frozen=True, slots=True, repr=False)
class Query(QueryPlan):
    """A registered query: its syntax tree, its plans and its warnings.

    `Engine.register` returns it.

    Attributes:
        query: The syntax tree.
        whole: The syntax tree with the SILENT clauses that are not evaluated.
        logical: The logical plan.
        physical: The physical plan; `physical.name` is the name of the query.
        warnings: What is suspicious in the text.

    >>> from rsp_engine import Engine
    >>> text = '''PREFIX : <http://example.org/> REGISTER RSTREAM :all AS SELECT ?s
    ...     FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s] WHERE { WINDOW :w { ?s :p ?o } }'''
    >>> Engine().register(text)
    <Query http://example.org/all>
    """

    _snapshot: Callable[[str, int | None, int | None], Solutions | Graph] = field(
        repr=False, compare=False
    )

    def __repr__(self) -> str:
        return f"<Query {self.physical.name}>"

    def explain(self) -> str:
        """Return the logical and the physical plan as text, with the reasons for each choice."""
        # A run explains nothing.
        from rsp_engine.plan.explain.text import explain

        return explain(self)

    def _repr_html_(self) -> str:
        """Return the plan for a notebook."""
        return f"<pre>{escape(self.explain())}</pre>"

    def now(self, k: int | None = None, range: int | None = None) -> Solutions | Graph:  # noqa: A002 - RANGE
        """Return the k best pairs of the window that ends with the last answer: a snapshot.

        Only ranked queries of pairs have snapshots, and only while the engine runs.

        Args:
            k: How many pairs. Default: as many as the query returns. At most the largest LIMIT of
                the queries that share a skyband with this one.
            range: The size of the window, in ms, or in elements if the query counts them. Default:
                that of the query. At most the largest window of these queries.

        Raises:
            BindingError: If the query has no snapshots, or not yet, or `k` or `range` is out of
                bounds, or a value has no exact float64.
        """
        return self._snapshot(self.physical.name, k, range)
