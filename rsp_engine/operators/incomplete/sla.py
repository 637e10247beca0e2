"""SLA, the Sorted List Algorithm: the threshold algorithm over the attributes of all objects.

Every observation is kept until it expires. Each stream has a list of its objects, sorted by their
attribute. A materialised view contains the best objects, more than k, so that it is seldom
recomputed: it loses objects as observations expire, and gains those that overtake its floor, the
best object outside the view. When fewer than k remain, the threshold algorithm refills it: it
descends all lists in parallel, and looks up the score of each object that it meets. It stops once
it has k_max objects that no object further down can reach.

    list 1     list 2                  at depth 2 the threshold is 0.7 + 0.8: no object that was not
    p  0.9     q  0.9                  met has a larger score
    r  0.7     p  0.8     <- depth 2   p  0.9 + 0.8,  q  0.9 + 0.1,  r  0.7

>>> from rsp_engine.model.windows import Pane
>>> from rsp_engine.operators.incomplete.observations import as_observations
>>> operator = SLA(IncompleteOperatorConfig(1, (1.0, 1.0)))
>>> operator.arrive(Pane(0, 1), as_observations([0, 0], [1, 2], [10, 20], [0.75, 0.5]))
>>> operator.arrive(Pane(1, 2), as_observations([1], [2], [30], [0.5]))
>>> operator.close(0).keys.tolist(), operator.close(1).keys.tolist()
([1], [2])

An object that occurs several times in a stream has one entry in its list, with the aggregate of its
values. So the first entry met has the object's full attribute, and the threshold is valid.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
3.1; section 5 for objects that recur in one stream. The threshold algorithm is that of Fagin,
Lotem, Naor: Optimal aggregation algorithms for middleware (2003); the view that of Yi, Yu, Yang,
Xia, Chen: Efficient maintenance of materialized top-k views (2003).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.incomplete.observations import (
    IncompleteOperatorConfig,
    ObservationBuffer,
    Observations,
)
from rsp_engine.operators.topk.contract import TopkAnswer

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.windows import Pane

__all__ = ["SLA"]

_Rank = tuple[float, int, int]
"""The score, the last arrival and the key of an object: larger is better."""

_NONE: _Rank = (-inf, -1, -1)


class SLA:
    """The SLA operator. Time per observation: O(log n), and O(n) moves in lists; memory: O(n).

    `k_max` is the size of the view, by default 4 k.
    """

    def __init__(self, config: IncompleteOperatorConfig, k_max: int | None = None) -> None:
        self.config = config
        self.k_max = 4 * config.k if k_max is None else k_max
        if self.k_max < config.k:
            raise ValueError("the view must have room for k objects")
        self.computed = 0
        """The number of runs of the threshold algorithm."""
        self._buffer = ObservationBuffer(config)
        self._expiring: dict[int, deque[tuple[int, int, float]]] = {}
        self._objects: dict[int, _Object] = {}
        self._lists: list[list[tuple[float, int]]] = [[] for _ in config.highs]
        self._view: dict[int, _Rank] = {}
        self._floor = _NONE

    def __len__(self) -> int:
        return sum(map(len, self._expiring.values()))

    def arrive(self, pane: Pane, batch: Observations) -> None:
        self._buffer.add(pane, batch)

    def close(self, window: int) -> TopkAnswer:
        for pane, batch in self._buffer.until(window):
            columns = (column.tolist() for column in batch[:-1])  # only sketches need the hashes
            for stream, key, position, value, since in zip(*columns, strict=True):
                if since >= 0:
                    self._withdraw(since, stream, key, value)
                self._insert(pane.last, stream, key, position, value)
        for end in sorted(end for end in self._expiring if end < window):
            for stream, key, value in self._expiring.pop(end):
                self._remove(stream, key, value)
        if len(self._view) < self.config.k and self._floor > _NONE:
            self._fill()
        best = sorted(self._view.values(), reverse=True)[: self.config.k]
        scores = np.array([score for score, _, _ in best], dtype=np.float64)
        return TopkAnswer(window, np.array([key for *_, key in best], dtype=np.int64), scores)

    def near(self) -> Integers:
        ranks = sorted(self._view.values(), reverse=True)
        if len(ranks) >= self.config.k:
            border = ranks[self.config.k - 1][0] - self.config.slack
            if self._floor[0] >= border:  # objects outside the view may tie too
                ranks = self._search(self.config.k, border)
            ranks = [rank for rank in ranks if rank[0] >= border]
        return np.array(sorted(key for *_, key in ranks), dtype=np.int64)

    def _insert(self, end: int, stream: int, key: int, position: int, value: float) -> None:
        self._expiring.setdefault(end, deque()).append((stream, key, value))
        known = self._objects.get(key)
        if known is None:
            known = self._objects[key] = _Object(self.config.streams)
        known.latest = max(known.latest, position)
        self._change(known, stream, key, [*known.values[stream], value])

    def _withdraw(self, end: int, stream: int, key: int, value: float) -> None:
        """Withdraw the previous arrival of an observation that arrives again."""
        expiring = self._expiring.get(end)
        if expiring is not None and (stream, key, value) in expiring:
            expiring.remove((stream, key, value))
            self._remove(stream, key, value)

    def _remove(self, stream: int, key: int, value: float) -> None:
        known = self._objects[key]
        values = [*known.values[stream]]
        values.remove(value)
        self._change(known, stream, key, values)
        if not any(known.values):
            del self._objects[key]

    def _change(self, known: _Object, stream: int, key: int, values: list[float]) -> None:
        """Replace the values of an object in a stream, and update its list and the view."""
        entries = self._lists[stream]
        if known.values[stream]:
            place = bisect_left(entries, (self._attribute(known.values[stream]), key))
            del entries[place]
        if values:
            insort(entries, (self._attribute(values), key))
        known.values[stream] = values
        rank = self._rank(key)
        if rank > self._floor:
            self._view[key] = rank
            if len(self._view) > self.k_max:
                worst = min(self._view.values())
                self._floor = worst
                del self._view[worst[2]]
        else:
            self._view.pop(key, None)

    def _attribute(self, values: list[float]) -> float:
        return sum(values) if self.config.repeats == "sum" else max(values)

    def _rank(self, key: int) -> _Rank:
        """Return the rank of an object, by random access to all its attributes."""
        known = self._objects[key]
        if not any(known.values) or not all(known.values[s] for s in self.config.required):
            return _NONE
        attributes = [self._attribute(values) for values in known.values if values]
        score = sum(attributes) if self.config.function == "sum" else max(attributes)
        return score, known.latest, key

    def _fill(self) -> None:
        """Recompute the view."""
        best = sorted(self._search(self.k_max + 1), reverse=True)
        self._view = {rank[2]: rank for rank in best[: self.k_max]}
        self._floor = best[self.k_max] if len(best) > self.k_max else _NONE

    def _search(self, count: int, border: float = inf) -> list[_Rank]:
        """Return the ranks of the objects that the threshold algorithm meets.

        They include the best `count` objects, and all whose score is not below the border.
        """
        self.computed += 1
        ranks: dict[int, _Rank] = {}
        scores: list[float] = []  # the best `count` scores, ascending
        for depth in range(1, max(map(len, self._lists), default=0) + 1):
            last = []
            for entries in self._lists:
                if depth > len(entries):
                    continue
                attribute, key = entries[-depth]
                last.append(attribute)
                if key not in ranks:
                    rank = ranks[key] = self._rank(key)
                    insort(scores, rank[0])
                    del scores[:-count]
            threshold = sum(last) if self.config.function == "sum" else max(last)
            if len(scores) == count and threshold < scores[0] and threshold < border:
                break
        return [rank for rank in ranks.values() if rank > _NONE]

    def state(self) -> StateData:
        ends = sorted(self._expiring)
        content = {
            "buffer": self._buffer.state(),
            "ends": ends,
            "observations": [list(map(list, self._expiring[end])) for end in ends],
            "latest": sorted([key, known.latest] for key, known in self._objects.items()),
            "view": sorted(map(list, self._view.values())),
            "floor": list(self._floor),
            "computed": self.computed,
        }
        return with_header("SLA", {**self.config.plain(), "k_max": self.k_max}, content)

    @classmethod
    def restored(
        cls, config: IncompleteOperatorConfig, state: StateData, k_max: int | None = None
    ) -> SLA:
        """Return an operator restored from a state."""
        operator = cls(config, k_max)
        check_header(state, "SLA", {**config.plain(), "k_max": operator.k_max})
        operator._buffer.restore(state["buffer"])
        latest = dict(state["latest"])
        for end, observations in zip(state["ends"], state["observations"], strict=True):
            for stream, key, value in observations:
                operator._insert(end, stream, key, latest[key], value)
        operator._view = {key: (score, last, key) for score, last, key in state["view"]}
        score, last, key = state["floor"]
        operator._floor = score, last, key
        operator.computed = state["computed"]
        return operator

    def _check(self) -> None:
        """Assert the invariants of the operator."""
        for stream, entries in enumerate(self._lists):
            assert entries == sorted(entries), "lists are sorted"  # noqa: S101
            expected = {k: self._attribute(o.values[stream]) for k, o in self._objects.items()
                        if o.values[stream]}  # fmt: skip
            listed = {key: value for value, key in entries}
            assert listed == expected, "each object has one entry"  # noqa: S101
        ranks = {key: self._rank(key) for key in self._objects}
        above = {key: rank for key, rank in ranks.items() if rank > self._floor}
        assert self._view == above, "the view contains all objects above its floor"  # noqa: S101
        assert len(self._view) <= self.k_max, "the view has at most k_max objects"  # noqa: S101


class _Object:
    """An object of the window: the values of each stream, and the position of the last arrival."""

    __slots__ = ("latest", "values")

    def __init__(self, streams: int) -> None:
        self.values: list[list[float]] = [[] for _ in range(streams)]
        self.latest = -1
