"""Pushdown: what each scan of each query needs of a stream, computed where its splits are read.

A ranked query needs only the solutions that can reach an answer, and a join only the triples that
its patterns can match. Other queries need the triples, or the solutions of each element where
elements are matched one by one. Pushdowns are plain values, so that they can be sent to executors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.physical_plan import block_graphs, load_graphs
from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.joins.triple_selection import TripleSelection
from rsp_engine.operators.scoring.scoring_function import Number
from rsp_engine.operators.sparql.one_pattern import OnePattern
from rsp_engine.operators.sparql.pane_matcher import Matcher, MatcherConfig
from rsp_engine.operators.sparql.projector import OBJECTS
from rsp_engine.operators.sparql.template import Hole
from rsp_engine.operators.topk.keyed_topk import best_of
from rsp_engine.operators.windows.element_solutions import SolutionDescriber

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan, WindowScan
    from rsp_engine.operators.sparql.pane_matcher import PaneSolutions, SolutionTuple
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.element_solutions import ElementBlock

__all__ = [
    "DescribedElements",
    "KeepBest",
    "KeepDistinct",
    "KeepLatest",
    "MatchedSolutions",
    "Pushdown",
    "SharedPushdown",
    "Wanted",
    "pushdowns",
    "shared",
]


@dataclass(frozen=True, slots=True)
class KeepBest:
    """Keeps the k best solutions of each pane: no other can reach an answer."""

    k: int
    descending: bool

    def keep(self, matched: PaneSolutions) -> PaneSolutions:
        """Return the k best by score, then by the later arrival, then by the larger text."""
        best, _ = best_of(matched, self.k, descending=self.descending)
        return best


@dataclass(frozen=True, slots=True)
class KeepLatest:
    """Keeps the latest arrival of each join key in each pane; a tie goes to the larger text."""

    key: tuple[int, ...]

    def keep(self, matched: PaneSolutions) -> PaneSolutions:
        """Return one solution for each join key."""
        latest: dict[SolutionTuple, int] = {}
        times, solutions = matched.times.tolist(), matched.solutions
        for index, solution in enumerate(solutions):
            key = tuple([solution[at] for at in self.key])
            other = latest.setdefault(key, index)
            if other != index and (
                times[other] < times[index]
                or (
                    times[other] == times[index] and row_text(solutions[other]) < row_text(solution)
                )
            ):
                latest[key] = index
        return matched.at(list(latest.values()))


@dataclass(frozen=True, slots=True)
class KeepDistinct:
    """Keeps each distinct solution of a pane once, with its latest arrival."""

    def keep(self, matched: PaneSolutions) -> PaneSolutions:
        """Return the latest arrival of each solution."""
        latest: dict[SolutionTuple, int] = {}
        times = matched.times
        for index, solution in enumerate(matched.solutions):
            other = latest.setdefault(solution, index)
            if times[other] < times[index]:
                latest[solution] = index
        return matched.at(list(latest.values()))


@dataclass(frozen=True, slots=True)
class MatchedSolutions:
    """The solutions of patterns over a window and the static graphs, and which of them to keep."""

    matching: MatcherConfig
    graphs: bytes
    """The static graphs, as N-Quads."""
    names: tuple[str, ...]
    """The names of these graphs, since N-Quads leave out empty ones."""
    keep: KeepBest | KeepLatest | KeepDistinct

    def matcher(self) -> Matcher:
        """Return the matcher of the patterns."""
        return Matcher(self.matching, _load(self.graphs, self.names))


@dataclass(frozen=True, slots=True)
class DescribedElements:
    """The solutions of WINDOW blocks within each element, over the static graphs."""

    blocks: tuple[ElementBlock, ...]
    graphs: bytes
    names: tuple[str, ...]

    def describing(self) -> SolutionDescriber:
        """Return the matcher of the blocks, which writes solutions as triples."""
        return SolutionDescriber(self.blocks, _load(self.graphs, self.names))


def _load(graphs: bytes, names: Sequence[str]) -> ox.Store:
    store = ox.Store()
    for name in names:
        store.add_graph(ox.NamedNode(name))
    store.load(graphs, format=ox.RdfFormat.N_QUADS)
    return store


def _dump(store: ox.Store) -> tuple[bytes, tuple[str, ...]]:
    """Return graphs as N-Quads, and their names, since N-Quads leave out empty ones."""
    graphs = store.dump(format=ox.RdfFormat.N_QUADS) if len(store) else b""
    return graphs or b"", tuple(str(name.value) for name in store.named_graphs())


Wanted = MatchedSolutions | DescribedElements | TripleSelection | None
"""What a scan needs: solutions, described elements, or some or all triples."""


@dataclass(frozen=True, slots=True)
class Pushdown:
    """What one scan of one query needs."""

    step: int
    scan: int
    frame: TimeFrame
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class SharedPushdown:
    """What several scans need, and the pushdown of each: they get the same contents."""

    wanted: Wanted
    readers: tuple[Pushdown, ...]


def shared(pushdowns: Iterable[Pushdown]) -> list[SharedPushdown]:
    """Gather the pushdowns that need the same.

    Rankings that differ in k only need the best of the largest k: more than the k best of a pane
    change no answer.
    """
    found: list[tuple[Wanted, list[Pushdown]]] = []
    for pushdown in pushdowns:
        alike = _without_k(pushdown.wanted)
        readers = next((readers for other, readers in found if other == alike), None)
        if readers is None:
            found.append((alike, [pushdown]))
        else:
            readers.append(pushdown)
    return [
        SharedPushdown(max((r.wanted for r in readers), key=_k_of), tuple(readers))
        for _, readers in found
    ]


def _k_of(wanted: Wanted) -> int:
    """Return how many solutions of a pane are kept; 0 if that depends on the pane."""
    if isinstance(wanted, MatchedSolutions) and isinstance(wanted.keep, KeepBest):
        return wanted.keep.k
    return 0


def _without_k(wanted: Wanted) -> Wanted:
    """Return the same, whatever k is."""
    if isinstance(wanted, MatchedSolutions) and isinstance(wanted.keep, KeepBest):
        return replace(wanted, keep=replace(wanted.keep, k=0))
    return wanted


def pushdowns(plans: Sequence[PhysicalPlan], stream: str) -> Iterator[Pushdown]:
    """Yield the pushdowns of a stream; count windows have none, since they need every element."""
    for step, plan in enumerate(plans):
        for number, scan in enumerate(plan.scans):
            if scan.stream == stream and isinstance(scan.frame, TimeFrame):
                yield Pushdown(step, number, scan.frame, _wanted(plan, scan))


def _every_triple(config: SparqlConfig) -> MatcherConfig:
    """Return a matching whose solutions are the triples, for queries that need arrival times."""
    names = ("s", "p", "o")
    return MatcherConfig(OBJECTS, names, (OnePattern(*map(Hole, names)),), config, (), Number(1.0))


def _wanted(plan: PhysicalPlan, scan: WindowScan) -> Wanted:
    if scan.blocks:
        return DescribedElements(scan.blocks, *_dump(block_graphs(scan.blocks, plan.graphs)))
    if scan.selection is not None:
        return scan.selection
    config = plan.operator
    keep: KeepBest | KeepLatest | KeepDistinct
    match config:
        case TopkConfig():
            keep = KeepBest(config.k, config.descending)
        case AcquaTopConfig(grouping=None, arrivals="latest"):
            keep = KeepLatest(config.key)
        case AcquaTopConfig() | GroupTopkConfig():
            keep = KeepDistinct()
        case _ if config.query.is_timed:
            return MatchedSolutions(_every_triple(config.query), b"", (), KeepDistinct())
        case _:
            return None
    store = ox.Store()
    load_graphs(store, plan.graphs)
    return MatchedSolutions(config.matching, *_dump(store), keep)
