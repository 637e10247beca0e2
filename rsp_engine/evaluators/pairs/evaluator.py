"""The top-k pairs evaluator: the window is matched pane by pane, and its skyband gives the answer.

An object is a solution of the pattern that both sides of the query share. A pair is a solution of
the query: two objects of the window, in the order that a FILTER defines. A pair arrives with the
later of its objects. So of pairs with equal scores, the one with the latest later object ranks
first, then the one with the latest other object.

A window with values for which float64 and SPARQL differ is evaluated as a whole, as on the general
path.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.model.windows import Pane
from rsp_engine.operators.sparql.pane_matcher import Matcher
from rsp_engine.operators.sparql.projector import Projector, holds_blank_nodes
from rsp_engine.operators.sparql.sparql_query import answer_content
from rsp_engine.operators.windows.element_solutions import SolutionDescriber
from rsp_engine.operators.windows.time_windows import TimedScan

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from rsp_engine.evaluators.pairs.config import PairsConfig, Skybands
    from rsp_engine.model.answers import Boolean, Graph, Row, Solutions
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.sparql.pane_matcher import SolutionTuple
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["PairsEvaluator"]


class PairsEvaluator:
    """Ranks pairs per window. Memory: the triples and the objects of open windows."""

    def __init__(
        self, config: PairsConfig, store: ox.Store, window: str, skybands: Skybands
    ) -> None:
        self.config = config
        self.may_give_blank_nodes = False
        self.skyband = skybands.of(config.shape, config.k, config.size)
        """The skyband, which other queries may share."""
        self._store = store
        self._window = window
        self._matcher = Matcher(config.shape.matching, store)
        self._projector = Projector(config.query, config.projected)
        self._general: SparqlEvaluator | None = None
        self._described = (
            _Described(SolutionDescriber(config.blocks, store)) if config.blocks else None
        )
        self._taken: set[object] = set()
        self._now = 0

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the only scan, at an instant."""
        [scan] = scans
        self._now = now
        low, high = self._take(scan, now)
        best = self.skyband.best(self.config.k, low, high)
        if best is None:
            return self._whole(scans, now)
        return answer_content(self.config.query, self._rows(best[self.config.offset :], now))

    def stats(self) -> dict[str, int | bool]:
        """Return the statistics of the last answer."""
        return {"exact": True}

    def _take(self, scan: Scan, now: int) -> tuple[int, int]:
        """Add the new objects of a window to the skyband; return its first and last mark.

        A mark is the time of an object, or the number of its element.
        """
        parts = dict(scan.content())
        new = {part: triples for part, triples in parts.items() if part not in self._taken}
        self._taken = set(parts)
        interval = scan.interval()
        if isinstance(scan, TimedScan):
            shift = int(scan.frame.bounds == "[)")
            low, high = interval.open + 1 - shift, interval.close - shift
            marks = [scan.times(part) for part in new if isinstance(part, Pane)]
        else:
            numbers = [part for part in parts if isinstance(part, int)]
            low, high = min(numbers), max(numbers)
            marks = [np.full(len(triples), part) for part, triples in new.items()]
        objects: list[tuple[int, SolutionTuple]] = []
        if new:
            triples = [triple for part in new.values() for triple in part]
            sizes = [size for part, own in new.items() for size in _sizes(scan, part, own)]
            matched = self._matcher.match(triples, np.concatenate(marks), now, sizes)
            objects = list(zip(matched.times.tolist(), matched.solutions, strict=True))
        self.skyband.take(objects, high)
        return low, high

    def _whole(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Evaluate the query over the whole content of the window."""
        if self._general is None:
            store = ox.Store()
            store.extend(list(self._store.quads_for_pattern(None, None, None, None)))
            self._general = SparqlEvaluator(self.config.query, store, [self._window])
        shown = scans if self._described is None else list(map(self._described.of, scans))
        answer = self._general.answer(shown, now)
        self.may_give_blank_nodes |= self._general.may_give_blank_nodes
        return answer

    def _rows(self, pairs: list[SolutionTuple], now: int) -> list[Row]:
        names = self.config.names
        rows = self._projector.rows([dict(zip(names, p, strict=True)) for p in pairs], now)
        self.may_give_blank_nodes |= holds_blank_nodes(rows)
        return rows

    def now(self, k: int | None = None, size: int | None = None) -> Solutions | Graph:
        """Return a snapshot: the top k pairs of the last `size` milliseconds, or elements.

        The snapshot ends with the last evaluated window of the queries that share the skyband.
        """
        k = self.config.k - self.config.offset if k is None else k
        size = self.config.size if size is None else size
        skyband = self.skyband
        for value, most, what in ((k, skyband.k, "LIMIT"), (size, skyband.size, "window")):
            if not 1 <= value <= most:
                raise BindingError(
                    f"a snapshot cannot have {value} for its {what}: it is at least 1, and at most"
                    f" {most}",
                    "register a query with the same pairs and score that asks for more",
                )
        if skyband.latest == -np.inf:
            return answer_content(self.config.query, [])
        pairs = skyband.best(k, int(skyband.latest) - size + 1, skyband.latest)
        if pairs is None:
            raise BindingError(
                "the window holds a value that a snapshot cannot calculate with",
                "wait for the answers of the query, which ask for all that SPARQL means",
            )
        return answer_content(self.config.query, self._rows(pairs, self._now))

    def state(self) -> StateData:
        """Return the state as plain data; the skyband is rebuilt from the scans."""
        return {"may_give_blank_nodes": self.may_give_blank_nodes}

    def restore(self, state: StateData) -> None:
        """Restore a saved state. The first answer reads the whole window, and takes as long."""
        self.may_give_blank_nodes = state["may_give_blank_nodes"]


class _Described:
    """A window as the solutions of its elements. Memory: the solutions of the last window."""

    def __init__(self, describing: SolutionDescriber) -> None:
        self._describing = describing
        self._known: dict[Hashable, Sequence[ox.Triple]] = {}

    def of(self, scan: Scan) -> _Described:
        """Describe the content of a scan."""
        self._known = {
            part: self._known.get(part)
            or self._describing.together(triples, _sizes(scan, part, triples), _marks(scan, part))
            for part, triples in scan.content()
        }
        return self

    def content(self) -> Iterable[tuple[Hashable, Sequence[ox.Triple]]]:
        """Return the parts of the content."""
        return self._known.items()


def _sizes(scan: Scan, part: Hashable, triples: Sequence[ox.Triple]) -> Sequence[int]:
    """Return the number of triples of each element; a part of a count window is one element."""
    if isinstance(scan, TimedScan) and isinstance(part, Pane):
        return scan.sizes(part)
    return [len(triples)]


def _marks(scan: Scan, part: Hashable) -> Sequence[int]:
    """Return the time of each element; in a count window, its number."""
    if isinstance(scan, TimedScan) and isinstance(part, Pane):
        times = scan.times(part)
        starts = accumulate(scan.sizes(part)[:-1], initial=0)
        # An element without triples has no solutions, so its time does not matter.
        return [int(times[min(start, len(times) - 1)]) if len(times) else 0 for start in starts]
    assert isinstance(part, int), "a part of a count window is a number"  # noqa: S101
    return [part]
