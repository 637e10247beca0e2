"""EAA, the Early Aggregation Algorithm: observations are aggregated into instances on arrival.

An object that is observed at different times has an instance for each of these times, with all
observations from then on. The current score of an instance is that of its values, and only rises;
its best score assumes the largest value for each attribute that can still arrive, and only falls.
Instances outside the k-dominance set are dropped (`dominance`).

    stream 2 at 1      p1  [0.4, 2.4]
    stream 3 at 30     p1  [1.1, 2.1]    p2  [0.7, 1.7]
    stream 1 at 50     p1  [1.6, 1.6]    p2  [1.2, 1.2]    p3  [0.5, 0.5]

Best scores are needed only to drop instances. That is done lazily, after enough new instances,
since an instance that is kept too long does not change an answer.

>>> from rsp_engine.model.windows import Pane
>>> from rsp_engine.operators.incomplete.observations import as_observations
>>> operator = EAA(IncompleteOperatorConfig(1, (1.0, 1.0)))
>>> operator.arrive(Pane(0, 1), as_observations([0, 0], [1, 2], [10, 20], [0.75, 0.5]))
>>> operator.arrive(Pane(1, 2), as_observations([1], [2], [30], [0.5]))
>>> operator.close(0).keys.tolist(), operator.close(1).keys.tolist()
([1], [2])

An object that violates the configuration, by more occurrences than `most` or a value above the
largest, makes answers inexact until all current instances have expired. Occurrences are counted
only while an instance of the object is kept, so too many may go unnoticed.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
3.2; section 5 for objects that recur in one stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.incomplete.dominance import kth_best_as_old
from rsp_engine.operators.incomplete.instances import Columns, IdTable, Instances, over_streams
from rsp_engine.operators.incomplete.observations import (
    IncompleteOperatorConfig,
    ObservationBuffer,
    Observations,
    ScoredObject,
)
from rsp_engine.operators.topk.contract import TopkAnswer

if TYPE_CHECKING:
    from typing import Self

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.windows import Pane

__all__ = ["EAA"]

_FEW = 128  # new instances; with fewer, pruning does not pay
_SHARE = 0.5  # prune once this share of all instances is new
_LEAST = float(np.finfo(np.float64).min)
_EARLIEST = np.iinfo(np.int64).min


class _Batch(NamedTuple):
    """The distinct objects of the observations of a pane, whose last window is `end`.

    `places` are the indices of the observations' objects among `keys`; `latest` is the position of
    the last arrival of each object.
    """

    end: int
    keys: Integers
    places: Integers
    latest: Integers


class EAA:
    """The EAA operator. Time for a pane of n: O(n log n + c), with c instances; memory: O(c d)."""

    tag: ClassVar[str] = "EAA"

    is_approximate = False
    _is_thorough = False

    def __init__(self, config: IncompleteOperatorConfig) -> None:
        self.config = config
        self._buffer = ObservationBuffer(config)
        self._instances = Instances(config.streams)
        self._ids = IdTable()
        self._highs = np.array(config.highs)[:, None]
        self._most = np.array(config.most)[:, None]
        self._least_high, self._least_most = min(config.highs), min(config.most)
        self._guess = np.inf  # a score that the k best of the next window, and few others, exceed
        self._new = 0  # instances added since the last pruning
        self._doubtful = -1  # answers up to this window may be inexact

    def __len__(self) -> int:
        return len(self._instances)

    def arrive(self, pane: Pane, batch: Observations) -> None:
        self._buffer.add(pane, batch)

    def close(self, window: int) -> TopkAnswer:
        self._instances.expire(window)  # first, because keys of expired objects may be reused
        for pane, batch in self._buffer.until(window):
            self._take(pane.last, batch)
        self._instances.expire(window)
        if self._new > max(_FEW, _SHARE * len(self)):
            self.prune()
        best = self._best().best(self.config.k)
        is_exact = window > self._doubtful and not self.is_approximate
        return TopkAnswer(window, best.keys, best.scores, is_exact, is_exact)

    def near(self) -> Integers:
        best = self._best()
        if len(best.keys) < self.config.k:
            return best.keys
        border = best.best(self.config.k).scores[-1] - self.config.slack
        return self._above(self._instances.columns, border).keys

    def prune(self) -> None:
        """Drop the instances that k objects dominate."""
        columns = self._instances.columns
        kth = kth_best_as_old(
            columns.ends,
            columns.keys,
            columns.scores,
            self.config.k,
            pane_by_pane=self._is_thorough,
        )
        is_kept = self._select(self.bests(columns), kth)
        if not is_kept.all():
            self._instances.keep(is_kept)
        self._new = 0

    def _select(self, bests: Floats, kth: Floats) -> Booleans:
        """Return which instances to keep, given their best scores and those of k dominators."""
        is_kept: Booleans = kth <= bests + self.config.slack
        return is_kept

    def bests(self, columns: Columns) -> Floats:
        """Return the best score that each instance can reach."""
        missing = np.maximum(self._most - columns.counts, 0)
        if self.config.repeats == "max":
            missing = np.minimum(missing, 1)
        return self._with_rest(columns.values, missing * self._highs)

    def _with_rest(self, values: Floats, rest: Floats) -> Floats:
        combine = np.add if self.config.repeats == "sum" else np.maximum
        return over_streams(self.config.function, combine(values, rest))

    def _take(self, end: int, batch: Observations) -> None:
        """Aggregate the observations of a pane whose last window is `end`."""
        keys, places = _distinct(batch.keys)
        latest = np.full(len(keys), _EARLIEST)
        np.maximum.at(latest, places, batch.positions)
        objects = _Batch(end, keys, places, latest)
        cells = self._cells(objects, batch)
        columns = self._instances.columns
        object_rows = self._ids.places(keys, columns.keys)
        [touched] = (object_rows >= 0).nonzero()
        is_new = None
        if len(touched):
            rows = object_rows[touched]
            newest = np.maximum(columns.latest[touched], latest[rows])
            columns.latest[touched] = latest[rows] = newest
            if columns.ends[-1] < end and self._is_plain(batch):
                self._add(cells, touched, rows)
            else:
                self._update(objects, batch, touched, rows)
                is_new = np.ones(len(keys), dtype=bool)
                is_new[rows[columns.ends[touched] == end]] = False  # their instance exists
            cells = self._beside(end, cells, touched, rows)
        self._check_limits(end, batch, cells)
        if is_new is not None:
            keys, latest, cells = keys[is_new], latest[is_new], cells[:, is_new]
        ends = np.full(len(keys), end)
        self._instances.add(Columns(ends, keys, latest, cells, self._scores(cells)))
        self._new += len(keys)

    def _is_plain(self, batch: Observations) -> bool:
        """Return whether all observations are new, and add the same to all instances."""
        return self.config.repeats == "sum" and bool(np.maximum.reduce(batch.since) < 0)

    def _add(self, cells: Floats, touched: Integers, rows: Integers) -> None:
        """Add the new cells to all instances of their objects."""
        columns = self._instances.columns
        sums = columns.cells[:, touched] + cells[:, rows]
        columns.cells[:, touched] = sums
        columns.scores[touched] = self._scores(sums)

    def _update(
        self, objects: _Batch, batch: Observations, touched: Integers, rows: Integers
    ) -> None:
        """Add observations to the instances of their objects that expire no later."""
        config, columns = self.config, self._instances.columns
        ends = columns.ends[touched]
        values, counts = columns.values, columns.counts
        for since in np.unique(batch.since).tolist():
            cells = self._cells(objects, batch, since)
            new_values, new_counts = cells[: config.streams], cells[config.streams :]
            # An instance that ends at `since` or before already has the earlier arrival.
            is_target = (ends <= objects.end) & (ends > since)
            at, of = touched[is_target], rows[is_target]
            if config.repeats == "sum":
                values[:, at] += new_values[:, of]
            else:
                values[:, at] = np.maximum(values[:, at], new_values[:, of])
            if config.within == "window":
                counts[:, at] += new_counts[:, of]
            elif since < 0:
                counts[:, touched] += new_counts[:, rows]
        columns.scores[touched] = self._scores(columns.cells[:, touched])

    def _beside(self, end: int, cells: Floats, touched: Integers, rows: Integers) -> Floats:
        """Return the cells of new instances, completed from existing instances of their objects."""
        columns, streams = self._instances.columns, self.config.streams
        if columns.ends[-1] > end:
            # The instance of a late observation precedes others, and includes what they have.
            is_later = columns.ends[touched] > end
            at, of = touched[is_later][::-1], rows[is_later][::-1]  # so that the next one wins
            following = np.zeros_like(cells)
            following[:, of] = columns.cells[:, at]
            both = cells + following
            if self.config.repeats == "max":
                both[:streams] = np.maximum(cells[:streams], following[:streams])
            cells = both
        if self.config.within == "life":  # counts are the same for all instances of an object
            cells[streams:, rows] = columns.counts[:, touched]
        return cells

    def _cells(self, objects: _Batch, batch: Observations, since: int | None = None) -> Floats:
        """Return the cells of objects: of all observations, or of those with this `since`."""
        streams, count = self.config.streams, len(objects.keys)
        size = streams * count
        places, values = batch.streams * count + objects.places, batch.values
        if since is not None:
            is_since = batch.since == since
            places, values = places[is_since], values[is_since]
        cells = np.zeros((2 * streams, count))
        flat = cells.reshape(-1)
        if self.config.repeats == "sum":
            flat[:size] = np.bincount(places, weights=values, minlength=size)
        else:
            np.maximum.at(flat, places, values)
        flat[size:] = np.bincount(places, minlength=size)
        return cells

    def _scores(self, cells: Floats) -> Floats:
        """Return the current scores of instances; minus infinity without a required stream."""
        streams = self.config.streams
        scores = over_streams(self.config.function, cells[:streams])
        for stream in self.config.required:
            scores[cells[streams + stream] == 0] = -np.inf
        return scores

    def _check_limits(self, end: int, batch: Observations, cells: Floats) -> None:
        """Check observations against the limits `highs` and `most` of the configuration."""
        is_large = np.maximum.reduce(batch.values) > self._least_high
        is_many = np.maximum.reduce(cells[self.config.streams :], axis=None) > self._least_most
        if (is_large and (batch.values > self._highs[batch.streams, 0]).any()) or (
            is_many and (cells[self.config.streams :] > self._most).any()
        ):
            self._doubt(end)

    def _doubt(self, end: int) -> None:
        ends = self._instances.columns.ends
        self._doubtful = max(self._doubtful, end, int(ends[-1]) if len(ends) else -1)

    def _best(self) -> ScoredObject:
        """Return a superset of the k best objects and of all that tie with them."""
        columns, k = self._instances.columns, self.config.k
        objects = self._above(columns, self._guess)
        if not k <= len(objects.keys) <= 8 * k + 64:
            objects = self._above(columns, self._border(columns.scores))
            if len(objects.keys) < k:
                objects = self._above(columns, _LEAST)
            margin = 2 * k + 16  # enough that k of the next windows are likely to be above
            place = max(len(objects.keys) - margin, 0)
            if len(objects.keys):
                self._guess = float(np.partition(objects.scores, place)[place])
        return objects

    def _border(self, scores: Floats) -> float:
        """Return a score that enough instances reach that k objects are probably among them."""
        count = 4 * self.config.streams * (self.config.k + 8)
        if len(scores) <= count:
            return -np.inf
        return float(np.partition(scores, len(scores) - count)[len(scores) - count])

    def _above(self, columns: Columns, border: float) -> ScoredObject:
        """Return the objects whose score is not below a border.

        The first instance of an object has its score. Objects without a score are left out.
        """
        [above] = (columns.scores >= max(border, _LEAST)).nonzero()
        keys = columns.keys[above]
        order = keys.argsort(kind="stable")
        keys = keys[order]
        is_first = _starts(keys)
        places = above[order[is_first]]
        return ScoredObject(keys[is_first], columns.scores[places], columns.latest[places])

    def state(self) -> StateData:
        return with_header(self.tag, self._plain(), self._content())

    def _plain(self) -> dict[str, Any]:
        return self.config.plain()

    def _content(self) -> StateData:
        return {
            "buffer": self._buffer.state(),
            "instances": self._instances.state(),
            "new": self._new,
            "doubtful": self._doubtful,
        }

    @classmethod
    def restored(cls, config: IncompleteOperatorConfig, state: StateData) -> Self:
        """Return an operator restored from a state."""
        operator = cls(config)
        check_header(state, cls.tag, operator._plain())
        operator._restore(state)
        return operator

    def _restore(self, state: StateData) -> None:
        self._buffer.restore(state["buffer"])
        self._instances.restore(state["instances"])
        self._new, self._doubtful = state["new"], state["doubtful"]

    def _check(self) -> None:
        """Assert the invariants of the operator."""
        columns = self._instances.columns
        assert (np.diff(columns.ends) >= 0).all(), "instances are in time order"  # noqa: S101
        pairs = set(zip(columns.keys.tolist(), columns.ends.tolist(), strict=True))
        assert len(pairs) == len(self), "an object has one instance per pane"  # noqa: S101
        scores = self._scores(columns.cells)
        assert (columns.scores == scores).all(), "current scores are those of the values"  # noqa: S101
        is_exact = self._buffer.closed > self._doubtful and not self.is_approximate
        if is_exact:
            bests = self.bests(columns)
            assert (columns.scores <= bests).all(), "best scores are upper bounds"  # noqa: S101
        for key in np.unique(columns.keys).tolist():
            own = columns.keys == key
            falls = (np.diff(columns.values[:, own]) <= 0).all()
            assert falls, "older instances have larger values"  # noqa: S101
            assert len(np.unique(columns.latest[own])) == 1, "one last arrival"  # noqa: S101


def _distinct(keys: Integers) -> tuple[Integers, Integers]:
    """Return the distinct keys, sorted, and the index of each key among them.

    >>> _distinct(np.array([5, 3, 5]))
    (array([3, 5]), array([1, 0, 1]))
    """
    order = keys.argsort()
    in_order = keys[order]
    is_first = _starts(in_order)
    places = np.empty(len(keys), dtype=np.int64)
    places[order] = is_first.cumsum() - 1
    return in_order[is_first], places


def _starts(keys: Integers) -> Booleans:
    """Return which of the sorted keys differ from the one before."""
    is_first = np.empty(len(keys), dtype=bool)
    is_first[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return is_first
