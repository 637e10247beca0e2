"""EAA, the Early Aggregation Algorithm: observations become instances as they come.

An object that is seen in streams at different times has an instance for each of these times, with
what was observed from then on. The current score of an instance is that of its values, and only
rises; its best score takes the largest value for what can still come, and only falls. Instances
outside of the k-dominance set are dropped (`dominance`).

    stream 2 at 1      p1  [0.4, 2.4]
    stream 3 at 30     p1  [1.1, 2.1]    p2  [0.7, 1.7]
    stream 1 at 50     p1  [1.6, 1.6]    p2  [1.2, 1.2]    p3  [0.5, 0.5]

Best scores are needed only when instances are dropped. That is done whenever some have come: late,
and all at once, since an instance that should have gone is in nobody's way.

>>> from rsp_engine.model.windows import Pane
>>> from rsp_engine.operators.incomplete.observations import as_observations
>>> operator = EAA(IncompleteConfig(1, (1.0, 1.0)))
>>> operator.arrive(Pane(0, 1), as_observations([0, 0], [1, 2], [10, 20], [0.75, 0.5]))
>>> operator.arrive(Pane(1, 2), as_observations([1], [2], [30], [0.5]))
>>> operator.close(0).keys.tolist(), operator.close(1).keys.tolist()
([1], [2])

An object is known only while an instance of it is kept. Should it come more often than `most` says,
or with more than the largest value, then answers are not sure to be exact until all that lives by
then has expired; of an object that is not known, the former goes unnoticed.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
3.2; section 5 for objects that come again in one stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rsp_engine.operators.incomplete.dominance import kth_best_as_old
from rsp_engine.operators.incomplete.instances import Columns, IdTable, Instances, over_streams
from rsp_engine.operators.incomplete.observations import (
    IncompleteConfig,
    ObservationBuffer,
    Observations,
    Scored,
)
from rsp_engine.operators.state import State, checked, headed
from rsp_engine.operators.topk import Ranking

if TYPE_CHECKING:
    from typing import Self

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.windows import Pane

__all__ = ["EAA"]

_FEW = 128  # so many new instances are not worth while to look for what can go
_SHARE = 0.5  # of all instances: when so many are new, it is


class _Batch(NamedTuple):
    """The observations of a pane that expires with a window: of which objects they are.

    `places` are those of the objects of observations among `keys`; `latest` is when each came.
    """

    end: int
    keys: Integers
    places: Integers
    latest: Integers


class _Grouped(NamedTuple):
    """Observations by stream and object: what they make together, and how many they are."""

    values: Floats
    counts: Integers


class EAA:
    """Time for a pane of n: O(n log n + c), with c instances kept; memory: O(c d)."""

    is_approximate = False
    _is_thorough = False

    def __init__(self, config: IncompleteConfig) -> None:
        self.config = config
        self._buffer = ObservationBuffer(config)
        self._instances = Instances(config.streams)
        self._ids = IdTable()
        self._highs = np.array(config.highs)[:, None]
        self._most = np.array(config.most)[:, None]
        self._guess = np.inf  # a score that the best of the next window have, and few others
        self._new = 0  # instances that came since some were dropped
        self._doubtful = -1  # answers up to this window may be wrong

    def __len__(self) -> int:
        return len(self._instances)

    def arrive(self, pane: Pane, batch: Observations) -> None:
        self._buffer.add(pane, batch)

    def close(self, window: int) -> Ranking:
        self._instances.expire(window)  # first of all: its numbers may be those of others now
        for pane, batch in self._buffer.until(window):
            self._take(pane.last, batch)
        self._instances.expire(window)
        if self._new > max(_FEW, _SHARE * len(self)):
            self.prune()
        best = self._best().best(self.config.k)
        is_exact = window > self._doubtful and not self.is_approximate
        return Ranking(window, best.keys, best.scores, is_exact, is_exact)

    def near(self) -> Integers:
        best = self._best()
        if len(best.keys) < self.config.k:
            return best.keys
        border = best.best(self.config.k).scores[-1] - self.config.slack
        return self._above(self._instances.columns, border).keys

    def prune(self) -> None:
        """Drop the instances that k objects dominate."""
        held = self._instances.columns
        kth = kth_best_as_old(
            held.ends, held.keys, held.scores, self.config.k, pane_by_pane=self._is_thorough
        )
        chosen = self._chosen(self.bests(held), kth)
        if not chosen.all():
            self._instances.keep(chosen)
        self._new = 0

    def _chosen(self, bests: Floats, kth: Floats) -> Booleans:
        """Tell which instances are kept, by their best scores and those of their dominators."""
        chosen: Booleans = kth <= bests + self.config.slack
        return chosen

    def bests(self, held: Columns) -> Floats:
        """Return the best score that each instance can reach."""
        left = np.maximum(self._most - held.counts, 0)
        if self.config.repeats == "max":
            left = np.minimum(left, 1)
        return self._with_rest(held.values, left * self._highs)

    def _with_rest(self, values: Floats, rest: Floats) -> Floats:
        combine = np.add if self.config.repeats == "sum" else np.maximum
        return over_streams(self.config.function, combine(values, rest))

    def _take(self, end: int, batch: Observations) -> None:
        """Take the observations of a pane that expires with a window."""
        keys, places = np.unique(batch.keys, return_inverse=True)
        latest = np.full(len(keys), np.iinfo(np.int64).min)
        np.maximum.at(latest, places, batch.positions)
        taken = _Batch(end, keys, places, latest)
        if (batch.values > self._highs[batch.streams, 0]).any():
            self._doubt(end)
        new = self._grouped(taken, batch)
        is_new = np.ones(len(keys), dtype=bool)
        held = self._instances.columns
        found = self._ids.places(keys, held.keys)
        touched = np.flatnonzero(found >= 0)
        if len(touched):
            rows = found[touched]
            held.latest[touched] = np.maximum(held.latest[touched], latest[rows])
            latest[rows] = held.latest[touched]
            self._update(taken, batch, new, (touched, rows))
            is_new[rows[held.ends[touched] == end]] = False  # these have all that is new
            new = self._beside(end, new, touched, rows)
        if (new.counts > self._most).any():
            self._doubt(end)
        if not is_new.all():
            keys, latest = keys[is_new], latest[is_new]
            new = _Grouped(new.values[:, is_new], new.counts[:, is_new])
        ends = np.full(len(keys), end)
        self._instances.add(Columns(ends, keys, latest, *new, self._scores(*new)))
        self._new += len(keys)

    def _update(
        self,
        taken: _Batch,
        batch: Observations,
        new: _Grouped,
        found: tuple[Integers, Integers],
    ) -> None:
        """Add observations to the instances of their objects that expire no later."""
        config, held = self.config, self._instances.columns
        touched, rows = found
        ends = held.ends[touched]
        is_again = batch.since.max() >= 0
        for since in np.unique(batch.since).tolist() if is_again else (-1,):
            values, counts = self._grouped(taken, batch, since) if is_again else new
            # An instance has the earlier arrival of what came again, if it expires no later.
            into = (ends <= taken.end) & (ends > since)
            at, of = touched[into], rows[into]
            if config.repeats == "sum":
                held.values[:, at] += values[:, of]
            else:
                held.values[:, at] = np.maximum(held.values[:, at], values[:, of])
            if config.within == "window":
                held.counts[:, at] += counts[:, of]
            elif since < 0:
                held.counts[:, touched] += counts[:, rows]
        held.scores[touched] = self._scores(held.values[:, touched], held.counts[:, touched])

    def _beside(self, end: int, new: _Grouped, touched: Integers, rows: Integers) -> _Grouped:
        """Return what new instances have, beside those of their objects that there are."""
        held, (values, counts) = self._instances.columns, new
        # Late observations have instances before those that expire later: with their values, too.
        is_later = held.ends[touched] > end
        if is_later.any():
            at, of = touched[is_later][::-1], rows[is_later][::-1]  # the next one is written last
            values, counts = values.copy(), counts.copy()
            following = np.zeros_like(values)
            following[:, of] = held.values[:, at]
            if self.config.repeats == "sum":
                values += following
            else:
                np.maximum(values, following, out=values)
            more = np.zeros_like(counts)
            more[:, of] = held.counts[:, at]
            counts += more
        if self.config.within == "life":
            counts = counts.copy()
            counts[:, rows] = held.counts[:, touched]  # the same for all instances of an object
        return _Grouped(values, counts)

    def _grouped(self, taken: _Batch, batch: Observations, since: int | None = None) -> _Grouped:
        """Return observations by stream and object: all, or those that came before at a time."""
        shape = self.config.streams, len(taken.keys)
        cells, values = batch.streams * shape[1] + taken.places, batch.values
        if since is not None:
            chosen = batch.since == since
            cells, values = cells[chosen], values[chosen]
        size = shape[0] * shape[1]
        counts = np.bincount(cells, minlength=size).reshape(shape)
        if self.config.repeats == "sum":
            sums = np.bincount(cells, weights=values, minlength=size).astype(np.float64)
            return _Grouped(sums.reshape(shape), counts)
        largest = np.zeros(size)
        np.maximum.at(largest, cells, values)
        return _Grouped(largest.reshape(shape), counts)

    def _scores(self, values: Floats, counts: Integers) -> Floats:
        """Return the current scores of instances; there is none without what is required."""
        found = over_streams(self.config.function, values)
        for stream in self.config.required:
            found[counts[stream] == 0] = -np.inf
        return found

    def _doubt(self, end: int) -> None:
        ends = self._instances.columns.ends
        self._doubtful = max(self._doubtful, end, int(ends[-1]) if len(ends) else -1)

    def _best(self) -> Scored:
        """Return objects among which are the k best and all that are as good."""
        held, k = self._instances.columns, self.config.k
        found = self._above(held, self._guess)
        if not k <= len(found.keys) <= 8 * k + 64:
            found = self._above(held, self._border(held.scores))
            if len(found.keys) < k:
                found = self._above(held, np.finfo(np.float64).min)
            self._guess = np.inf
        some = 2 * k + 16  # so many leave k of the next window above, in all likelihood
        if len(found.keys) >= some:
            place = len(found.keys) - some
            self._guess = float(np.partition(found.scores, place)[place])
        elif self._guess == np.inf and len(found.keys):
            self._guess = float(found.scores.min())
        return found

    def _border(self, scores: Floats) -> float:
        """Return a score that so many instances have, or none, that k objects are among them."""
        wanted = 4 * self.config.streams * (self.config.k + 8)
        if len(scores) <= wanted:
            return -np.inf
        return float(np.partition(scores, len(scores) - wanted)[len(scores) - wanted])

    def _above(self, held: Columns, border: float) -> Scored:
        """Return the objects whose score is not below a border.

        The first instance of an object has its score. What lacks something required has none.
        """
        above = np.flatnonzero(held.scores >= max(border, np.finfo(np.float64).min))
        keys, first = np.unique(held.keys[above], return_index=True)
        places = above[first]
        return Scored(keys, held.scores[places], held.latest[places])

    def state(self) -> State:
        return headed(type(self).__name__, self._plain(), self._content())

    def _plain(self) -> dict[str, Any]:
        return self.config.plain()

    def _content(self) -> State:
        return {
            "buffer": self._buffer.state(),
            "instances": self._instances.state(),
            "new": self._new,
            "doubtful": self._doubtful,
        }

    @classmethod
    def restored(cls, config: IncompleteConfig, state: State) -> Self:
        """Return an operator that goes on from a state. Where to look for the best is guessed."""
        made = cls(config)
        checked(state, cls.__name__, made._plain())
        made._restore(state)
        return made

    def _restore(self, state: State) -> None:
        self._buffer.restore(state["buffer"])
        self._instances.restore(state["instances"])
        self._new, self._doubtful = state["new"], state["doubtful"]

    def _check(self) -> None:
        """Assert what always holds."""
        held = self._instances.columns
        assert (np.diff(held.ends) >= 0).all(), "instances are in the order of time"  # noqa: S101
        pairs = set(zip(held.keys.tolist(), held.ends.tolist(), strict=True))
        assert len(pairs) == len(self), "an object has one instance for a pane"  # noqa: S101
        scores = self._scores(held.values, held.counts)
        assert (held.scores == scores).all(), "current scores are those of the values"  # noqa: S101
        is_sure = self._buffer.closed > self._doubtful
        if is_sure and not self.is_approximate:
            assert (held.scores <= self.bests(held)).all(), "best scores are no less"  # noqa: S101
        for key in np.unique(held.keys).tolist():
            mine = held.keys == key
            assert (np.diff(held.values[:, mine]) <= 0).all(), "older ones have more"  # noqa: S101
            assert len(np.unique(held.latest[mine])) == 1, "an object came last once"  # noqa: S101
