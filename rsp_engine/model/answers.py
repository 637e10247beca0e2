"""Answers: the result of a query at one evaluation of its windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    import pyarrow as pa
    import rdflib
    from pyoxigraph import BlankNode, Literal, NamedNode, Triple
    from rdflib.term import Node

__all__ = ["Answer", "Boolean", "Graph", "Interval", "Row", "Solutions"]


@dataclass(frozen=True, slots=True)
class Interval:
    """The bounds of a window or a pane, in integer milliseconds of event time."""

    open: int
    close: int


class Row(NamedTuple):
    """A solution: the terms of its variables and, in a ranked answer, its rank and score.

    An unbound variable is absent from `bindings`. `score` is the value of the first condition of
    ORDER BY, `None` if that is not a number. If the row holds remote values, `age` is the time
    since they were fetched, in milliseconds of event time.
    """

    bindings: Mapping[str, NamedNode | BlankNode | Literal]
    rank: int | None = None
    score: float | None = None
    age: int | None = None


@dataclass(frozen=True, slots=True)
class Solutions:
    """The answer of a SELECT; `ranked` if the query has ORDER BY and LIMIT."""

    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    ranked: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """The answer of a CONSTRUCT: distinct triples in term order."""

    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class Boolean:
    """The answer of an ASK; `None` if ISTREAM or DSTREAM emits nothing."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a query for one window; `stats` holds only deterministic figures."""

    query: str
    window: Interval
    content: Solutions | Graph | Boolean
    stats: Mapping[str, Any]

    def to_rdflib(self) -> list[dict[str, Node]] | rdflib.Graph | bool | None:
        """Return the rows of a SELECT, the graph of a CONSTRUCT or the value of an ASK in rdflib.

        See `rsp_engine.model.results.as_rdflib`.
        """
        from rsp_engine.model.results import as_rdflib

        return as_rdflib(self)

    def to_arrow(self) -> pa.Table:
        """Return the rows of a SELECT as a table; `rsp_engine.as_arrow` joins several answers."""
        from rsp_engine.model.results import as_arrow

        return as_arrow([self])

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows of a SELECT as a data frame: `to_arrow` in pandas.

        Raises:
            RspError: If pandas is not installed; it is the extra `pandas`.
        """
        from rsp_engine.model.results import as_pandas

        return as_pandas(self)

    def _repr_html_(self) -> str:
        """Render the answer as an HTML table for notebooks."""
        from rsp_engine.model.html_table import as_html

        return as_html(self)
