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
>>> operator = EAA(IncompleteOperatorConfig(1, (1.0, 1.0)))
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

_FEW = 128  # so many new instances are not worth while to look for what can go
_SHARE = 0.5  # of all instances: when so many are new, it is


_LEAST = float(np.finfo(np.float64).min)
_EARLIEST = np.iinfo(np.int64).min


class _Batch(NamedTuple):
    """The observations of a pane that expires with a window: of which objects they are.

    `places` are those of the objects of observations among `keys`; `latest` is when each came.
    """

    end: int
    keys: Integers
    places: Integers
    latest: Integers


class EAA:
    """Time for a pane of n: O(n log n + c), with c instances kept; memory: O(c d)."""

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
        self._guess = np.inf  # a score that the best of the next window have, and few others
        self._new = 0  # instances that came since some were dropped
        self._doubtful = -1  # answers up to this window may be wrong

    def __len__(self) -> int:
        return len(self._instances)

    def arrive(self, pane: Pane, batch: Observations) -> None:
        self._buffer.add(pane, batch)

    def close(self, window: int) -> TopkAnswer:
        self._instances.expire(window)  # first of all: its numbers may be those of others now
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
        keys, places = _distinct(batch.keys)
        latest = np.full(len(keys), _EARLIEST)
        np.maximum.at(latest, places, batch.positions)
        taken = _Batch(end, keys, places, latest)
        cells = self._cells(taken, batch)
        held = self._instances.columns
        found = self._ids.places(keys, held.keys)
        [touched] = (found >= 0).nonzero()
        is_new = None
        if len(touched):
            rows = found[touched]
            came = np.maximum(held.latest[touched], latest[rows])
            held.latest[touched] = latest[rows] = came
            if held.ends[-1] < end and self._is_plain(batch):
                self._add(cells, touched, rows)
            else:
                self._update(taken, batch, touched, rows)
                is_new = np.ones(len(keys), dtype=bool)
                is_new[rows[held.ends[touched] == end]] = False  # these have all that is new
            cells = self._beside(end, cells, touched, rows)
        self._look_at(end, batch, cells)
        if is_new is not None:
            keys, latest, cells = keys[is_new], latest[is_new], cells[:, is_new]
        ends = np.full(len(keys), end)
        self._instances.add(Columns(ends, keys, latest, cells, self._scores(cells)))
        self._new += len(keys)

    def _is_plain(self, batch: Observations) -> bool:
        """Tell whether all is new, so that all instances of an object gain the same."""
        return self.config.repeats == "sum" and bool(np.maximum.reduce(batch.since) < 0)

    def _add(self, cells: Floats, touched: Integers, rows: Integers) -> None:
        """Add what is new to all instances of the objects."""
        held = self._instances.columns
        more = held.cells[:, touched] + cells[:, rows]
        held.cells[:, touched] = more
        held.scores[touched] = self._scores(more)

    def _update(
        self, taken: _Batch, batch: Observations, touched: Integers, rows: Integers
    ) -> None:
        """Add observations to the instances of their objects that expire no later."""
        config, held = self.config, self._instances.columns
        ends = held.ends[touched]
        values, counts = held.values, held.counts
        for since in np.unique(batch.since).tolist():
            cells = self._cells(taken, batch, since)
            new_values, new_counts = cells[: config.streams], cells[config.streams :]
            # An instance has the earlier arrival of what came again, if it expires no later.
            into = (ends <= taken.end) & (ends > since)
            at, of = touched[into], rows[into]
            if config.repeats == "sum":
                values[:, at] += new_values[:, of]
            else:
                values[:, at] = np.maximum(values[:, at], new_values[:, of])
            if config.within == "window":
                counts[:, at] += new_counts[:, of]
            elif since < 0:
                counts[:, touched] += new_counts[:, rows]
        held.scores[touched] = self._scores(held.cells[:, touched])

    def _beside(self, end: int, cells: Floats, touched: Integers, rows: Integers) -> Floats:
        """Return what new instances have, beside those of their objects that there are."""
        held, streams = self._instances.columns, self.config.streams
        if held.ends[-1] > end:
            # Late observations have instances before those that expire later, with what they have.
            is_later = held.ends[touched] > end
            at, of = touched[is_later][::-1], rows[is_later][::-1]  # the next one is written last
            following = np.zeros_like(cells)
            following[:, of] = held.cells[:, at]
            both = cells + following
            if self.config.repeats == "max":
                both[:streams] = np.maximum(cells[:streams], following[:streams])
            cells = both
        if self.config.within == "life":  # counts are the same for all instances of an object
            cells[streams:, rows] = held.counts[:, touched]
        return cells

    def _cells(self, taken: _Batch, batch: Observations, since: int | None = None) -> Floats:
        """Return the cells of objects: of all observations, or those that came before at a time."""
        streams, count = self.config.streams, len(taken.keys)
        size = streams * count
        cells, values = batch.streams * count + taken.places, batch.values
        if since is not None:
            chosen = batch.since == since
            cells, values = cells[chosen], values[chosen]
        found = np.zeros((2 * streams, count))
        flat = found.reshape(-1)
        if self.config.repeats == "sum":
            flat[:size] = np.bincount(cells, weights=values, minlength=size)
        else:
            np.maximum.at(flat, cells, values)
        flat[size:] = np.bincount(cells, minlength=size)
        return found

    def _scores(self, cells: Floats) -> Floats:
        """Return the current scores of instances; there is none without what is required."""
        streams = self.config.streams
        found = over_streams(self.config.function, cells[:streams])
        for stream in self.config.required:
            found[cells[streams + stream] == 0] = -np.inf
        return found

    def _look_at(self, end: int, batch: Observations, cells: Floats) -> None:
        """Look whether observations keep what the configuration promises."""
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
        """Return objects among which are the k best and all that are as good."""
        held, k = self._instances.columns, self.config.k
        found = self._above(held, self._guess)
        if not k <= len(found.keys) <= 8 * k + 64:
            found = self._above(held, self._border(held.scores))
            if len(found.keys) < k:
                found = self._above(held, _LEAST)
            some = 2 * k + 16  # so many leave k of the next windows above, in all likelihood
            place = max(len(found.keys) - some, 0)
            if len(found.keys):
                self._guess = float(np.partition(found.scores, place)[place])
        return found

    def _border(self, scores: Floats) -> float:
        """Return a score that so many instances have, or none, that k objects are among them."""
        wanted = 4 * self.config.streams * (self.config.k + 8)
        if len(scores) <= wanted:
            return -np.inf
        return float(np.partition(scores, len(scores) - wanted)[len(scores) - wanted])

    def _above(self, held: Columns, border: float) -> ScoredObject:
        """Return the objects whose score is not below a border.

        The first instance of an object has its score. What lacks something required has none.
        """
        [above] = (held.scores >= max(border, _LEAST)).nonzero()
        keys = held.keys[above]
        order = keys.argsort(kind="stable")
        keys = keys[order]
        is_first = _starts(keys)
        places = above[order[is_first]]
        return ScoredObject(keys[is_first], held.scores[places], held.latest[places])

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
        """Return an operator that goes on from a state. Where to look for the best is guessed."""
        made = cls(config)
        check_header(state, cls.tag, made._plain())
        made._restore(state)
        return made

    def _restore(self, state: StateData) -> None:
        self._buffer.restore(state["buffer"])
        self._instances.restore(state["instances"])
        self._new, self._doubtful = state["new"], state["doubtful"]

    def _check(self) -> None:
        """Assert what always holds."""
        held = self._instances.columns
        assert (np.diff(held.ends) >= 0).all(), "instances are in the order of time"  # noqa: S101
        pairs = set(zip(held.keys.tolist(), held.ends.tolist(), strict=True))
        assert len(pairs) == len(self), "an object has one instance for a pane"  # noqa: S101
        scores = self._scores(held.cells)
        assert (held.scores == scores).all(), "current scores are those of the values"  # noqa: S101
        is_sure = self._buffer.closed > self._doubtful
        if is_sure and not self.is_approximate:
            assert (held.scores <= self.bests(held)).all(), "best scores are no less"  # noqa: S101
        for key in np.unique(held.keys).tolist():
            mine = held.keys == key
            assert (np.diff(held.values[:, mine]) <= 0).all(), "older ones have more"  # noqa: S101
            assert len(np.unique(held.latest[mine])) == 1, "an object came last once"  # noqa: S101


def _distinct(keys: Integers) -> tuple[Integers, Integers]:
    """Return the different keys, sorted, and the place of each key among them.

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
    """Tell where another key begins, of sorted ones."""
    found = np.empty(len(keys), dtype=bool)
    found[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=found[1:])
    return found
