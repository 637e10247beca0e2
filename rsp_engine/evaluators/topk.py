"""The top-k evaluator: ranked queries of one triple pattern, matched and scored pane by pane.

An object is a solution of the pattern. Only the best objects of a pane can reach an answer, so only
these are deduplicated, sorted and passed to a top-k operator. Rows are built only for the objects
in an answer.

The ranker of the plan ranks as long as all scores are numbers whose order float64 preserves. After
the first exception, `KeyedTopk` ranks by term order. It also takes over when an instant has
no free position left: see `Positions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rsp_engine.model.blocks import RowBlocks, rows_of
from rsp_engine.model.terms.ntriples import read_rows, row_text
from rsp_engine.model.terms.term_order import number_key
from rsp_engine.model.windows import Pane
from rsp_engine.operators.scoring.positions import LatestPositions, Positions
from rsp_engine.operators.sparql.pane_matcher import (
    Matcher,
    MatcherConfig,
    PaneSolutions,
    SolutionTuple,
)
from rsp_engine.operators.sparql.projector import Projector, holds_blank_nodes
from rsp_engine.operators.sparql.sparql_query import answer_content
from rsp_engine.operators.topk.keyed_topk import KeyedTopk, best_of
from rsp_engine.operators.topk.rankers import RANKERS, ranker_config
from rsp_engine.operators.topk.score_threshold import Border
from rsp_engine.operators.windows.count_windows import CountedScan
from rsp_engine.operators.windows.time_windows import TimedScan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyoxigraph import Store

    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.model.answers import Graph, Row, Solutions
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.topk.contract import TopkOperator, TopkOperatorConfig
    from rsp_engine.operators.topk.keyed_topk import KeyedPlace
    from rsp_engine.operators.topk.rankers import RankerName
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["TopkConfig", "TopkEvaluator"]


@dataclass(frozen=True, slots=True)
class TopkConfig:
    """`ranker` finds the top k of each window, and the first `offset` of them are dropped.

    `projected` is the query for the rows: see `Projector`. `slides` is the number of slides per
    window.
    """

    tag: ClassVar[str] = "Ranked"
    scan_kind: ClassVar[ScanKind] = "solutions"

    query: SparqlConfig
    matching: MatcherConfig
    projected: SparqlConfig | None
    descending: bool
    k: int
    offset: int
    ranker: RankerName
    slides: int

    def evaluator(self, context: EvaluatorContext) -> TopkEvaluator:
        """Return the evaluator of a run."""
        return TopkEvaluator(self, context.store())


class TopkEvaluator:
    """Ranks solutions per window. Memory: the top k solutions of each pane of open windows."""

    def __init__(self, config: TopkConfig, store: Store) -> None:
        self.config = config
        self.may_give_blank_nodes = False
        self._matcher = Matcher(config.matching, store)
        self._projector = Projector(config.query, config.projected)
        self._ranker: TopkOperator = RANKERS[config.ranker](self._ranker_config)
        self._keyed: KeyedTopk | None = None
        self._border = Border(config.k)
        self._objects = Objects()
        self._positions = Positions()

    @property
    def _ranker_config(self) -> TopkOperatorConfig:
        return ranker_config(self.config.ranker, self.config.k, self.config.slides)

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph:
        """Return the answer over the only scan, at an instant."""
        [scan] = scans
        assert isinstance(scan, CountedScan | TimedScan), "panes are matched once"  # noqa: S101
        for pane, matched in scan.fresh(self._matcher, now):
            self._take(pane, matched.read(), scan.closed)
        if self._keyed is None:
            best = self._ranker.close(scan.closed).keys.tolist()
        else:
            best = self._keyed.close(scan.closed)
        self._objects.expire(scan.closed)
        objects = [self._objects[key] for key in best[self.config.offset :]]
        return answer_content(self.config.query, self._rows(objects, now))

    def stats(self) -> dict[str, int | bool]:
        """Return the statistics of the last answer."""
        return {"exact": True}

    def _take(self, pane: Pane, matched: PaneSolutions, window: int) -> None:
        """Pass the best objects of a pane to the ranker."""
        if matched.keys is not None and self._keyed is None:
            self._keyed = self._keyed_topk(window)
        if self._keyed is not None:
            self._take_keyed(pane, matched, window, self._keyed)
            return
        scores = matched.numbers if self.config.descending else -matched.numbers
        order = matched.in_order(self._near(matched, scores))
        best = matched.at(order)
        solutions = best.solutions
        positions = self._positions.of(
            best.times, lambda place: row_text(solutions[place]), self._objects.at
        )
        if self._positions.is_crowded:
            self._keyed = self._keyed_topk(window)
            self._take_keyed(pane, matched, window, self._keyed)
            return
        keys = self._objects.numbers(pane.last, best)
        self._objects.positions.note(keys, positions)
        self._ranker.arrive(pane, keys, positions, scores[order])

    def _keyed_topk(self, window: int) -> KeyedTopk:
        """Return an operator over terms with the objects of the ranker so far."""
        keyed = KeyedTopk(self.config.k, descending=self.config.descending)
        for end, keys in sorted(self._objects.by_end().items()):
            if end >= window:
                keyed.arrive(Pane(window, end), window, keys, list(map(self._objects.place, keys)))
        return keyed

    def _take_keyed(
        self, pane: Pane, matched: PaneSolutions, window: int, keyed: KeyedTopk
    ) -> None:
        best, places = best_of(matched, self.config.k, descending=self.config.descending)
        keyed.arrive(pane, window, self._objects.numbers(pane.last, best).tolist(), places)

    def _near(self, matched: PaneSolutions, scores: Floats) -> list[int]:
        """Return the indices of solutions that include the top k objects of a pane."""
        above = self._border.above(scores)
        if above is None:
            return list(range(len(scores)))
        self._border.learn(-np.sort(-scores[above]))
        near: list[int] = above.tolist()
        if len({matched.solutions[place] for place in near}) < self.config.k:
            return list(range(len(scores)))  # repeats of a few objects hide the rest
        return near

    def _rows(self, objects: list[SolutionTuple], now: int) -> list[Row]:
        """Return the rows of objects, in the given order."""
        names = self._matcher.config.names
        rows = self._projector.rows([dict(zip(names, o, strict=True)) for o in objects], now)
        self.may_give_blank_nodes |= holds_blank_nodes(rows)
        return rows

    def state(self) -> StateData:
        """Return the state as plain data."""
        return {
            "ranker": self._ranker.state(),
            "keyed": None if self._keyed is None else self._keyed.state(),
            "objects": self._objects.state(),
            "positions": self._positions.state(),
            "may_give_blank_nodes": self.may_give_blank_nodes,
        }

    def restore(self, state: StateData) -> None:
        """Restore a saved state. The score threshold is learned again."""
        ranker = RANKERS[self.config.ranker]
        self._ranker = ranker.restored(self._ranker_config, state["ranker"])
        if (keyed := state["keyed"]) is not None:
            order = self.config.descending
            self._keyed = KeyedTopk.restored(self.config.k, keyed, descending=order)
        self._objects.restore(state["objects"], len(self._matcher.config.names))
        self._positions.restore(state["positions"])
        self.may_give_blank_nodes = state["may_give_blank_nodes"]


class Objects:
    """The objects of open windows: numbered solutions with their scores and times."""

    def __init__(self) -> None:
        self._solutions: dict[int, SolutionTuple] = {}
        self._scores: dict[int, tuple[float, int]] = {}
        self.positions = LatestPositions()  # not used once objects are ranked by terms
        self._numbers: dict[SolutionTuple, tuple[int, int]] = {}
        self._ends: dict[int, list[SolutionTuple]] = {}
        self._next = 0
        self._blocks = RowBlocks()

    def __getitem__(self, number: int) -> SolutionTuple:
        return self._solutions[number]

    def numbers(self, end: int, matched: PaneSolutions) -> Integers:
        """Return the numbers of solutions that live until window `end`; assign missing ones.

        >>> objects = Objects()
        >>> def arrive(end, *solutions):
        ...     times = np.zeros(len(solutions), dtype=np.int64)
        ...     return objects.numbers(end, PaneSolutions(solutions, times, times / 1))
        >>> arrive(1, "a", "b"), arrive(2, "b")
        (array([0, 1]), array([1]))
        >>> objects.expire(2)
        >>> arrive(2, "a")
        array([2])
        """
        numbers = []
        scores = zip(matched.numbers.tolist(), matched.times.tolist(), strict=True)
        for solution, score in zip(matched.solutions, scores, strict=True):
            number, until = self._numbers.get(solution, (self._next, -1))
            if number == self._next:
                self._next += 1
                self._solutions[number] = solution
                self._scores[number] = score
            elif self._scores[number][1] < score[1]:
                self._scores[number] = score
            if until < end:
                self._numbers[solution] = (number, end)
                self._ends.setdefault(end, []).append(solution)
            numbers.append(number)
        self._blocks.touch(numbers)
        return np.array(numbers, dtype=np.int64)

    def at(self, times: Integers) -> Iterator[tuple[str, int]]:
        """Yield the texts and the positions of the objects that arrived last at these instants."""
        return ((row_text(self[number]), position) for number, position in self.positions.at(times))

    def place(self, number: int) -> KeyedPlace:
        """Return the sort key of an object whose score is a number."""
        score, time = self._scores[number]
        return number_key(score), time, row_text(self._solutions[number])

    def by_end(self) -> dict[int, list[int]]:
        """Return the objects by the last window that contains them."""
        numbers: dict[int, list[int]] = {}
        for number, end in self._numbers.values():
            numbers.setdefault(end, []).append(number)
        return numbers

    def expire(self, window: int) -> None:
        """Forget the solutions that end before a window."""
        gone = []
        for end in [end for end in self._ends if end < window]:
            for solution in self._ends.pop(end):
                number, until = self._numbers[solution]
                if until == end:
                    del self._numbers[solution], self._solutions[number], self._scores[number]
                    gone.append(number)
        if gone:
            self._blocks.touch(gone)
            self.positions.forget(gone)

    def state(self) -> StateData:
        """Return the objects as plain data."""
        return {
            "next": self._next,
            "size": len(self._solutions),
            "rows": self._blocks.state(self._solutions, self._rows),
            "came": self.positions.state(),
        }

    def _rows(self, numbers: list[int]) -> list[list[Any]]:
        solutions = [self._solutions[number] for number in numbers]
        return [
            [number, self._numbers[solution][1], row_text(solution), *self._scores[number]]
            for number, solution in zip(numbers, solutions, strict=True)
        ]

    def restore(self, state: StateData, width: int) -> None:
        """Restore a saved state, whose solutions have `width` terms."""
        rows = rows_of(state["rows"], state["size"])
        solutions: list[Any] = read_rows([row[2] for row in rows], width)
        self._next, self._ends, self._blocks = state["next"], {}, RowBlocks()
        self._solutions, self._scores, self._numbers = {}, {}, {}
        self.positions.restore(state["came"])
        for (number, end, _, score, time), solution in zip(rows, solutions, strict=True):
            self._solutions[number], self._scores[number] = solution, (score, time)
            self._numbers[solution] = number, end
            self._ends.setdefault(end, []).append(solution)
