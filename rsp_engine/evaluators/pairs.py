"""R2R for ranked queries of pairs: the window is matched pane by pane, and its skyband answers.

An object is a solution of the pattern that both sides of the query have, and a pair is a solution
of the query: two objects of the window, in the order that a FILTER asks for. A pair arrives when
the later of its objects does. So of pairs with equal scores the one ranks first whose later object
came last, and of these the one whose other object did.

A window in which float64 would not mean what SPARQL means is asked as a whole, as on the general
path.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyoxigraph as ox

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.model.windows import Pane
from rsp_engine.operators.pairs.continuous import ContinuousAnswer
from rsp_engine.operators.pairs.shared_skyband import PairShape, SharedSkyband
from rsp_engine.operators.sparql.pane_matcher import Matcher
from rsp_engine.operators.sparql.projector import Projector, holds_blank_nodes
from rsp_engine.operators.sparql.sparql_query import SparqlConfig, answer_content
from rsp_engine.operators.windows.element_solutions import Describing, ElementBlock
from rsp_engine.operators.windows.time_windows import TimedScan

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from rsp_engine.model.answers import Boolean, Graph, Row, Solutions
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.sparql.pane_matcher import SolutionTuple
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["PairsConfig", "PairsEvaluator", "Skybands"]


@dataclass(frozen=True, slots=True)
class PairsConfig(SparqlConfig):
    """The text is that of the general path: what the query means.

    Of each window, which is of a `size`, the k best pairs are found, and the first `offset` of them
    are left out. `names` are the variables of the first object, and then of the second; `why` says
    whether the score is a global one. A window that the skyband cannot answer is asked, as the
    solutions that elements give to `blocks` if there are some.
    """

    tag: ClassVar[str] = "Pairs"

    shape: PairShape | None = None
    names: tuple[str, ...] = ()
    projected: SparqlConfig | None = None
    blocks: tuple[ElementBlock, ...] = ()
    k: int = 1
    offset: int = 0
    size: int = 1
    why: str = ""


class Skybands:
    """The skybands of several queries: one for each shape."""

    def __init__(self) -> None:
        self._gathered: list[SharedSkyband] = []

    def of(self, config: PairsConfig) -> SharedSkyband:
        """Return the skyband of a query, and let it be large enough for it."""
        assert config.shape is not None, "the planner says what a pair is"  # noqa: S101
        found = next((each for each in self._gathered if each.shape == config.shape), None)
        if found is None:
            found = SharedSkyband(config.shape)
            self._gathered.append(found)
        found.want(config.k, config.size)
        return found


class PairsEvaluator:
    """Ranks window by window. Memory: the triples and the objects of open windows."""

    def __init__(
        self, config: PairsConfig, store: ox.Store, window: str, skybands: Skybands
    ) -> None:
        assert config.shape is not None, "the planner says what a pair is"  # noqa: S101
        self.config = config
        self.may_give_blank_nodes = False
        self.gathered = skybands.of(config)
        """The skyband, which other queries may use as well."""
        self._store = store
        self._window = window
        self._matcher = Matcher(config.shape.matching, store)
        self._projector = Projector(config, config.projected)
        self._answer = ContinuousAnswer(config.k)
        self._general: SparqlEvaluator | None = None
        self._described = _Described(Describing(config.blocks, store)) if config.blocks else None
        self._taken: set[object] = set()
        self._now = 0

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the content of the only scan, at an instant."""
        [scan] = scans
        self._now = now
        low, high = self._take(scan, now)
        best = self.gathered.best(self._answer, low, high)
        if best is None:
            return self._whole(scans, now)
        return answer_content(self.config, self._rows(best[self.config.offset :], now))

    def stats(self) -> dict[str, int | bool]:
        """Return what an answer says of itself."""
        return {"exact": True}

    def _take(self, scan: Scan, now: int) -> tuple[int, int]:
        """Gather the objects of a window; return its first and its last mark."""
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
        found: list[tuple[int, SolutionTuple]] = []
        if new:
            triples = [triple for part in new.values() for triple in part]
            sizes = [size for part, held in new.items() for size in _sizes(scan, part, held)]
            matched = self._matcher.match(triples, np.concatenate(marks), now, sizes)
            found = list(zip(matched.times.tolist(), matched.solutions, strict=True))
        self.gathered.take(found, high)
        return low, high

    def _whole(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Ask the whole content of the window."""
        if self._general is None:
            store = ox.Store()
            store.extend(list(self._store.quads_for_pattern(None, None, None, None)))
            self._general = SparqlEvaluator(self.config, store, [self._window])
        shown = scans if self._described is None else list(map(self._described.of, scans))
        found = self._general.answer(shown, now)
        self.may_give_blank_nodes |= self._general.may_give_blank_nodes
        return found

    def _rows(self, pairs: list[SolutionTuple], now: int) -> list[Row]:
        names = self.config.names
        rows = self._projector.rows([dict(zip(names, p, strict=True)) for p in pairs], now)
        self.may_give_blank_nodes |= holds_blank_nodes(rows)
        return rows

    def now(self, k: int | None = None, size: int | None = None) -> Solutions | Graph:
        """Return the k best pairs of the last so many milliseconds, or elements: a snapshot.

        They end with the last window that was answered, of whichever query shares the skyband.
        """
        k = self.config.k - self.config.offset if k is None else k
        size = self.config.size if size is None else size
        held = self.gathered
        for asked, most, what in ((k, held.k, "LIMIT"), (size, held.size, "window")):
            if not 1 <= asked <= most:
                raise BindingError(
                    f"a snapshot cannot have {asked} for its {what}: it is at least 1, and at most"
                    f" {most}",
                    "register a query with the same pairs and score that asks for more",
                )
        if held.latest == -np.inf:
            return answer_content(self.config, [])
        pairs = held.snapshot(k, int(held.latest) - size + 1)
        if pairs is None:
            raise BindingError(
                "the window holds a value that a snapshot cannot calculate with",
                "wait for the answers of the query, which ask for all that SPARQL means",
            )
        return answer_content(self.config, self._rows(pairs, self._now))

    def state(self) -> StateData:
        """Return what the windows do not tell: the objects are gathered again from the scans."""
        return {"may_give_blank_nodes": self.may_give_blank_nodes}

    def restore(self, state: StateData) -> None:
        """Go on from a state. The first answer takes the whole window, and as long as that."""
        self.may_give_blank_nodes = state["may_give_blank_nodes"]


class _Described:
    """The content of a window as the solutions of its elements. Memory: those of the last asked."""

    def __init__(self, describing: Describing) -> None:
        self._describing = describing
        self._known: dict[Hashable, Sequence[ox.Triple]] = {}

    def of(self, scan: Scan) -> _Described:
        """Take the content of a scan."""
        self._known = {
            part: self._known.get(part)
            or self._describing.together(triples, _sizes(scan, part, triples), _came(scan, part))
            for part, triples in scan.content()
        }
        return self

    def content(self) -> Iterable[tuple[Hashable, Sequence[ox.Triple]]]:
        """Return the parts of the content."""
        return self._known.items()


def _sizes(scan: Scan, part: Hashable, triples: Sequence[ox.Triple]) -> Sequence[int]:
    """Return how many triples each element of a part has; where elements count, it is one."""
    if isinstance(scan, TimedScan) and isinstance(part, Pane):
        return scan.sizes(part)
    return [len(triples)]


def _came(scan: Scan, part: Hashable) -> Sequence[int]:
    """Return when each element of a part came; where elements count, its number."""
    if isinstance(scan, TimedScan) and isinstance(part, Pane):
        times = scan.times(part)
        starts = accumulate(scan.sizes(part)[:-1], initial=0)
        # An element without triples has no solutions, so its time does not matter.
        return [int(times[min(start, len(times) - 1)]) if len(times) else 0 for start in starts]
    assert isinstance(part, int), "a window that counts has a part for each number"  # noqa: S101
    return [part]
