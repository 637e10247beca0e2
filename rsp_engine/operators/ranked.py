"""R2R for ranked queries of one triple pattern: each pane is matched and scored once.

An object is a solution of the pattern. Only the best of a pane can reach an answer, so only these
are told apart, put in order and handed to a top-k operator; the rows of an answer are made for the
few objects that are in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.ntriples import read_rows, row_text
from rsp_engine.operators.asking import GeneralConfig, content_of
from rsp_engine.operators.best import Border
from rsp_engine.operators.count_windows import CountedScan
from rsp_engine.operators.matching import Matched, Matcher, Matching, Solution
from rsp_engine.operators.projecting import Projector, holds_blank_nodes
from rsp_engine.operators.rankers import RANKERS, RankerName, ranker_config
from rsp_engine.operators.time_windows import TimedScan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyoxigraph import Store

    from rsp_engine.model.answers import Graph, Row, Solutions
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.scan import Scan
    from rsp_engine.operators.state import State
    from rsp_engine.operators.topk import TopkConfig, TopkOperator

__all__ = ["RANKERS", "Ranked", "RankedConfig", "RankerName"]


@dataclass(frozen=True, slots=True)
class RankedConfig(GeneralConfig):
    """The text is that of the general path: what the query means.

    Of each window the k best are found by `ranker`, and the first `offset` of them are left out.
    `projected` makes rows of them: see `Projector`. A window has so many `slides`.
    """

    matching: Matching | None = None
    projected: GeneralConfig | None = None
    descending: bool = True
    k: int = 1
    offset: int = 0
    ranker: RankerName = "MinTopk"
    slides: int = 1


class Ranked:
    """Ranks window by window. Memory: the best k solutions of each pane of open windows."""

    def __init__(self, config: RankedConfig, store: Store) -> None:
        assert config.matching is not None, "the planner says what to match"  # noqa: S101
        self.config = config
        self.may_give_blank_nodes = False
        self._matcher = Matcher(config.matching, store)
        self._projector = Projector(config, config.projected)
        self._ranker: TopkOperator = RANKERS[config.ranker](self._ranker_config)
        self._border = Border(config.k)
        self._objects = Objects()
        self._count = 0

    @property
    def _ranker_config(self) -> TopkConfig:
        return ranker_config(self.config.ranker, self.config.k, self.config.slides)

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph:
        """Return the answer over the content of the only scan, at an instant."""
        [scan] = scans
        assert isinstance(scan, CountedScan | TimedScan), "panes are looked at once"  # noqa: S101
        for pane, matched in scan.fresh(self._matcher, now):
            self._take(pane, matched.read())
        ranking = self._ranker.close(scan.closed)
        self._objects.expire(scan.closed)
        best = [self._objects[key] for key in ranking.keys[self.config.offset :].tolist()]
        return content_of(self.config, self._rows(best, now))

    def stats(self) -> dict[str, int | bool]:
        """Return what an answer says of itself."""
        return {"exact": True}

    def _take(self, pane: Pane, matched: Matched) -> None:
        """Give the best of a pane to the ranker."""
        scores = matched.numbers if self.config.descending else -matched.numbers
        scores = np.where(np.isnan(scores), -np.inf, scores)  # what has no score ranks last
        order = matched.in_order(self._near(matched, scores))  # so no two positions are the same
        keys = self._objects.numbers(pane.last, [matched.solutions[place] for place in order])
        positions = np.arange(self._count, self._count + len(order))
        self._count += len(order)
        self._ranker.arrive(pane, keys, positions, scores[order])

    def _near(self, matched: Matched, scores: Floats) -> list[int]:
        """Return the places of solutions among which are the k best objects of a pane."""
        above = self._border.above(scores)
        if above is None:
            return list(range(len(scores)))
        self._border.learn(-np.sort(-scores[above]))
        near: list[int] = above.tolist()
        if len({matched.solutions[place] for place in near}) < self.config.k:
            return list(range(len(scores)))  # the same few objects again and again
        return near

    def _rows(self, objects: list[Solution], now: int) -> list[Row]:
        """Return the rows of objects, in their order."""
        names = self._matcher.config.names
        rows = self._projector.rows([dict(zip(names, o, strict=True)) for o in objects], now)
        self.may_give_blank_nodes |= holds_blank_nodes(rows)
        return rows

    def state(self) -> State:
        """Return all there is to know, as plain data, to be restored from."""
        return {
            "ranker": self._ranker.state(),
            "objects": self._objects.state(),
            "count": self._count,
            "may_give_blank_nodes": self.may_give_blank_nodes,
        }

    def restore(self, state: State) -> None:
        """Go on from a state. Where to look for the best is guessed anew."""
        ranker = RANKERS[self.config.ranker]
        self._ranker = ranker.restored(self._ranker_config, state["ranker"])
        self._objects.restore(state["objects"], len(self._matcher.config.names))
        self._count = state["count"]
        self.may_give_blank_nodes = state["may_give_blank_nodes"]


class Objects:
    """Numbers of solutions, kept as long as a window holds them."""

    def __init__(self) -> None:
        self._solutions: dict[int, Solution] = {}
        self._numbers: dict[Solution, tuple[int, int]] = {}
        self._ends: dict[int, list[Solution]] = {}
        self._next = 0

    def __getitem__(self, number: int) -> Solution:
        return self._solutions[number]

    def numbers(self, end: int, solutions: list[Solution]) -> Integers:
        """Return the numbers of solutions that live until a window, new ones where there are none.

        >>> objects = Objects()
        >>> objects.numbers(1, ["a", "b"]), objects.numbers(2, ["b"])
        (array([0, 1]), array([1]))
        >>> objects.expire(2)
        >>> objects.numbers(2, ["a"])
        array([2])
        """
        found = []
        for solution in solutions:
            number, until = self._numbers.get(solution, (self._next, -1))
            if number == self._next:
                self._next += 1
                self._solutions[number] = solution
            if until < end:
                self._numbers[solution] = (number, end)
                self._ends.setdefault(end, []).append(solution)
            found.append(number)
        return np.array(found, dtype=np.int64)

    def expire(self, window: int) -> None:
        """Forget solutions that do not live until a window."""
        for end in [end for end in self._ends if end < window]:
            for solution in self._ends.pop(end):
                number, until = self._numbers[solution]
                if until == end:
                    del self._numbers[solution], self._solutions[number]

    def state(self) -> State:
        """Return the solutions with their numbers and their last windows, as plain data."""
        return {
            "next": self._next,
            "numbers": list(self._solutions),
            "ends": [self._numbers[solution][1] for solution in self._solutions.values()],
            "solutions": list(map(row_text, self._solutions.values())),
        }

    def restore(self, state: State, width: int) -> None:
        """Go on from a state; a solution has so many terms."""
        solutions: list[Any] = read_rows(state["solutions"], width)
        self._next, self._ends = state["next"], {}
        self._solutions = dict(zip(state["numbers"], solutions, strict=True))
        self._numbers = {}
        for number, end, solution in zip(state["numbers"], state["ends"], solutions, strict=True):
            self._numbers[solution] = number, end
            self._ends.setdefault(end, []).append(solution)
