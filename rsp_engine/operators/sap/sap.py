"""SAP: the window is split into partitions, and the k best objects of each are candidates.

An arrival is compared with the k-th object of the open partition, and most arrivals need no more
work than that. The objects of a window are stored, as in the paper, but read again only when their
partition slides out and its group dominance number does not rule them out. The answer changes only
when an object enters it or expires.

    P_0 (slides out)   P_1 ... P_{m-1}          P_m (open)
    [ ... M_0 ... ]    [    ] ... [    ]        [    >
      P_0^k              P_1^k ... P_{m-1}^k      P_m^k        C is P_0^k to P_{m-1}^k

The answer is the k best of C, P_m^k and M_0.

>>> from rsp_engine.model.windows import Pane
>>> operator = Sap(SapConfig(k=1, slides=2))
>>> operator.arrive(Pane(0, 1), [1, 2], [10, 20], [5.0, 3.0])
>>> operator.close(0).keys.tolist()
[1]

Decided: W is P_0 to P_{m-1} and the open partition P_m (Algorithm 1 counts both ways). P_0^k stays
in C, and objects that enter the answer from M_0 join it there. The text says of Fig 3 that M_0 =
{92}, but 92 is in P_0^k. A partition that starts to slide out before it is full is closed as it is.

A key must always arrive with the same score, as in MinTopk. A late pane, which ends sooner than one
before it, makes the operator rebuild its partitions.

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from dataclasses import asdict, dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.sap.candidate_set import CandidateSet
from rsp_engine.operators.sap.invariants import check_sap
from rsp_engine.operators.sap.meaningful_set import NEVER_EXPIRES, MeaningfulSet
from rsp_engine.operators.sap.open_partition import OpenPartition
from rsp_engine.operators.sap.partition import Partition
from rsp_engine.operators.sap.partition_size import Partitioning, is_proper, longest, slides_of_unit
from rsp_engine.operators.sap.rank_tuples import Entry, entries_of, keys_and_scores
from rsp_engine.operators.sap.rearrivals import Rearrivals
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_arrivals,
    concatenated_arrivals,
)
from rsp_engine.operators.topk.pane_buffer import PaneBuffer

if TYPE_CHECKING:
    from rsp_engine.model.windows import Pane

__all__ = ["Sap", "SapConfig"]

_FEW = 8  # up to this many new entries are inserted one by one; more are sorted in
_SMALL = 32  # panes up to this size are filtered in plain Python, which is faster there
_STEPS = 8  # the number of steps that form M_1 while P_0 slides out
_LEAST = 256  # the least number of objects to process in a step


@dataclass(frozen=True, slots=True)
class SapConfig(TopkOperatorConfig):
    """The configuration of SAP: the number of slides of a window, and how to partition it.

    `s` is the number of objects in a slide; if it is None, the stored panes give its average.
    """

    slides: int = 1
    s: int | None = None
    partitioning: Partitioning = "enhanced"

    def __post_init__(self) -> None:
        super(SapConfig, self).__post_init__()
        if self.slides < 1 or (self.s is not None and self.s < 1):
            raise ValueError("a window has at least one slide, and a slide one object")


class Sap:
    """The SAP operator.

    Time for an object: O(log k) amortised, mostly O(1). Memory: the window. With equal partitions,
    C, P_m^k and M_0 have O(k sqrt(n / max(s, k))) objects.
    """

    def __init__(self, config: SapConfig) -> None:
        self.config = config
        self._buffer = PaneBuffer(config.k, unreduced=2 * config.k)
        self._partitions: deque[Partition] = deque()
        self._candidates = CandidateSet(config.k)
        self._meaningful: MeaningfulSet | None = None  # of P_0
        self._next_meaningful: MeaningfulSet | None = None  # of P_1
        self._answer: list[Entry] = []  # in ascending rank
        self._soonest = NEVER_EXPIRES  # lower bound of the ends of the answer
        self._due = NEVER_EXPIRES  # the next window at which partitions need work
        self._next_step = NEVER_EXPIRES  # the next window at which to form a part of M_1
        self._rearrivals = Rearrivals()
        self._last_end = -1  # the largest end so far
        self._had_late = False  # late panes make partitions longer than the bound allows
        self._start(Partition())
        self._rank()

    def __len__(self) -> int:
        """Return the number of candidates and meaningful objects: the sizes of C, P_m^k and M_0."""
        meaningful = 0 if self._meaningful is None else len(self._meaningful)
        return len(self._candidates) + len(self._open.best) + meaningful

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(pane, as_arrivals(keys, positions, scores))

    def settle(self, window: int) -> None:
        """Process the arrivals of a window so far, and remove objects that expire before it."""
        for pane, batch in self._buffer.until(window):
            self._take(pane.last, batch, window)
        if window >= self._due:
            self._slide_out(window)
        if window > self._soonest:
            self._expire(window)

    def close(self, window: int) -> TopkAnswer:
        self.settle(window)
        self._buffer.closed = window
        if self._is_changed:
            self._rank()
        return TopkAnswer(window, self._keys, self._scores)

    def _rank(self) -> None:
        self._keys, self._scores = keys_and_scores(self._answer)
        self._keys.flags.writeable = self._scores.flags.writeable = False  # shared between answers
        self._is_changed = False

    def _start(self, partition: Partition) -> None:
        """Start the open partition; it may have objects already."""
        self._open = OpenPartition(self.config.k, partition, self._rearrivals.latest)
        self._open.start_unit(self._slides())

    def _slides(self) -> int:
        """Return the number of slides of a unit, from the average size of the stored panes."""
        s: float | None = self.config.s
        if s is None:
            stored = self._stored()
            panes = sum(len(partition.ends) for partition in stored)
            s = max(1.0, sum(map(len, stored)) / max(1, panes))
        return slides_of_unit(self.config.slides, s, self.config.k)

    def _stored(self) -> list[Partition]:
        return [*self._partitions, self._open.partition]

    def _take(self, end: int, batch: Arrivals, window: int) -> None:
        """Add a pane to the open partition."""
        if not self._rearrivals.are_new(batch):
            batch, replaced = self._rearrivals.replace(batch, end, window, self._stored())
            for entry in replaced:
                self._remove(entry)
        open_partition = self._open
        partition = open_partition.partition
        if end < self._last_end:
            self._take_late(end, batch, window)
            return
        self._last_end = end
        if not partition.ends:
            self._due = min(self._due, end + 1)
        partition.add(end, batch)
        least = open_partition.least
        if len(batch.keys) > _SMALL:
            self._enter(entries_of(batch.take(batch.scores >= least), end))
        elif max(batch.scores.tolist(), default=-inf) >= least:
            self._enter([entry for entry in entries_of(batch, end) if entry[0] >= least])
        if len(partition.ends) >= open_partition.full:
            self._close_unit(window)

    def _enter(self, new: list[Entry]) -> None:
        """Insert new objects into P_m^k, and those that are good enough into the answer."""
        k, open_partition, answer = self.config.k, self._open, self._answer
        best = open_partition.best
        if len(new) <= _FEW:
            for entry in new:
                insort(best, entry)
                if len(answer) < k or entry > answer[0]:
                    insort(answer, entry)
                    self._soonest = min(self._soonest, entry[3])
                    self._is_changed = True
        else:
            best += new
            best.sort()
            if len(answer) == k:
                new = [entry for entry in new if entry > answer[0]]
            if new:
                answer += new
                answer.sort()
                self._soonest = min(self._soonest, new[0][3])
                self._is_changed = True
        del best[:-k], answer[:-k]
        open_partition.set_least()

    def _close_unit(self, window: int) -> None:
        """Decide whether a full unit belongs to the open partition or begins the next one."""
        config, open_partition = self.config, self._open
        if config.partitioning == "equal":
            self._complete(open_partition.completed(), window)
            self._start(Partition())
            return
        if open_partition.unit:
            before = [e for e in self._candidates.entries if e[3] >= window]
            is_long = len(open_partition.partition.ends) > longest(config.slides, config.k)
            if is_long or not is_proper(open_partition.best, before, config.k):
                partition, unit = open_partition.without_unit()
                self._complete(partition, window)
                self._start(unit)
                open_partition = self._open
        if config.partitioning == "enhanced":
            open_partition.label(self._rearrivals.latest)
        open_partition.start_unit(self._slides())

    def _cut(self, window: int) -> None:
        """Close the open partition as it is."""
        if self.config.partitioning == "enhanced":
            self._open.label(self._rearrivals.latest)
        self._complete(self._open.completed(), window)
        self._start(Partition())

    def _complete(self, partition: Partition, window: int) -> None:
        """Merge the best of a partition into C, and update the group dominance numbers."""
        best = partition.best
        for earlier in self._partitions:
            if earlier.border is not None:
                earlier.rho += len(best) - bisect_right(best, earlier.border)
        self._candidates.refine(best, window)
        self._partitions.append(partition)

    def pruning(self, partition: Partition) -> tuple[int, Entry | None]:
        """Return the group dominance number rho of a partition, and F_theta if rho < k."""
        k, border, best = self.config.k, partition.border, self._open.best
        if border is None:
            return k, None
        rho = partition.rho + len(best) - bisect_right(best, border)
        if rho >= k:
            return rho, None
        later = sorted(self._candidates.later_than(partition.last) + best)
        return rho, later[-k] if len(later) >= k else None

    def _slide_out(self, window: int) -> None:
        """Do the work that is due at a window: remove P_0, or form M_0 or M_1."""
        while self._partitions and self._partitions[0].last < window:
            self._rearrivals.forget(self._partitions.popleft(), window)
            self._meaningful = None
        last = self._open.partition
        if not self._partitions and last.ends and last.first < window:
            self._cut(window)
        if self._partitions and self._partitions[0].first < window:
            self._form(self._partitions[0], window)
            self._form_next(window)
        self._set_due()

    def _form(self, front: Partition, window: int) -> None:
        """Complete M_0, as far as it is needed at a window."""
        k, (rho, theta) = self.config.k, self.pruning(front)
        if self._meaningful is None:
            meaningful = self._next_meaningful
            if meaningful is None or meaningful.partition is not front:
                meaningful = MeaningfulSet(front, k - rho, k)
            self._meaningful, self._next_meaningful = meaningful, None
            self._next_step = NEVER_EXPIRES
            meaningful.form(len(front), theta, self._rearrivals.latest)
        if rho < k:
            self._meaningful.segment(window, theta, self._rearrivals.latest)
        else:
            self._meaningful.skip()

    def _form_next(self, window: int) -> None:
        """Form a part of M_1 while P_0 slides out."""
        if len(self._partitions) < 2 or window < self._next_step < NEVER_EXPIRES:
            return
        k, front, following = self.config.k, self._partitions[0], self._partitions[1]
        rho, theta = self.pruning(following)
        if self._next_meaningful is None or rho >= k:
            self._next_meaningful = MeaningfulSet(following, k - rho, k)
        count = max(_LEAST, -(-len(following) // _STEPS))
        self._next_meaningful.form(count, theta, self._rearrivals.latest)
        step = max(1, (front.last - front.first) // _STEPS)
        self._next_step = NEVER_EXPIRES if self._next_meaningful.is_complete else window + step

    def _set_due(self) -> None:
        """Set the next window at which partitions need work."""
        last = self._open.partition
        if not self._partitions:
            self._due = last.first + 1 if last.ends else NEVER_EXPIRES
        elif self._meaningful is None:
            self._due = self._partitions[0].first + 1
        else:
            self._due = min(self._partitions[0].last + 1, self._meaningful.due, self._next_step)

    def _expire(self, window: int) -> None:
        """Remove objects from the answer that expire before a window, and refill it."""
        answer, k = self._answer, self.config.k
        was_full, bar = len(answer) == k, answer[0]
        for entry in [entry for entry in answer if entry[3] < window]:
            self._candidates.discard(entry)
            del answer[bisect_left(answer, entry)]
        if was_full and len(answer) < k:
            answer[:0] = self._below(bar, k - len(answer), window)
        self._soonest = min([entry[3] for entry in answer], default=NEVER_EXPIRES)
        self._is_changed = True

    def _below(self, bar: Entry, count: int, window: int) -> list[Entry]:
        """Return the `count` best objects below an entry, in ascending rank."""
        best, meaningful = self._open.best, self._meaningful
        place = bisect_left(best, bar)
        entries = self._candidates.below(bar, count, window) + best[max(0, place - count) : place]
        entries.sort()
        del entries[:-count]
        if meaningful is not None:
            for top in meaningful.move_best(entries, count, window, self._rearrivals.latest):
                self._candidates.add(top)
        return entries

    def _remove(self, entry: Entry) -> None:
        """Remove an object whose key has arrived again."""
        self._open.remove(entry)
        self._candidates.remove(entry)
        for earlier in self._partitions:
            if earlier.border is not None and earlier.border < entry and earlier.rho:
                earlier.rho -= 1  # it may not have been counted there; too small a rho is safe
        place = bisect_left(self._answer, entry)
        if place < len(self._answer) and self._answer[place] == entry:
            del self._answer[place]

    def _take_late(self, end: int, batch: Arrivals, window: int) -> None:
        """Add a late pane, which ends sooner than one before it."""
        stored = [partition for partition in self._stored() if partition.ends]
        place = max((i for i, p in enumerate(stored) if p.first <= end), default=0)
        objects, ends = stored[place].objects()
        ends = np.concatenate((ends, np.full(len(batch.keys), end)))
        stored[place] = Partition.of(concatenated_arrivals([objects, batch]), ends)
        self._had_late = True
        self._rebuild(stored, window)

    def _rebuild(self, stored: list[Partition], window: int) -> None:
        """Rebuild everything from the objects of partitions; the last becomes the open one."""
        latest, self._due, self._next_step = self._rearrivals.latest, NEVER_EXPIRES, NEVER_EXPIRES
        self._candidates = CandidateSet(self.config.k)
        self._meaningful = self._next_meaningful = None
        self._partitions.clear()
        self._start(Partition())
        live = [Partition.of(*partition.live(window, latest)) for partition in stored]
        self._last_end = max((partition.last for partition in live if partition.ends), default=-1)
        for partition in live:
            if self._open.partition.ends:
                self._cut(window)
            self._start(partition)
        entries = sorted(e for one in live for e in one.best_of(self.config.k, latest))
        self._answer = entries[-self.config.k :]
        self._soonest = min((entry[3] for entry in self._answer), default=NEVER_EXPIRES)
        self._is_changed = True
        self._set_due()

    def state(self) -> StateData:
        latest, window = self._rearrivals.latest, self._buffer.closed + 1
        stored = [partition.state(window, latest) for partition in self._stored()]
        content = {"buffer": self._buffer.state(), "partitions": stored}
        return with_header(
            "Sap", asdict(self.config), {**content, "largest": self._rearrivals.largest}
        )

    @classmethod
    def restored(cls, config: SapConfig, state: StateData) -> Sap:
        """Restore an operator from a saved state."""
        check_header(state, "Sap", asdict(config))
        operator = cls(config)
        operator._buffer.restore(state["buffer"])
        operator._rearrivals.largest = state["largest"]
        stored = [Partition.restored(partition) for partition in state["partitions"]]
        operator._rebuild(stored, operator._buffer.closed + 1)
        return operator

    def _check(self) -> None:
        """Assert the invariants of SAP after a window has closed."""
        check_sap(self)
