"""What a query answers at one evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    import rdflib
    from pyoxigraph import BlankNode, Literal, NamedNode, Triple
    from rdflib.term import Node

__all__ = ["Answer", "Boolean", "Graph", "Interval", "Row", "Solutions"]


@dataclass(frozen=True, slots=True)
class Interval:
    """The window that was evaluated, in integer milliseconds."""

    open: int
    close: int


class Row(NamedTuple):
    """A solution: the terms of its variables, and its place where the query ranks.

    A variable without a value is absent from `bindings`. The score is the value of the first
    condition of ORDER BY, nothing where that is not a number. Where the row holds remote values,
    `age` is how long ago they were fetched, in milliseconds of event time.
    """

    bindings: Mapping[str, NamedNode | BlankNode | Literal]
    rank: int | None = None
    score: float | None = None
    age: int | None = None


@dataclass(frozen=True, slots=True)
class Solutions:
    """The answer of a SELECT; `ranked` when it has ORDER BY and LIMIT."""

    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    ranked: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """The answer of a CONSTRUCT: triples, each once, in term order."""

    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class Boolean:
    """The answer of an ASK; nothing when ISTREAM or DSTREAM has nothing to say."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What leaves a query at one evaluation. `stats` holds deterministic facts about it only."""

    query: str
    window: Interval
    content: Solutions | Graph | Boolean
    stats: Mapping[str, Any]

    def to_rdflib(self) -> list[dict[str, Node]] | rdflib.Graph | bool | None:
        """Return rows, the graph of a CONSTRUCT, or what an ASK says, in terms of rdflib."""
        from rsp_engine.model.results import as_rdflib

        return as_rdflib(self)

    def to_arrow(self) -> pa.Table:
        """Return the rows of a SELECT as a table; `rsp_engine.as_arrow` takes several answers."""
        from rsp_engine.model.results import as_arrow

        return as_arrow([self])

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        from rsp_engine.model.results import as_html

        return as_html(self)
