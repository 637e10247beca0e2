"""SPARQL queries over an Oxigraph store, evaluated at an instant, with repeatable answers."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import pyoxigraph as ox

from rsp_engine.model.answers import Graph, Row, Solutions
from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.model.terms.term_order import full_key, order_key
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.operators.scoring.term_scores import number
from rsp_engine.operators.sparql.term_aggregates import custom_aggregates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.sparql.latest_solutions import LatestConfig
    from rsp_engine.operators.sparql.template import TripleTemplate

__all__ = [
    "BUILTIN_NAMESPACE",
    "CAME",
    "FULL_KEY",
    "LATEST",
    "ORDER_KEY",
    "PAIR",
    "ROW",
    "SparqlConfig",
    "SparqlQuery",
    "answer_content",
    "as_row",
    "read_lines",
    "solution_lines",
]

Functions = dict[ox.NamedNode, "Callable[..., Term | ox.Triple | None]"]
BUILTIN_NAMESPACE = "urn:rsp-engine:builtin:"
"""The namespace of the engine's functions, such as NOW, whose values repeat in every run."""
ORDER_KEY, FULL_KEY = "ORDER", "TERM"
"""Functions of that namespace: the keys of a term, see `rsp_engine.model.terms.term_order`."""
ROW, CAME, PAIR, LATEST = "ROW", "CAME", "PAIR", "LATEST"
"""Functions of that namespace: a row as text; the arrival time of a triple or of the node of a
solution; the order of a pair by CAME and ROW of its objects; whether a solution is the latest of
its key."""
_AGGREGATES = custom_aggregates(BUILTIN_NAMESPACE)
_CYCLE = 146_097 * 86_400_000  # milliseconds in 400 years of the Gregorian calendar
_EARLIEST = 1 << 63  # added to times, so that their text sorts as their value does
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SparqlConfig:
    """SPARQL text over the windows as named graphs, and the form of the answer.

    `sparql` defines the meaning of the query. If `store_query` is set, Oxigraph evaluates that text
    instead: an equivalent query with a total order of terms where SPARQL leaves the order open, and
    with aggregates that do not depend on the order of their input. `score` is the variable of the
    score of a ranking query. `is_ordered` says that the text orders its rows, `needs_order` that
    the answer depends on the order of the triples, `makes_nodes` that the text makes blank nodes.
    `cut` is the offset and the limit to apply to the rows, where the text has no order of its own.
    `timed` is the scan whose arrival times the answer depends on. `latest` restricts the window to
    the latest solution of each join key.
    """

    sparql: str
    form: Literal["SELECT", "CONSTRUCT", "ASK"]
    variables: tuple[str, ...] = ()
    is_ordered: bool = False
    score: str | None = None
    is_ranked: bool = False
    template: TripleTemplate | None = None
    needs_order: bool = False
    makes_nodes: bool = False
    cut: tuple[int, int | None] = (0, None)
    functions: Mapping[str, Callable[..., Term | None]] = field(default_factory=dict)
    store_query: str | None = None
    timed: int | None = None
    latest: LatestConfig | None = None

    @property
    def is_timed(self) -> bool:
        """Whether the answer depends on the arrival times of triples."""
        return self.timed is not None


class SparqlQuery:
    """One query. NOW is the instant of the evaluation, which also seeds the random functions."""

    def __init__(
        self, config: SparqlConfig, extra: Mapping[str, Callable[..., Term | None]] | None = None
    ) -> None:
        """Prepare the query; `extra` adds to or replaces the engine's functions, by name."""
        self._sparql = config.store_query or config.sparql
        self._now = 0
        self._random = random.Random()  # noqa: S311 - repeatable on purpose
        registered = {ox.NamedNode(iri): call for iri, call in config.functions.items()}
        own = {ox.NamedNode(BUILTIN_NAMESPACE + name): call for name, call in (extra or {}).items()}
        self._functions: Functions = {**registered, **self._builtins(), **own}

    def _builtins(self) -> Functions:
        functions: dict[str, Callable[..., Term | ox.Triple | None]] = {
            "NOW": lambda: _date_time(self._now),
            "RAND": lambda: ox.Literal(self._random.random()),
            "UUID": lambda: ox.NamedNode(f"urn:uuid:{self._uuid()}"),
            "STRUUID": lambda: ox.Literal(str(self._uuid())),
            ORDER_KEY: lambda term: ox.Literal(order_key(term)),
            FULL_KEY: lambda term: ox.Literal(full_key(term)),
            ROW: lambda *terms: ox.Literal(row_text(terms)),
            CAME: lambda *_: None,  # replaced by evaluators that know arrival times
            PAIR: _pair,
            LATEST: lambda *_: None,
        }
        return {ox.NamedNode(BUILTIN_NAMESPACE + name): call for name, call in functions.items()}

    def _uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def ask(self, store: ox.Store, now: int) -> ox.QuerySolutions | ox.QueryBoolean:
        """Evaluate the query over a store, at an instant."""
        self._now = now
        self._random.seed(now)
        result = store.query(
            self._sparql,
            custom_functions=self._functions,
            custom_aggregate_functions=_AGGREGATES,
        )
        assert not isinstance(result, ox.QueryTriples), "CONSTRUCT becomes SELECT"  # noqa: S101
        return result


def solution_lines(solutions: ox.QuerySolutions) -> tuple[str, list[str]]:
    """Return solutions as a line with their variables and a line for each.

    Oxigraph writes solutions much faster than it converts them to Python, and windows overlap. So
    compare lines, and read only new ones.
    """
    text = (solutions.serialize(format=ox.QueryResultsFormat.TSV) or b"").decode()
    header, *lines = text[:-1].split("\n")
    return header, lines


def read_lines(header: str, lines: Iterable[str]) -> Iterator[tuple[Term | None, ...]]:
    """Return the terms of lines written by `solution_lines`."""
    table = "\n".join([header, *lines, ""]).encode()
    read = ox.parse_query_results(table, format=ox.QueryResultsFormat.TSV)
    assert isinstance(read, ox.QuerySolutions), "a table holds solutions"  # noqa: S101
    return map(tuple, read)


def _pair(*marks: Term) -> ox.Literal | None:
    """Return a sort key of pairs: time and text of the later object, then of the other."""
    if any(mark is None for mark in marks):
        return None
    times, texts = marks[::2], marks[1::2]
    keys = sorted(
        f"{int(time.value) + _EARLIEST:020d}{text.value}"
        for time, text in zip(times, texts, strict=True)
    )
    return ox.Literal("\0".join(reversed(keys)))


def as_row(config: SparqlConfig, terms: Sequence[Term | None]) -> Row:
    """Return a solution as a row, with its score if the query is ranked."""
    names = config.variables
    bindings: dict[str, Term]
    if all(terms):  # every term is truthy, so only None is false
        bindings = dict(zip(names, terms, strict=False))  # type: ignore[arg-type]
    else:
        bindings = {n: t for n, t in zip(names, terms, strict=False) if t is not None}
    if config.score is None:
        return Row(bindings)
    place = names.index(config.score) if config.score in names else len(names)
    return Row(bindings, None, number(terms[place]))


def answer_content(config: SparqlConfig, rows: Sequence[Row]) -> Solutions | Graph:
    """Return ordered rows as the answer of the query's form: solutions, or a graph."""
    if config.template is not None:
        return Graph(config.template.fill([row.bindings for row in rows]))
    if not config.is_ranked:
        return Solutions(config.variables, tuple(rows))
    ranked = (Row(row.bindings, rank, row.score) for rank, row in enumerate(rows, start=1))
    return Solutions(config.variables, tuple(ranked), ranked=True)


def _date_time(milliseconds: int) -> ox.Literal:
    # Python's dates end with the year 9999, so count in 400-year cycles, which repeat exactly.
    cycles, within = divmod(milliseconds, _CYCLE)
    moment = _EPOCH + timedelta(milliseconds=within)
    year = f"{moment.year + 400 * cycles:04}"
    text = year + moment.isoformat(timespec="milliseconds")[4:]
    kind = ox.NamedNode(XSD + "dateTime")
    return ox.Literal(text.replace("+00:00", "Z"), datatype=kind)
