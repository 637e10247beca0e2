"""Readings: what the scans of the queries want to know of a stream.

A query that ranks wants solutions, and only those that can still count; any other wants triples, or
the solutions of elements where these are matched one by one.
Readings are plain values, so that they can be sent to where a stream is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.static_graphs import block_graphs, load_graphs
from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.scoring.scoring_function import Number
from rsp_engine.operators.sparql.one_pattern import OnePattern
from rsp_engine.operators.sparql.pane_matcher import Matcher, Matching
from rsp_engine.operators.sparql.projector import OBJECTS
from rsp_engine.operators.sparql.template import Hole
from rsp_engine.operators.topk.keyed_topk import best_of
from rsp_engine.operators.windows.element_solutions import Describing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan, WindowScan
    from rsp_engine.operators.sparql.pane_matcher import Matched, SolutionTuple
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.element_solutions import ElementBlock

__all__ = [
    "DescribedElements",
    "KeepBest",
    "KeepDistinct",
    "KeepLatest",
    "MatchedSolutions",
    "Pushdown",
    "pushdowns",
]


@dataclass(frozen=True, slots=True)
class KeepBest:
    """Of each pane the k best solutions: no other can reach an answer."""

    k: int
    descending: bool

    def keep(self, matched: Matched) -> Matched:
        """Return the best by score, then by the later arrival, then by the larger text."""
        best, _ = best_of(matched, self.k, descending=self.descending)
        return best


@dataclass(frozen=True, slots=True)
class KeepLatest:
    """Of each pane the latest arrival of each join key; of two at once the one with larger text."""

    key: tuple[int, ...]

    def keep(self, matched: Matched) -> Matched:
        """Return one solution for each key."""
        latest: dict[SolutionTuple, int] = {}
        times, solutions = matched.times.tolist(), matched.solutions
        for place, solution in enumerate(solutions):
            key = tuple([solution[at] for at in self.key])
            other = latest.setdefault(key, place)
            if other != place and (
                times[other] < times[place]
                or (
                    times[other] == times[place] and row_text(solutions[other]) < row_text(solution)
                )
            ):
                latest[key] = place
        return matched.at(list(latest.values()))


@dataclass(frozen=True, slots=True)
class KeepDistinct:
    """Of each pane every solution, once, with its latest arrival."""

    def keep(self, matched: Matched) -> Matched:
        """Return the solutions that count."""
        return matched.at(_latest(matched, range(len(matched.solutions))))


def _latest(matched: Matched, places: Iterable[int]) -> list[int]:
    """Return of some places those of the latest arrival of each solution."""
    latest: dict[SolutionTuple, int] = {}
    times = matched.times
    for place in places:
        other = latest.setdefault(matched.solutions[place], place)
        if times[other] < times[place]:
            latest[matched.solutions[place]] = place
    return list(latest.values())


@dataclass(frozen=True, slots=True)
class MatchedSolutions:
    """Solutions of patterns, over a window and the static graphs, and which of them to keep."""

    matching: Matching
    graphs: bytes
    """The static graphs, as N-Quads."""
    names: tuple[str, ...]
    """Their names, since N-Quads do not tell of empty ones."""
    keep: KeepBest | KeepLatest | KeepDistinct

    def matcher(self) -> Matcher:
        """Return what finds the solutions."""
        return Matcher(self.matching, _loaded(self.graphs, self.names))


@dataclass(frozen=True, slots=True)
class DescribedElements:
    """The solutions that elements give to some blocks, over the static graphs."""

    blocks: tuple[ElementBlock, ...]
    graphs: bytes
    names: tuple[str, ...]

    def describing(self) -> Describing:
        """Return what describes the solutions."""
        return Describing(self.blocks, _loaded(self.graphs, self.names))


def _loaded(graphs: bytes, names: Sequence[str]) -> ox.Store:
    made = ox.Store()
    for name in names:
        made.add_graph(ox.NamedNode(name))
    made.load(graphs, format=ox.RdfFormat.N_QUADS)
    return made


def _dumped(store: ox.Store) -> tuple[bytes, tuple[str, ...]]:
    """Return graphs as N-Quads, and their names, since N-Quads do not tell of empty ones."""
    found = store.dump(format=ox.RdfFormat.N_QUADS) if len(store) else b""
    return found or b"", tuple(str(name.value) for name in store.named_graphs())


@dataclass(frozen=True, slots=True)
class Pushdown:
    """What one scan of one query wants: solutions, as they are or described; or the triples."""

    step: int
    scan: int
    frame: TimeFrame
    wanted: MatchedSolutions | DescribedElements | None


def pushdowns(plans: Sequence[PhysicalPlan], stream: str) -> Iterator[Pushdown]:
    """Yield the readings of a stream; nothing for windows that count, which see elements."""
    for step, plan in enumerate(plans):
        for number, scan in enumerate(plan.scans):
            if scan.stream == stream and isinstance(scan.frame, TimeFrame):
                yield Pushdown(step, number, scan.frame, _wanted(plan, scan))


def _every_triple(config: SparqlConfig) -> Matching:
    """Return a matching that gives triples as they are, for those who need to know their times."""
    names = ("s", "p", "o")
    return Matching(OBJECTS, names, (OnePattern(*map(Hole, names)),), config, False, Number(1.0))


def _wanted(plan: PhysicalPlan, scan: WindowScan) -> MatchedSolutions | DescribedElements | None:
    if scan.blocks:
        return DescribedElements(scan.blocks, *_dumped(block_graphs(scan.blocks, plan.graphs)))
    config = plan.operator
    keep: KeepBest | KeepLatest | KeepDistinct
    match config:
        case TopkConfig():
            keep = KeepBest(config.k, config.descending)
        case AcquaTopConfig(grouping=None, arrivals="latest"):
            keep = KeepLatest(config.key)
        case AcquaTopConfig() | GroupTopkConfig():
            keep = KeepDistinct()
        case _ if config.is_timed:
            return MatchedSolutions(_every_triple(config), b"", (), KeepDistinct())
        case _:
            return None
    assert config.matching is not None, "the planner says what to match"  # noqa: S101
    store = ox.Store()
    load_graphs(store, plan.graphs)
    return MatchedSolutions(config.matching, *_dumped(store), keep)
