"""Readings: what the scans of the queries want to know of a stream.

A query that ranks wants solutions, and only those that can still count; any other wants triples.
Readings are plain values, so that they can be sent to where a stream is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.ntriples import row_text
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.aggregated import AggregatedConfig
from rsp_engine.operators.ranked import RankedConfig
from rsp_engine.plan.joined import JoinedConfig
from rsp_engine.runtime.static_graphs import load_graphs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.matching import Matched, Matching, Solution
    from rsp_engine.plan.physical import PhysicalPlan

__all__ = ["Best", "Distinct", "Latest", "Reading", "Solutions", "readings"]


@dataclass(frozen=True, slots=True)
class Best:
    """Of each pane the k best solutions: no other can reach an answer."""

    k: int
    descending: bool

    def keep(self, matched: Matched) -> Matched:
        """Return the best by score, then by the later arrival, then by the larger text."""
        scores = matched.numbers if self.descending else -matched.numbers
        scores = np.where(np.isnan(scores), -np.inf, scores)  # what has no score ranks last
        near = _latest(matched, self._near(matched, scores))
        if len(near) <= self.k:
            return matched.at(near)
        solutions = matched.solutions
        texts = {place: row_text(solutions[place]) for place in near}
        near.sort(key=lambda place: (scores[place], matched.times[place], texts[place]))
        return matched.at(near[-self.k :])

    def _near(self, matched: Matched, scores: Floats) -> list[int]:
        """Return places among which are the k best, and others that are as good."""
        size, wanted = len(scores), 2 * self.k + 16
        if size > 2 * wanted:
            border = np.partition(scores, size - wanted)[size - wanted]
            near: list[int] = np.flatnonzero(scores >= border).tolist()
            if len({matched.solutions[place] for place in near}) >= self.k:
                return near
        return list(range(size))


@dataclass(frozen=True, slots=True)
class Latest:
    """Of each pane the latest arrival of each join key; of two at once the one with larger text."""

    key: tuple[int, ...]

    def keep(self, matched: Matched) -> Matched:
        """Return one solution for each key."""
        latest: dict[Solution, int] = {}
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
class Distinct:
    """Of each pane every solution, once, with its latest arrival; or each arrival."""

    arrivals: Literal["latest", "all"] = "latest"

    def keep(self, matched: Matched) -> Matched:
        """Return the solutions that count."""
        if self.arrivals == "all":
            return matched
        return matched.at(_latest(matched, range(len(matched.solutions))))


def _latest(matched: Matched, places: Iterable[int]) -> list[int]:
    """Return of some places those of the latest arrival of each solution."""
    latest: dict[Solution, int] = {}
    times = matched.times
    for place in places:
        other = latest.setdefault(matched.solutions[place], place)
        if times[other] < times[place]:
            latest[matched.solutions[place]] = place
    return list(latest.values())


@dataclass(frozen=True, slots=True)
class Solutions:
    """Solutions of patterns, over a window and the static graphs, and which of them to keep."""

    matching: Matching
    graphs: bytes
    """The static graphs, as N-Quads."""
    keep: Best | Latest | Distinct

    def store(self) -> ox.Store:
        """Return a store that holds the static graphs."""
        made = ox.Store()
        made.load(self.graphs, format=ox.RdfFormat.N_QUADS)
        return made


@dataclass(frozen=True, slots=True)
class Reading:
    """What one scan of one query wants: solutions, or nothing but the triples."""

    step: int
    scan: int
    frame: TimeFrame
    wanted: Solutions | None


def readings(plans: Sequence[PhysicalPlan], stream: str) -> Iterator[Reading]:
    """Yield the readings of a stream; nothing for windows that count, which see elements."""
    for step, plan in enumerate(plans):
        for number, scan in enumerate(plan.scans):
            if scan.stream == stream and isinstance(scan.frame, TimeFrame):
                yield Reading(step, number, scan.frame, _wanted(plan))


def _wanted(plan: PhysicalPlan) -> Solutions | None:
    config = plan.operator
    keep: Best | Latest | Distinct
    match config:
        case RankedConfig():
            keep = Best(config.k, config.descending)
        case JoinedConfig(grouping=None, arrivals="latest"):
            keep = Latest(config.key)
        case JoinedConfig(grouping=None):
            keep = Distinct("all")
        case JoinedConfig() | AggregatedConfig():
            keep = Distinct()
        case _:
            return None
    assert config.matching is not None, "the planner says what to match"  # noqa: S101
    store = ox.Store()
    load_graphs(store, plan.graphs)
    graphs = store.dump(format=ox.RdfFormat.N_QUADS) if len(store) else b""
    return Solutions(config.matching, graphs or b"", keep)
