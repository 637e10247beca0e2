"""Topk+N: the k best of each window where remote changes move the scores.

The score of an object is F(x_S, x_D), of what the stream said when it last arrived and of what the
remote side says. The Super-MTK+N list keeps, for every active window, the K+N best live objects:
the first K of them are the answer, the next N stand by, since changes may move them up.

    K-list | N-list | outside

A key that arrives again replaces its earlier arrival. A change of an object in the list moves it.
One of an object outside enters it with a lower bound of its score, F(min.score_S, x_D): what it
streamed was forgotten, but it was not less than the least of its pane. That needs an F that does
not fall when x_S rises; otherwise such changes are left out. Where an answer is surely the oracle's
it says so: see `ExactnessBound`.

A remote value that is not known yet is NaN: such an object is outside until a change tells it.

>>> from rsp_engine.model.windows import Pane
>>> operator = TopkN(TopkNConfig(1, n=1), lambda streaming, remote: streaming + remote)
>>> operator.arrive(Pane(0, 1), [0, 1], [10, 20], [1.0, 2.0], [5.0, 3.0])
>>> operator.settle(0)
>>> operator.change([1], [9.0])
>>> operator.close(0).keys.tolist()
[1]

Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data. Section 4, Algorithms 1 to 4.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import nextafter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.acquatop.arrival_buffer import (
    ArrivalBuffer,
    JoinedObject,
    ScoreFunction,
    as_joined,
    last_of_each,
    scored,
)
from rsp_engine.operators.acquatop.exactness_bound import LEAST, ExactnessBound
from rsp_engine.operators.acquatop.key_marks import KeyMarks
from rsp_engine.operators.acquatop.last_arrivals import LastArrivals
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_array,
    rank_order,
)
from rsp_engine.operators.topk.score_threshold import Border
from rsp_engine.operators.topk.super_mtk_list import Candidate, Dropped, SuperMTKList

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.windows import Pane

__all__ = ["Area", "TopkN", "TopkNConfig"]

Area = Literal["K-list", "N-list", "outside"]


@dataclass(frozen=True, slots=True)
class TopkNConfig(TopkOperatorConfig):
    """The k best, and n that stand by; `is_monotone` says that F does not fall when x_S rises."""

    n: int = 0
    is_monotone: bool = True

    def __post_init__(self) -> None:
        TopkOperatorConfig.__post_init__(self)
        if self.n < 0:
            raise ValueError("n must not be negative")

    @property
    def size(self) -> int:
        """How many are kept for each window: K+N."""
        return self.k + self.n


class TopkN:
    """Time for a pane of n arrivals: O(n + c); for m changes: O((c + m) log (c + m)).

    c is the length of the list. Memory: O(c), two numbers for each key up to the largest, and the
    arrivals of panes that no window has looked at yet.
    """

    def __init__(self, config: TopkNConfig, score: ScoreFunction) -> None:
        self.config = config
        self._score = score
        self._window = 0  # the window that is looked at
        self._inflow = ArrivalBuffer()
        self._border = Border(config.size)
        self._latest = LastArrivals()
        self._recurrence = KeyMarks()
        self._largest = -1  # no key so far was larger
        self._doubt = ExactnessBound()
        # With each object: x_S, as low and as high as it may have been, and x_D.
        self._list = SuperMTKList(config.size, more=3)
        self._has_bounds = False  # whether x_S may be known as bounds only

    def __len__(self) -> int:
        return len(self._list)

    @property
    def keys(self) -> Integers:
        """The keys of the list, best first."""
        return self._list.keys

    @property
    def scores(self) -> Floats:
        """The scores of the list, which fall."""
        return self._list.scores

    @property
    def ends(self) -> Integers:
        """The last window that holds each object of the list."""
        return self._list.end

    def arrive(self, pane: Pane, keys: Any, positions: Any, streaming: Any, remote: Any) -> None:  # noqa: ANN401 - array-like
        """Take arrivals of a pane whose windows are all open, with x_S and x_D.

        Arrays are kept as they are: the caller must not write into them any more.
        """
        self._inflow.add(pane, as_joined((keys, positions, streaming, remote), self._score))

    def settle(self, window: int) -> None:
        """Put into the list what has arrived for a window so far."""
        panes = [found for found in self._inflow.until(window) if found[0].last >= window]
        self._window = window
        self._latest.expire(window)
        self._doubt.expire(window)
        if not panes:
            self._list.purge(window)
        for pane, batch in panes:
            self._take(pane.last, batch)

    def _take(self, end: int, batch: JoinedObject) -> None:
        """Take the arrivals of a pane."""
        self._doubt.reach(end)
        # A key larger than all before never came before: it is not in the list.
        may_recur = batch.smallest <= self._largest
        self._largest = max(self._largest, batch.largest)
        self._recurrence.reach(self._largest)
        near, below = self._near(batch, may_recur=may_recur)
        replaced = self._replace(batch, near) if may_recur else near[:0]
        ranked = self._ranked(batch, near)
        best = ranked[: self.config.size]
        forgotten = self._forgotten(end, batch, best, replaced) if may_recur else batch.keys[:0]
        new = Arrivals(batch.keys[best], batch.positions[best], batch.scores[best])
        streaming = batch.streaming[best]
        more = _rows(streaming, streaming, batch.remote[best])
        self._drop(self._list.insert(end, new, more, window=self._window))
        self._suspect(end, forgotten)
        self._latest.take(end, batch.keys, batch.positions, batch.streaming)
        if len(ranked) > len(best):
            below = max(below, float(batch.scores[ranked[len(best)]]), LEAST)
        self._doubt.pass_over(end, below)
        if batch.has_unknown:
            self._doubt.miss(np.array([end]), np.array([np.inf]))

    def _near(self, batch: JoinedObject, *, may_recur: bool) -> tuple[NDArray[np.intp], float]:
        """Return the places of arrivals near the top and of listed keys, of each key the latest.

        The K+N best are among them. Return also how good the best of the others may be.
        """
        above = self._border.above(batch.scores)
        if above is not None:
            if batch.has_rising_keys and not may_recur:
                return above, nextafter(self._border.lowest, -np.inf)
            sought = [batch.keys[above], self._list.keys] if may_recur else [batch.keys[above]]
            places = self._recurrence.places(batch.keys, *sought)
            found = self._latest_of(batch, places, may_recur=may_recur)
            lowest = self._border.lowest
            if (
                len(found) == len(places) == len(above)
                or np.count_nonzero(batch.scores[found] >= lowest) >= self.config.size
            ):
                return found, nextafter(lowest, -np.inf)
        # A small batch, or few keys again and again.
        places = np.arange(len(batch.keys))
        return self._latest_of(batch, places, may_recur=may_recur), -np.inf

    def _latest_of(
        self, batch: JoinedObject, places: NDArray[np.intp], *, may_recur: bool
    ) -> NDArray[np.intp]:
        """Return those of some arrivals that are the latest of their keys, here and before."""
        found = batch.latest(places)
        if not may_recur or batch.positions[found].min() > self._latest.newest:
            return found
        found = found[self._latest.are_latest(batch.keys[found], batch.positions[found])]
        again, listed = self._again(batch, found)
        # Of two arrivals at once the larger x_S counts, in whatever order they are given.
        is_less = (batch.positions[found[again]] == self._list.positions[listed]) & (
            batch.streaming[found[again]] < self._list.more[listed, 1]
        )
        return np.delete(found, again[is_less])

    def _again(
        self, batch: JoinedObject, near: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which of some arrivals, each of another key, are listed, and where."""
        keys, listed = batch.keys[near], self._list.keys
        again = self._recurrence.places(keys, listed)
        places = self._recurrence.places(listed, keys[again])
        return again[np.argsort(keys[again])], places[np.argsort(listed[places])]

    def _replace(self, batch: JoinedObject, near: NDArray[np.intp]) -> NDArray[np.intp]:
        """Take objects out of the list that arrive again; return the places of these arrivals."""
        again, places = self._again(batch, near)
        fell = ~(batch.scores[near[again]] >= self._list.scores[places])
        self._fall(self._list.end[places[fell]])
        gone = np.zeros(len(self._list), dtype=bool)
        gone[places] = True
        self._list.remove(gone)
        return near[again]

    def _forgotten(
        self, end: int, batch: JoinedObject, best: NDArray[np.intp], replaced: NDArray[np.intp]
    ) -> Integers:
        """Return keys that came at the same time before, and what they streamed is forgotten.

        It was not better than what was kept out; if F is monotone, who is better streamed more.
        """
        if not len(best) or batch.positions[best].min() > self._latest.newest:
            return batch.keys[:0]
        places = np.setdiff1d(best, replaced)
        at_once = self._latest.came_at(batch.keys[places], batch.positions[places])
        if self.config.is_monotone:
            at_once &= batch.scores[places] <= self._doubt.kept_out(end)
        return np.sort(batch.keys[places[at_once]])

    def _suspect(self, end: int, keys: Integers) -> None:
        """Note of keys in the list that x_S may be larger: of two arrivals at once that counts."""
        places = _places(self._list.keys, keys)
        places = places[places >= 0]
        if len(places) and self.config.is_monotone:
            highest = self._latest.lives(self._list.keys[places]).highest
            self._list.more[places, 1] = np.maximum(self._list.more[places, 1], highest)
            self._has_bounds = True
        elif len(places):
            self._doubt.miss(np.array([end]), np.array([np.inf]))

    def _ranked(self, batch: JoinedObject, near: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the places of those whose remote values are known, best first."""
        scores = batch.scores[near]
        if batch.has_unknown:
            known = ~np.isnan(scores)
            near, scores = near[known], scores[known]
        order = rank_order(Arrivals(batch.keys[near], batch.positions[near], scores))
        self._border.learn(scores[order])
        return near[order]

    def _fall(self, ends: Integers) -> None:
        """Note that objects fell back or left, which lived until these ends."""
        if len(ends):
            self._doubt.fall(int(ends.max()))

    def _drop(self, dropped: Dropped | None) -> None:
        """Note objects that left the list; of some, only a lower bound was known."""
        if dropped is None:
            return
        self._doubt.drop(dropped.end, -dropped.falling)
        if self._has_bounds:
            low, high, remote = dropped.more.T
            unsure = low < high
            highest, _ = scored(high[unsure], remote[unsure], self._score)
            self._doubt.miss(dropped.end[unsure], highest)

    def change(self, keys: Any, remote: Any, streaming: Any = None) -> None:  # noqa: ANN401 - array-like
        """Take new remote values of keys; NaN says that there is none any more.

        The last one counts where a key comes twice. Who remembers what objects outside the list
        streamed may say so, and they are scored as they are; NaN is not remembered.
        """
        keys, remote = as_array(keys, np.int64), as_array(remote, np.float64)
        streaming = np.full(len(keys), np.nan) if streaming is None else streaming
        keys, remote, streaming = last_of_each(keys, remote, as_array(streaming, np.float64))
        if not len(keys):
            return
        places = _places(self._list.keys, keys)
        listed, outside = places >= 0, places < 0
        end, more = self._list.end, self._list.more.copy()
        more[places[listed], 2] = remote[listed]
        # Scores come first: one that cannot be worked out must leave everything as it is.
        scores, _ = scored(more[:, 0], more[:, 2], self._score)
        newcomers = self._outside(keys[outside], remote[outside], streaming[outside])
        self._inflow.change(keys, remote, self._score)
        unsure = newcomers[4][:, 0] < newcomers[4][:, 1]
        if not self.config.is_monotone:
            ends = newcomers[3][unsure]
            self._doubt.miss(ends, np.full(len(ends), np.inf))
            newcomers, unsure = [column[~unsure] for column in newcomers], unsure[:0]
        self._has_bounds |= bool(unsure.any())
        self._fall(end[~(scores >= self._list.scores)])
        rows = [self._list.keys, self._list.positions, scores, end, more]
        rows = list(map(np.concatenate, zip(rows, newcomers, strict=True)))
        keys, positions, scores, end, more = (row[~np.isnan(rows[2])] for row in rows)
        found = Arrivals(keys, positions, scores)
        self._drop(self._list.replace(found, end, more, window=self._window))

    def _outside(self, keys: Integers, remote: Floats, streaming: Floats) -> list[NDArray[Any]]:
        """Return objects outside the list that live, as rows for it, with their lower bounds."""
        known = self._latest.known(keys) & ~np.isnan(remote)
        keys, remote, streaming = keys[known], remote[known], streaming[known]
        positions, end, low, high = self._latest.lives(keys)
        low = np.where(np.isnan(streaming), low, streaming)
        high = np.where(np.isnan(streaming), high, streaming)
        scores, _ = scored(low, remote, self._score)
        rows = [keys, positions, scores, end, _rows(low, high, remote)]
        return [row[end >= self._window] for row in rows]

    def close(self, window: int) -> TopkAnswer:
        """Close a window, and all before it, and return its ranking."""
        self.settle(window)
        k = self.config.k
        keys, scores = self._list.keys[:k].copy(), self._list.scores[:k]
        bound = float(scores[-1]) if len(scores) == k else -np.inf
        missing = self._doubt.missing(window)
        has_all = missing == -np.inf or missing < bound
        in_order = True
        if self._has_bounds:
            low, high, remote = self._list.more.T
            unsure = np.flatnonzero(low < high)
            below = unsure[unsure >= k]
            highest, _ = scored(high[below], remote[below], self._score)
            has_all &= bool((highest < bound).all())
            in_order = len(below) == len(unsure)
            self._has_bounds = bool(len(unsure))
        self._inflow.closed, self._window = window, window + 1
        return TopkAnswer(window, keys, scores, has_all and in_order, has_all)

    def candidates(self) -> list[Candidate]:
        """Return the Super-MTK+N list, with marks, seen from the first window that is open."""
        current = self._inflow.closed + 1
        self._list.purge(current)
        return self._list.candidates(current)

    def pointers(self) -> dict[int, int]:
        """Return the lower bound pointer of each window that has K+N objects."""
        current = self._inflow.closed + 1
        self._list.purge(current)
        return self._list.pointers(current)

    def areas(self, window: int) -> dict[int, Area]:
        """Return the area of each listed object in the MTK+N list of a window."""
        places = np.flatnonzero(self._list.end >= window)
        found: dict[int, Area] = dict.fromkeys(self._list.keys.tolist(), "outside")
        for rank, key in enumerate(self._list.keys[places[: self.config.size]].tolist()):
            found[key] = "K-list" if rank < self.config.k else "N-list"
        return found

    def state(self) -> StateData:
        """Return all there is to know, as plain data, to be restored from."""
        content = {
            "window": self._window,
            "largest": self._largest,
            "has_bounds": self._has_bounds,
            "guess": self._border.guess,  # it tells how good those may be that are passed over
            "inflow": self._inflow.state(),
            "latest": self._latest.state(),
            "doubt": self._doubt.state(),
            "list": self._list.state(),
        }
        return with_header("Topk+N", asdict(self.config), content)

    @classmethod
    def restored(cls, config: TopkNConfig, score: ScoreFunction, state: StateData) -> TopkN:
        """Return an operator that goes on from a state."""
        check_header(state, "Topk+N", asdict(config))
        made = cls(config, score)
        made._window, made._largest = state["window"], state["largest"]
        made._has_bounds = state["has_bounds"]
        made._border.guess = state["guess"]
        made._recurrence.reach(made._largest)
        made._inflow.restore(state["inflow"], score)
        made._latest.restore(state["latest"])
        made._doubt.restore(state["doubt"])
        made._list.restore(state["list"])
        return made

    def _check(self) -> None:
        """Assert what always holds."""
        current = self._inflow.closed + 1
        self._list.purge(current)
        self._list.check(current)


def _rows(low: Floats, high: Floats, remote: Floats) -> Floats:
    """Return what travels with objects, as rows."""
    rows = np.empty((len(low), 3))
    rows[:, 0], rows[:, 1], rows[:, 2] = low, high, remote
    return rows


def _places(listed: Integers, keys: Integers) -> NDArray[np.intp]:
    """Return the places of keys in a list, -1 for one that is not there; the keys are in order."""
    places = np.full(len(keys), -1)
    if len(listed) and len(keys):
        found = np.minimum(np.searchsorted(keys, listed), len(keys) - 1)
        hits = np.flatnonzero(keys[found] == listed)
        places[found[hits]] = hits
    return places
