"""The cases: each has a query of ours, and what it is compared with."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from benchmarks.peers.streams import EX, FEW, LONG, MANY, MIXED, STAR, Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.task import Kind

__all__ = ["CASES", "Bar", "Case", "Query", "Run"]

PREFIX = f"PREFIX : <{EX}>"


@dataclass(frozen=True, slots=True)
class Query:
    """A query over sliding windows, in the forms that the programs need."""

    kind: Kind
    select: str
    pattern: str
    tail: str = ""
    limit: int | None = None
    range_s: int = 10
    step_s: int = 1
    below: int | None = None
    """Only smaller values match."""

    @property
    def variables(self) -> list[str]:
        """The variables of the answer."""
        return re.findall(r"\?(\w+)(?= |$|\))", re.sub(r"\(.*? AS", "", self.select))

    @property
    def window(self) -> str:
        """The group graph pattern of a window."""
        return self.pattern + (f" FILTER (?v < {self.below})" if self.below is not None else "")

    @property
    def solution_modifiers(self) -> str:
        """What follows the pattern."""
        return self.tail + (f" LIMIT {self.limit}" if self.limit is not None else "")

    def sparql(self) -> str:
        """Return the query of one window."""
        return f"{PREFIX} SELECT {self.select} {{ {self.window} }} {self.solution_modifiers}"

    def rspql(self, name: str = "q0") -> str:
        """Return the query over the stream."""
        return (
            f"{PREFIX} REGISTER RSTREAM :{name} AS SELECT {self.select}\n"
            f"FROM NAMED WINDOW :w ON :stream [RANGE {self.range_s}s STEP {self.step_s}s]\n"
            f"WHERE {{ WINDOW :w {{ {self.window} }} }} {self.solution_modifiers}\n"
        )


class Bar(NamedTuple):
    """What a figure has to reach."""

    figure: Literal["x", "us", "MB"]
    """The ratio to the first row of the case, microseconds per triple, or peak memory."""
    value: float
    is_least: bool = False

    def __str__(self) -> str:
        return f"{'at least' if self.is_least else 'at most'} {self.value:.3g} {self.figure}"

    def holds(self, value: float) -> bool:
        """Return whether a figure reaches the bar."""
        return value >= self.value if self.is_least else value <= self.value


@dataclass(frozen=True, slots=True)
class Run:
    """A program over a stream: a row of the table."""

    peer: str
    """`rsp`, or the name of a peer."""
    query: Query
    stream: Stream
    variant: str = ""
    bar: Bar | None = None
    has_checkpoint: bool = False
    more: tuple[Query, ...] = ()
    """Other queries of the same run of `rsp`."""
    beyond: Stream | None = None
    """A shorter stream, whose CPU seconds are subtracted: what remains is the slope."""


@dataclass(frozen=True, slots=True)
class Case:
    """A comparison; the first run is that to which the others are relative."""

    letter: str
    title: str
    runs: tuple[Run, ...]


def at_least(ratio: float) -> Bar:
    """Return the bar of a peer: it takes at least so many times as long."""
    return Bar("x", ratio, is_least=True)


def at_most(ratio: float) -> Bar:
    """Return the bar of another run of ours."""
    return Bar("x", ratio)


TOP = Query("top", "?s ?v", "?s :value ?v", "ORDER BY DESC(?v)", 10)
SUM = Query("sum", "?s (SUM(?v) AS ?t)", "?s :value ?v", "GROUP BY ?s ORDER BY DESC(?t)", 5)
JOIN = Query(
    "sparql", "?r ?s ?v ?a",
    "?r :value ?v ; :sensor ?s OPTIONAL { ?r :alarm ?a } FILTER (?v > 900000)",
)  # fmt: skip
CHAIN = Query(
    "sparql", "?r ?v ?t", "?r :value ?v ; :sensor ?s . ?s :follows ?t FILTER (?v > 990000)"
)  # fmt: skip
FILTERED = replace(TOP, below=900_000)
FIFTY = tuple(replace(TOP, below=900_000 - 10_000 * number) for number in range(1, 50))


def joins(letter: str, title: str, query: Query, bars: Sequence[tuple[int, float]]) -> list[Case]:
    """Return the cases of a join, by the steps of a window."""
    return [
        Case(
            letter,
            f"{title}, RANGE = {steps} STEP",
            (
                Run("rsp", sized := replace(query, range_s=steps), STAR),
                Run("reload", sized, STAR, bar=at_least(ratio)),
            ),
        )
        for steps, ratio in bars
    ]


def checkpoint(title: str, query: Query, ratio: float) -> Case:
    """Return the case of a query with and without a checkpoint."""
    saved = Run("rsp", query, FEW, "with --checkpoint", at_most(ratio), has_checkpoint=True)
    return Case("i", title, (Run("rsp", query, FEW), saved))


CASES = (
    Case(
        "a",
        "one pattern, the best 10",
        (
            Run("rsp", TOP, FEW),
            Run("duckdb", TOP, FEW),
            Run("duckdb", TOP, FEW, "panes first", at_least(1.0)),
            Run("bytewax", TOP, FEW, bar=at_least(8)),
            Run("bytewax", TOP, FEW, "panes first"),
            *(Run(peer, TOP, FEW) for peer in ("spark", "pathway", "flink")),
        ),
    ),
    Case(
        "b",
        "SUM per subject, the best 5 of 1,000",
        (
            Run("rsp", SUM, FEW),
            Run("duckdb", SUM, FEW, bar=at_least(1 / 1.2)),
            Run("duckdb", SUM, FEW, "panes first"),
            Run("duckdb", SUM, FEW, "DISTINCT", at_least(1 / 0.7)),
            Run("duckdb", SUM, FEW, "panes first, DISTINCT", at_least(1 / 0.7)),
            Run("bytewax", SUM, FEW, bar=at_least(3)),
            Run("bytewax", SUM, FEW, "panes first"),
            *(Run(peer, SUM, FEW) for peer in ("spark", "pathway", "flink")),
        ),
    ),
    Case(
        "c",
        "SUM per subject, the best 5 of 1,000,000",
        (
            Run("rsp", SUM, MANY, bar=Bar("MB", 400)),
            Run("duckdb", SUM, MANY, "panes first", at_least(1.0)),
            Run("duckdb", SUM, MANY, "panes first, DISTINCT", at_least(1.0)),
            Run("spark", SUM, MANY),
        ),
    ),
    *joins("d", "star join, FILTER, OPTIONAL", JOIN, [(5, 3), (20, 10)]),
    *joins("e", "a join that is no star", CHAIN, [(5, 1.8), (20, 4)]),
    Case(
        "f",
        "(a) with a numeric FILTER",
        (
            Run("rsp", TOP, FEW, "without FILTER"),
            Run("rsp", FILTERED, FEW, bar=at_most(1.1)),
            Run("rsp", FILTERED, FEW, "fifty queries", Bar("us", 30), more=FIFTY),
            Run("duckdb", FILTERED, FEW, "panes first"),
        ),
    ),
    *(
        Case(
            "g",
            f"{title} over longer windows, STEP 10 s",
            (
                Run("rsp", replace(query, step_s=10), LONG, "RANGE 10 s"),
                *(
                    Run(
                        peer,
                        replace(query, step_s=10, range_s=range_s),
                        LONG,
                        f"RANGE {range_s:,} s" + ("" if peer == "rsp" else ", panes first"),
                        bar=at_most(1.15) if peer == "rsp" else None,
                    )
                    for range_s in (100, 1000)
                    for peer in ("rsp", "duckdb")
                ),
            ),
        )
        for title, query in (("(a)", TOP), ("(b)", SUM))
    ),
    Case(
        "h",
        "(a) among other predicates, 5 % of lines not plain",
        (
            Run("rsp", TOP, FEW, "plain file"),
            Run("rsp", TOP, MIXED, bar=at_most(1.5)),
            Run("duckdb", TOP, MIXED, "lines, panes first"),
        ),
    ),
    checkpoint("(a) with a checkpoint", TOP, 1.15),
    checkpoint("(b) with a checkpoint", SUM, 1.3),
    Case(
        "j",
        "(a) per triple: the slope between two lengths",
        (
            Run("rsp", TOP, FEW, beyond=FEW.first(200_000)),
            Run("rsp", TOP, FEW.first(150_000), "the first 150,000"),
            Run("rsp-js", TOP, FEW.first(150_000), bar=at_least(100), beyond=FEW.first(120_000)),
        ),
    ),
)
