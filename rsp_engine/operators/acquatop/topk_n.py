"""Topk+N: the top-k of each window when remote changes move the scores.

The score of an object is F(x_S, x_D): x_S is the streaming value of its latest arrival, and x_D its
remote value. The Super-MTK+N list keeps, for every active window, the K+N best live objects: the
first K are the answer, and the next N are in reserve, since changes may move them up.

    K-list | N-list | outside

A key that arrives again replaces its earlier arrival. A change of a listed object moves it in the
list. A changed object outside the list enters with a lower bound of its score, F(min.score_S, x_D):
its x_S was not kept, but is at least the smallest x_S of its pane. That requires an F that does not
decrease in x_S; for any other F such changes are ignored. An answer is marked as exact if it is
guaranteed to equal the oracle's: see `ExactnessBound`.

An unknown remote value is NaN: such an object is outside the list until a change gives its value.

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
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.acquatop.arrival_buffer import (
    ArrivalBuffer,
    JoinedArrivals,
    ScoreFunction,
    apply_score,
    as_joined_arrivals,
    last_changes,
)
from rsp_engine.operators.acquatop.last_arrivals import LastArrivals
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_array,
    rank_order,
)
from rsp_engine.operators.topk.score_threshold import Border
from rsp_engine.operators.topk.super_mtk_list import Candidate, DroppedObjects, SuperMTKList

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.windows import Pane

__all__ = ["TopkN", "TopkNConfig"]


LEAST = -float(np.finfo(np.float64).max)
"""The lowest bound of an object; -inf is reserved for no object at all."""

_SPARE = 64  # extra entries, so that few windows need larger tables


class ExactnessBound:
    """Two score bounds for each end. Memory: two numbers for each active window."""

    def __init__(self) -> None:
        self._first = 0  # the end of the first entry
        self._dropped: Floats = np.empty(0)
        self._missing: Floats = np.empty(0)

    def reach(self, end: int) -> None:
        """Extend the tables to an end. Call this before objects with that end are recorded."""
        if (count := end - self._first + 1 - len(self._dropped)) > 0:
            none = np.full(count + _SPARE, -np.inf)
            self._dropped = np.concatenate((self._dropped, none))
            self._missing = np.concatenate((self._missing, none))

    def drop(self, end: Integers, scores: Floats) -> None:
        """Record live objects that leave the list because enough others are better."""
        if len(end):
            np.maximum.at(self._dropped, end - self._first, np.maximum(scores, LEAST))

    def pass_over(self, end: int, score: float) -> None:
        """Record that objects up to a score never entered the list; -inf means none."""
        place = end - self._first
        self._dropped[place] = max(self._dropped[place], score)

    def fall(self, end: int) -> None:
        """Record that the score of a listed object with an end fell, or that the object left.

        Objects that it kept out of the list may be missing now.
        """
        until = max(0, end - self._first + 1)
        np.maximum(self._missing[:until], self._dropped[:until], out=self._missing[:until])

    def miss(self, end: Integers, scores: Floats) -> None:
        """Record objects that may be missing from answers, with upper bounds of their scores."""
        if len(end):
            np.maximum.at(self._missing, end - self._first, np.maximum(scores, LEAST))

    def missing(self, window: int) -> float:
        """Return an upper bound of the scores missing from a window; -inf if none is missing."""
        return float(self._missing[max(0, window - self._first) :].max(initial=-np.inf))

    def kept_out(self, end: int) -> float:
        """Return an upper bound of the scores outside the list for one end."""
        place = end - self._first
        return float(max(self._dropped[place], self._missing[place]))

    def forget(self) -> None:
        """Remove all bounds, when every object has been inserted again."""
        self._dropped[:], self._missing[:] = -np.inf, -np.inf

    def expire(self, window: int) -> None:
        """Remove the bounds of ends before a window."""
        if (expired := window - self._first) > 0:
            self._first = window
            self._dropped, self._missing = self._dropped[expired:], self._missing[expired:]

    def state(self) -> StateData:
        """Return the bounds as plain data."""
        tables = {"dropped": self._dropped.tolist(), "missing": self._missing.tolist()}
        return {"first": self._first, **tables}

    def restore(self, state: StateData) -> None:
        """Restore the bounds."""
        self._first = state["first"]
        self._dropped = np.array(state["dropped"], dtype=np.float64)
        self._missing = np.array(state["missing"], dtype=np.float64)


Area = Literal["K-list", "N-list", "outside"]


@dataclass(frozen=True, slots=True)
class TopkNConfig(TopkOperatorConfig):
    """The configuration of Topk+N: k, n, and `is_monotone`: F does not decrease in x_S."""

    n: int = 0
    is_monotone: bool = True

    def __post_init__(self) -> None:
        TopkOperatorConfig.__post_init__(self)
        if self.n < 0:
            raise ValueError("n must not be negative")

    @property
    def size(self) -> int:
        """The number of objects kept for each window: K+N."""
        return self.k + self.n


class _Rows(NamedTuple):
    """Objects as rows of the list."""

    keys: Integers
    positions: Integers
    scores: Floats
    end: Integers
    payload: Floats

    def take(self, chosen: Booleans) -> _Rows:
        """Return the rows of a mask."""
        columns: Any = (column[chosen] for column in self)
        return _Rows(*columns)


class _KeyMarks:
    """A reusable table of marks, to find the keys of one array in another in one pass.

    Keys are dense integers. Memory: a byte for each.
    """

    def __init__(self) -> None:
        self._marks: Booleans = np.zeros(0, dtype=bool)

    def reach(self, largest: int) -> None:
        """Extend the table to the largest key."""
        if largest >= len(self._marks):
            self._marks = np.zeros(max(largest + 1, 2 * len(self._marks)), dtype=bool)

    def places(self, keys: Integers, *targets: Integers) -> NDArray[np.intp]:
        """Return the indices of the keys that are in one of the target arrays.

        >>> table = _KeyMarks()
        >>> table.reach(3)
        >>> table.places(np.array([3, 1, 3, 2]), np.array([3]), np.array([2])).tolist()
        [0, 2, 3]
        """
        for array in targets:
            self._marks[array] = True
        places = self._marks.take(keys).nonzero()[0]
        for array in targets:
            self._marks[array] = False
        return places


class TopkN:
    """The Topk+N operator.

    Time for a pane of n arrivals: O(n + c); for m changes: O((c + m) log (c + m)), with c objects
    in the list. Memory: O(c), two numbers for each key up to the largest, and the arrivals of panes
    that no window has taken yet.
    """

    def __init__(self, config: TopkNConfig, score: ScoreFunction) -> None:
        self.config = config
        self._score = score
        self._window = 0  # the window being evaluated
        self._buffer = ArrivalBuffer()
        self._border = Border(config.size)
        self._last_arrivals = LastArrivals()
        self._key_marks = _KeyMarks()
        self._largest = -1  # the largest key so far
        self._exactness = ExactnessBound()
        # The payload of an object: a lower and an upper bound of x_S, and x_D.
        self._list = SuperMTKList(config.size, payload_width=3)
        self._has_bounds = False  # whether the bounds of some x_S may differ

    def __len__(self) -> int:
        return len(self._list)

    @property
    def keys(self) -> Integers:
        """The keys of the list, best first."""
        return self._list.keys

    @property
    def scores(self) -> Floats:
        """The scores of the list, in descending order."""
        return self._list.scores

    @property
    def ends(self) -> Integers:
        """The last window that contains each object of the list."""
        return self._list.end

    @property
    def closed(self) -> int:
        """The last closed window, or -1."""
        return self._buffer.closed

    @property
    def positions(self) -> Integers:
        """The positions of the list."""
        return self._list.positions

    @property
    def streaming(self) -> Floats:
        """The x_S of the list; a lower bound where it was not kept."""
        return self._list.payload[:, 0]

    def live(self, window: int) -> Integers:
        """Return the keys, listed or not, whose latest arrival is in a window or a later one."""
        keys, ends = self._last_arrivals.ends()
        return keys[ends >= window]

    def ended(self, window: int) -> Integers:
        """Return the keys that were live in the last closed window, and end before a window."""
        keys, ends = self._last_arrivals.ends()
        return keys[(ends >= self._buffer.closed) & (ends < window)]

    def least_streaming(self, keys: Integers) -> Floats:
        """Return a lower bound of the x_S of live keys: min.score_S of their panes."""
        return self._last_arrivals.lookup(keys).lowest

    def arrive(self, pane: Pane, keys: Any, positions: Any, streaming: Any, remote: Any) -> None:  # noqa: ANN401 - array-like
        """Add arrivals of a pane, none of whose windows has closed, with x_S and x_D.

        Arrays are not copied: the caller must not write to them afterwards.
        """
        self._buffer.add(
            pane, as_joined_arrivals((keys, positions, streaming, remote), self._score)
        )

    def settle(self, window: int) -> None:
        """Insert into the list the arrivals of a window so far."""
        panes = [pair for pair in self._buffer.until(window) if pair[0].last >= window]
        self._window = window
        self._last_arrivals.expire(window)
        self._exactness.expire(window)
        if not panes:
            self._list.purge(window)
        for pane, batch in panes:
            self._take(pane.last, batch)

    def _take(self, end: int, batch: JoinedArrivals) -> None:
        """Insert the arrivals of a pane into the list."""
        self._exactness.reach(end)
        # A key larger than all earlier ones is new: it is not in the list.
        may_rearrive = batch.smallest <= self._largest
        self._largest = max(self._largest, batch.largest)
        self._key_marks.reach(self._largest)
        near, below = self._near(batch, may_rearrive=may_rearrive)
        replaced = self._replace(batch, near) if may_rearrive else near[:0]
        ranked = self._ranked(batch, near)
        best = ranked[: self.config.size]
        forgotten = self._forgotten(end, batch, best, replaced) if may_rearrive else batch.keys[:0]
        new = Arrivals(batch.keys[best], batch.positions[best], batch.scores[best])
        streaming = batch.streaming[best]
        payload = _payload(streaming, streaming, batch.remote[best])
        self._drop(self._list.insert(end, new, payload, window=self._window))
        self._suspect(end, forgotten)
        self._last_arrivals.take(end, batch.keys, batch.positions, batch.streaming)
        if len(ranked) > len(best):
            below = max(below, float(batch.scores[ranked[len(best)]]), LEAST)
        self._exactness.pass_over(end, below)
        if batch.has_unknown:
            self._exactness.miss(np.array([end]), np.array([np.inf]))

    def _near(self, batch: JoinedArrivals, *, may_rearrive: bool) -> tuple[NDArray[np.intp], float]:
        """Return the indices of the latest arrivals of top keys and of listed keys.

        They include the K+N best. Return also an upper bound of the scores of the others.
        """
        above = self._border.above(batch.scores)
        if above is not None:
            if batch.has_rising_keys and not may_rearrive:
                return above, nextafter(self._border.lowest, -np.inf)
            targets = [batch.keys[above], self._list.keys] if may_rearrive else [batch.keys[above]]
            places = self._key_marks.places(batch.keys, *targets)
            latest = self._latest_of(batch, places, may_rearrive=may_rearrive)
            lowest = self._border.lowest
            if (
                len(latest) == len(places) == len(above)
                or np.count_nonzero(batch.scores[latest] >= lowest) >= self.config.size
            ):
                return latest, nextafter(lowest, -np.inf)
        # A small batch, or one with few distinct keys.
        places = np.arange(len(batch.keys))
        return self._latest_of(batch, places, may_rearrive=may_rearrive), -np.inf

    def _latest_of(
        self, batch: JoinedArrivals, places: NDArray[np.intp], *, may_rearrive: bool
    ) -> NDArray[np.intp]:
        """Return those of the indices that are the latest arrivals of their keys so far."""
        latest = batch.latest(places)
        if not may_rearrive or batch.positions[latest].min() > self._last_arrivals.newest:
            return latest
        latest = latest[self._last_arrivals.are_latest(batch.keys[latest], batch.positions[latest])]
        again, listed = self._listed_again(batch, latest)
        # At equal positions the larger x_S wins, in any order of arrival.
        is_less = (batch.positions[latest[again]] == self._list.positions[listed]) & (
            batch.streaming[latest[again]] < self._list.payload[listed, 1]
        )
        return np.delete(latest, again[is_less])

    def _listed_again(
        self, batch: JoinedArrivals, near: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which of some arrivals of distinct keys are listed, and their list indices."""
        keys, listed = batch.keys[near], self._list.keys
        again = self._key_marks.places(keys, listed)
        places = self._key_marks.places(listed, keys[again])
        return again[np.argsort(keys[again])], places[np.argsort(listed[places])]

    def _replace(self, batch: JoinedArrivals, near: NDArray[np.intp]) -> NDArray[np.intp]:
        """Remove listed objects that arrive again; return the indices of these arrivals."""
        again, places = self._listed_again(batch, near)
        fell = ~(batch.scores[near[again]] >= self._list.scores[places])
        self._fall(self._list.end[places[fell]])
        removed = np.zeros(len(self._list), dtype=bool)
        removed[places] = True
        self._list.remove(removed)
        return near[again]

    def _forgotten(
        self, end: int, batch: JoinedArrivals, best: NDArray[np.intp], replaced: NDArray[np.intp]
    ) -> Integers:
        """Return keys with an earlier arrival at the same position whose x_S was not kept.

        Its score was at most that of objects outside the list. So, if F is monotone, a new arrival
        with a better score has the larger x_S, and wins.
        """
        if not len(best) or batch.positions[best].min() > self._last_arrivals.newest:
            return batch.keys[:0]
        places = np.setdiff1d(best, replaced)
        at_once = self._last_arrivals.came_at(batch.keys[places], batch.positions[places])
        if self.config.is_monotone:
            at_once &= batch.scores[places] <= self._exactness.kept_out(end)
        return np.sort(batch.keys[places[at_once]])

    def _suspect(self, end: int, keys: Integers) -> None:
        """Account for keys with another arrival at the same position, whose x_S may be larger.

        If F is monotone, raise their upper bounds of x_S; otherwise record them as missing.
        """
        places = _places(self._list.keys, keys)
        places = places[places >= 0]
        if len(places) and self.config.is_monotone:
            highest = self._last_arrivals.lookup(self._list.keys[places]).highest
            self._list.payload[places, 1] = np.maximum(self._list.payload[places, 1], highest)
            self._has_bounds = True
        elif len(places):
            self._exactness.miss(np.array([end]), np.array([np.inf]))

    def _ranked(self, batch: JoinedArrivals, near: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the indices of the arrivals with a score, best first."""
        scores = batch.scores[near]
        if batch.has_unknown:
            known = ~np.isnan(scores)
            near, scores = near[known], scores[known]
        order = rank_order(Arrivals(batch.keys[near], batch.positions[near], scores))
        self._border.learn(scores[order])
        return near[order]

    def _fall(self, ends: Integers) -> None:
        """Record that objects with these ends fell in the list, or left it."""
        if len(ends):
            self._exactness.fall(int(ends.max()))

    def _drop(self, dropped: DroppedObjects | None) -> None:
        """Record objects that left the list; some may have only bounds of their scores."""
        if dropped is None:
            return
        self._exactness.drop(dropped.end, -dropped.negated)
        if self._has_bounds:
            low, high, remote = dropped.payload.T
            unsure = low < high
            highest, _ = apply_score(high[unsure], remote[unsure], self._score)
            self._exactness.miss(dropped.end[unsure], highest)

    def change(self, keys: Any, remote: Any, streaming: Any = None) -> None:  # noqa: ANN401 - array-like
        """Apply new remote values of keys; NaN means that a key has none any more.

        If a key occurs twice, the last value counts. `streaming` may give x_S of objects outside
        the list, which then get exact scores; NaN means unknown.
        """
        keys, remote = as_array(keys, np.int64), as_array(remote, np.float64)
        streaming = np.full(len(keys), np.nan) if streaming is None else streaming
        keys, remote, streaming = last_changes(keys, remote, as_array(streaming, np.float64))
        if not len(keys):
            return
        # Compute scores first: if F raises an error, the operator must stay unchanged.
        scores, payload, newcomers = self._changed_rows(keys, remote, streaming)
        self._buffer.change(keys, remote, self._score)
        unsure = newcomers.payload[:, 0] < newcomers.payload[:, 1]
        if not self.config.is_monotone:
            ends = newcomers.end[unsure]
            self._exactness.miss(ends, np.full(len(ends), np.inf))
            newcomers, unsure = newcomers.take(~unsure), unsure[:0]
        self._has_bounds |= bool(unsure.any())
        self._merge(scores, payload, newcomers)

    def _changed_rows(
        self, keys: Integers, remote: Floats, streaming: Floats
    ) -> tuple[Floats, Floats, _Rows]:
        """Return new scores and payloads of the list, and rows for changed objects outside it."""
        places = _places(self._list.keys, keys)
        listed, outside = places >= 0, places < 0
        payload = self._list.payload.copy()
        payload[places[listed], 2] = remote[listed]
        newcomers = self._outside_rows(keys[outside], remote[outside], streaming[outside])
        return apply_score(payload[:, 0], payload[:, 2], self._score)[0], payload, newcomers

    def _merge(self, scores: Floats, payload: Floats, newcomers: _Rows) -> None:
        """Give the objects of the list new scores and payloads, and add objects."""
        listed = self._list
        self._fall(listed.end[~(scores >= listed.scores)])
        before = _Rows(listed.keys, listed.positions, scores, listed.end, payload)
        both: Any = zip(before, newcomers, strict=True)
        rows = _Rows(*map(np.concatenate, both))
        rows = rows.take(~np.isnan(rows.scores))
        objects = Arrivals(rows.keys, rows.positions, rows.scores)
        self._drop(listed.replace(objects, rows.end, rows.payload, window=self._window))

    def _outside_rows(self, keys: Integers, remote: Floats, streaming: Floats) -> _Rows:
        """Return the live objects among keys outside the list, as rows of it with bounds of x_S."""
        known = self._last_arrivals.known(keys) & ~np.isnan(remote)
        keys, remote, streaming = keys[known], remote[known], streaming[known]
        positions, end, low, high = self._last_arrivals.lookup(keys)
        low = np.where(np.isnan(streaming), low, streaming)
        high = np.where(np.isnan(streaming), high, streaming)
        scores, _ = apply_score(low, remote, self._score)
        rows = _Rows(keys, positions, scores, end, _payload(low, high, remote))
        return rows.take(end >= self._window)

    def close(self, window: int) -> TopkAnswer:
        """Close a window and all earlier ones, and return its top-k."""
        self.settle(window)
        k = self.config.k
        keys, scores = self._list.keys[:k].copy(), self._list.scores[:k]
        bound, has_all, in_order = self._bound(), self.is_complete(window), True
        if self._has_bounds:
            low, high, remote = self._list.payload.T
            unsure = np.flatnonzero(low < high)
            below = unsure[unsure >= k]
            highest, _ = apply_score(high[below], remote[below], self._score)
            has_all &= bool((highest < bound).all())
            in_order = len(below) == len(unsure)
            self._has_bounds = bool(len(unsure))
        self._buffer.closed, self._window = window, window + 1
        return TopkAnswer(window, keys, scores, has_all and in_order, has_all)

    def is_complete(self, window: int) -> bool:
        """Return whether no object that is missing from the list can be in the top-k of a window.

        The window must be settled.
        """
        missing = self._exactness.missing(window)
        return missing == -np.inf or missing < self._bound()

    def _bound(self) -> float:
        """Return the k-th best score, or -inf if there are fewer than k objects."""
        k = self.config.k
        return float(self._list.scores[k - 1]) if len(self._list) >= k else -np.inf

    def refill(self, keys: Integers, remote: Floats, streaming: Floats, unknown: Integers) -> None:
        """Insert all live objects again, given all of them, with x_D and x_S.

        None is missing from the list then, except those whose remote value is unknown. The window
        must be settled.
        """
        self._exactness.forget()
        scores, payload, others = self._changed_rows(keys, remote, streaming)
        self._merge(scores, payload, self._best_of_each_end(others))
        ends = self._last_arrivals.lookup(unknown).end
        self._exactness.miss(ends, np.full(len(ends), np.inf))

    def _best_of_each_end(self, rows: _Rows) -> _Rows:
        """Drop the rows that K+N better ones with the same end keep out of the list."""
        is_best = np.zeros(len(rows.keys), dtype=bool)
        for end in np.unique(rows.end).tolist():
            places = np.flatnonzero(rows.end == end)
            scores, rank = rows.scores[places], len(places) - self.config.size
            least = np.partition(scores, rank)[rank] if rank > 0 else -np.inf
            is_best[places] = scores >= least
        others = rows.take(~is_best)
        self._exactness.drop(others.end, others.scores)
        return rows.take(is_best)

    def candidates(self) -> list[Candidate]:
        """Return the Super-MTK+N list with its window marks, as of the first open window."""
        current = self._buffer.closed + 1
        self._list.purge(current)
        return self._list.candidates(current)

    def pointers(self) -> dict[int, int]:
        """Return the lower bound pointer of each window that has K+N objects."""
        current = self._buffer.closed + 1
        self._list.purge(current)
        return self._list.pointers(current)

    def areas(self, window: int) -> dict[int, Area]:
        """Return the area of each listed object in the MTK+N list of a window."""
        places = np.flatnonzero(self._list.end >= window)
        areas: dict[int, Area] = dict.fromkeys(self._list.keys.tolist(), "outside")
        for rank, key in enumerate(self._list.keys[places[: self.config.size]].tolist()):
            areas[key] = "K-list" if rank < self.config.k else "N-list"
        return areas

    def state(self) -> StateData:
        """Return the state of the operator as plain data."""
        content = {
            "window": self._window,
            "largest": self._largest,
            "has_bounds": self._has_bounds,
            "guess": self._border.guess,  # it affects the bounds of later panes
            "inflow": self._buffer.state(),
            "latest": self._last_arrivals.state(),
            "doubt": self._exactness.state(),
            "list": self._list.state(),
        }
        return with_header("Topk+N", asdict(self.config), content)

    @classmethod
    def restored(cls, config: TopkNConfig, score: ScoreFunction, state: StateData) -> TopkN:
        """Restore an operator from a saved state."""
        check_header(state, "Topk+N", asdict(config))
        operator = cls(config, score)
        operator._window, operator._largest = state["window"], state["largest"]
        operator._has_bounds = state["has_bounds"]
        operator._border.guess = state["guess"]
        operator._key_marks.reach(operator._largest)
        operator._buffer.restore(state["inflow"], score)
        operator._last_arrivals.restore(state["latest"])
        operator._exactness.restore(state["doubt"])
        operator._list.restore(state["list"])
        return operator

    def _check(self) -> None:
        """Assert the invariants of the list."""
        current = self._buffer.closed + 1
        self._list.purge(current)
        self._list.check(current)


def _payload(low: Floats, high: Floats, remote: Floats) -> Floats:
    """Return the payload of objects."""
    rows = np.empty((len(low), 3))
    rows[:, 0], rows[:, 1], rows[:, 2] = low, high, remote
    return rows


def _places(listed: Integers, keys: Integers) -> NDArray[np.intp]:
    """Return the list indices of sorted keys, or -1 for a key that is not listed."""
    places = np.full(len(keys), -1)
    if len(listed) and len(keys):
        nearest = np.minimum(np.searchsorted(keys, listed), len(keys) - 1)
        hits = np.flatnonzero(keys[nearest] == listed)
        places[nearest[hits]] = hits
    return places
