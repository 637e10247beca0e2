"""SAP: the window in partitions, of each of which the k best are candidates.

An arrival is compared with the k-th of the partition that is being filled, and most are done with
that. The objects of a window are stored, as the paper wants it, but looked at again only when their
partition slides out and its group dominance number says that they may be needed. The answer is
touched only when an object enters it, or expires.

    P_0 (slides out)   P_1 ... P_{m-1}          P_m (fills)
    [ ... M_0 ... ]    [    ] ... [    ]        [    >
      P_0^k              P_1^k ... P_{m-1}^k      P_m^k        the first m are C

The best of C, of P_m^k and of M_0 are the answer.

>>> from rsp_engine.model.windows import Pane
>>> operator = Sap(SapConfig(k=1, slides=2))
>>> operator.arrive(Pane(0, 1), [1, 2], [10, 20], [5.0, 3.0])
>>> operator.close(0).keys.tolist()
[1]

Decided: W is P_0 to P_{m-1} and the P_m that is being filled (Algorithm 1 counts both ways). P_0^k
is kept in C; what is taken from M_0 joins it there. The text says of Fig 3 that M_0 = {92}, but 92
is in P_0^k. A partition that starts to slide out before it is full is taken as it is.

A key that comes again must have the same score, as in MinTopk. A pane that ends sooner than one
before it, of late arrivals, makes the operator sort its partitions anew.

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
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_arrivals,
    concatenated_arrivals,
)
from rsp_engine.operators.topk.pane_buffer import PaneBuffer
from rsp_engine.operators.topk.rank_tuples import Entry, entries_of, keys_and_scores
from rsp_engine.operators.topk.rearrivals import Rearrivals

if TYPE_CHECKING:
    from rsp_engine.model.windows import Pane

__all__ = ["Sap", "SapConfig"]

_FEW = 8  # new entries that are inserted one by one: more are sorted
_SMALL = 32  # panes up to this size are looked at object by object
_STEPS = 8  # in which M_1 is formed while P_0 slides out
_LEAST = 256  # objects that are looked at in a step


@dataclass(frozen=True, slots=True)
class SapConfig(TopkOperatorConfig):
    """The k best of windows of so many slides.

    `s` is how many objects a slide has, if that is known; otherwise it is looked at.
    """

    slides: int = 1
    s: int | None = None
    partitioning: Partitioning = "enhanced"

    def __post_init__(self) -> None:
        super(SapConfig, self).__post_init__()
        if self.slides < 1 or (self.s is not None and self.s < 1):
            raise ValueError("a window has at least one slide, and a slide one object")


class Sap:
    """Time for an object: O(log k) amortised, mostly O(1). Memory: the window.

    Of these, O(k sqrt(n / max(s, k))) objects are looked at again, if partitions are equal.
    """

    def __init__(self, config: SapConfig) -> None:
        self.config = config
        self._buffer = PaneBuffer(config.k, whole=2 * config.k)
        self._partitions: deque[Partition] = deque()
        self._candidates = CandidateSet(config.k)
        self._meaningful: MeaningfulSet | None = None  # of P_0
        self._forming: MeaningfulSet | None = None  # of P_1
        self._answer: list[Entry] = []  # the worst first
        self._soonest = NEVER_EXPIRES  # nothing of the answer ends sooner
        self._due = NEVER_EXPIRES  # the window at which there is something to do beside arrivals
        self._next_step = NEVER_EXPIRES  # ... for M_1
        self._renewals = Rearrivals()
        self._last_end = -1  # no pane so far ends later
        self._had_late = False  # late arrivals make partitions longer than they should be
        self._start(Partition())
        self._rank()

    def __len__(self) -> int:
        """Return how many objects are candidates or meaningful: those of C, P_m^k and M_0."""
        meaningful = 0 if self._meaningful is None else len(self._meaningful)
        return len(self._candidates) + len(self._filling.best) + meaningful

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(pane, as_arrivals(keys, positions, scores))

    def settle(self, window: int) -> None:
        """Take what has arrived for a window so far, and let go what does not live until it."""
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
        self._keys.flags.writeable = self._scores.flags.writeable = False  # given out again
        self._is_changed = False

    def _start(self, begun: Partition) -> None:
        """Start a partition with what there is of it."""
        self._filling = OpenPartition(self.config.k, begun, self._renewals.latest)
        self._filling.start_unit(self._slides())

    def _slides(self) -> int:
        """Return how many slides a unit has, by what slides hold today."""
        s: float | None = self.config.s
        if s is None:
            stored = self._stored()
            panes = sum(len(partition.ends) for partition in stored)
            s = max(1.0, sum(map(len, stored)) / max(1, panes))
        return slides_of_unit(self.config.slides, s, self.config.k)

    def _stored(self) -> list[Partition]:
        return [*self._partitions, self._filling.partition]

    def _take(self, end: int, batch: Arrivals, window: int) -> None:
        """Take a pane into the partition that is being filled."""
        if not self._renewals.are_new(batch):
            batch, gone = self._renewals.renew(batch, end, window, self._stored())
            for entry in gone:
                self._remove(entry)
        filling = self._filling
        partition = filling.partition
        if end < self._last_end:
            self._take_late(end, batch, window)
            return
        self._last_end = end
        if not partition.ends:
            self._due = min(self._due, end + 1)
        partition.add(end, batch)
        least = filling.least
        if len(batch.keys) > _SMALL:
            self._enter(entries_of(batch.take(batch.scores >= least), end))
        elif max(batch.scores.tolist(), default=-inf) >= least:
            self._enter([entry for entry in entries_of(batch, end) if entry[0] >= least])
        if len(partition.ends) >= filling.full:
            self._close_unit(window)

    def _enter(self, new: list[Entry]) -> None:
        """Take new objects into P_m^k, and those that are good enough into the answer."""
        k, filling, answer = self.config.k, self._filling, self._answer
        best = filling.best
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
        filling.set_least()

    def _close_unit(self, window: int) -> None:
        """Decide whether the unit that is full belongs to the partition or begins another."""
        config, filling = self.config, self._filling
        if config.partitioning == "equal":
            self._complete(filling.completed(), window)
            self._start(Partition())
            return
        if filling.unit:
            before = [e for e in self._candidates.entries if e[3] >= window]
            is_long = len(filling.partition.ends) > longest(config.slides, config.k)
            if is_long or not is_proper(filling.best, before, config.k):
                made, begun = filling.without_unit()
                self._complete(made, window)
                self._start(begun)
                filling = self._filling
        if config.partitioning == "enhanced":
            filling.label(self._renewals.latest)
        filling.start_unit(self._slides())

    def _cut(self, window: int) -> None:
        """Take the partition that is being filled as it is."""
        if self.config.partitioning == "enhanced":
            self._filling.label(self._renewals.latest)
        self._complete(self._filling.completed(), window)
        self._start(Partition())

    def _complete(self, partition: Partition, window: int) -> None:
        """Take the best of a partition into C, and count whom they dominate as a group."""
        best = partition.best
        for earlier in self._partitions:
            if earlier.border is not None:
                earlier.rho += len(best) - bisect_right(best, earlier.border)
        self._candidates.refine(best, window)
        self._partitions.append(partition)

    def pruning(self, partition: Partition) -> tuple[int, Entry | None]:
        """Return the group dominance number of a partition, and F_theta, if they are needed."""
        k, border, best = self.config.k, partition.border, self._filling.best
        if border is None:
            return k, None
        rho = partition.rho + len(best) - bisect_right(best, border)
        if rho >= k:
            return rho, None
        later = sorted(self._candidates.later_than(partition.last) + best)
        return rho, later[-k] if len(later) >= k else None

    def _slide_out(self, window: int) -> None:
        """Do what is due at a window: P_0 is gone, or M_0 or M_1 are needed."""
        while self._partitions and self._partitions[0].last < window:
            self._renewals.forget(self._partitions.popleft(), window)
            self._meaningful = None
        filling = self._filling.partition
        if not self._partitions and filling.ends and filling.first < window:
            self._cut(window)
        if self._partitions and self._partitions[0].first < window:
            self._form(self._partitions[0], window)
            self._form_next(window)
        self._set_due()

    def _form(self, front: Partition, window: int) -> None:
        """Complete M_0, as far as it is needed."""
        k, (rho, theta) = self.config.k, self.pruning(front)
        if self._meaningful is None:
            made = self._forming
            if made is None or made.partition is not front:
                made = MeaningfulSet(front, k - rho, k)
            self._meaningful, self._forming, self._next_step = made, None, NEVER_EXPIRES
            made.form(len(front), theta, self._renewals.latest)
        if rho < k:
            self._meaningful.segment(window, theta, self._renewals.latest)
        else:
            self._meaningful.skip()

    def _form_next(self, window: int) -> None:
        """Form a part of M_1 while P_0 slides out."""
        if len(self._partitions) < 2 or window < self._next_step < NEVER_EXPIRES:
            return
        k, front, following = self.config.k, self._partitions[0], self._partitions[1]
        rho, theta = self.pruning(following)
        if self._forming is None or rho >= k:
            self._forming = MeaningfulSet(following, k - rho, k)
        count = max(_LEAST, -(-len(following) // _STEPS))
        self._forming.form(count, theta, self._renewals.latest)
        step = max(1, (front.last - front.first) // _STEPS)
        self._next_step = NEVER_EXPIRES if self._forming.is_complete else window + step

    def _set_due(self) -> None:
        """Find the next window at which there is something to do."""
        filling = self._filling.partition
        if not self._partitions:
            self._due = filling.first + 1 if filling.ends else NEVER_EXPIRES
        elif self._meaningful is None:
            self._due = self._partitions[0].first + 1
        else:
            self._due = min(self._partitions[0].last + 1, self._meaningful.due, self._next_step)

    def _expire(self, window: int) -> None:
        """Let objects of the answer go that do not live until a window, and find others."""
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
        """Return so many of the best objects below an entry, the worst first."""
        best, meaningful = self._filling.best, self._meaningful
        place = bisect_left(best, bar)
        found = self._candidates.below(bar, count, window) + best[max(0, place - count) : place]
        found.sort()
        del found[:-count]
        if meaningful is not None:
            for top in meaningful.taken(found, count, window, self._renewals.latest):
                self._candidates.add(top)
        return found

    def _remove(self, entry: Entry) -> None:
        """Take an object out that has come again."""
        self._filling.remove(entry)
        self._candidates.remove(entry)
        for earlier in self._partitions:
            if earlier.border is not None and earlier.border < entry and earlier.rho:
                earlier.rho -= 1  # it may not have counted there; to count too few is safe
        place = bisect_left(self._answer, entry)
        if place < len(self._answer) and self._answer[place] == entry:
            del self._answer[place]

    def _take_late(self, end: int, batch: Arrivals, window: int) -> None:
        """Take a pane that ends sooner than one before it."""
        stored = [partition for partition in self._stored() if partition.ends]
        place = max((i for i, p in enumerate(stored) if p.first <= end), default=0)
        found, ends = stored[place].objects()
        ends = np.concatenate((ends, np.full(len(batch.keys), end)))
        stored[place] = Partition.of(concatenated_arrivals([found, batch]), ends)
        self._had_late = True
        self._rebuild(stored, window)

    def _rebuild(self, stored: list[Partition], window: int) -> None:
        """Go on from the objects of partitions alone; the last is being filled."""
        latest, self._due, self._next_step = self._renewals.latest, NEVER_EXPIRES, NEVER_EXPIRES
        self._candidates, self._meaningful, self._forming = CandidateSet(self.config.k), None, None
        self._partitions.clear()
        self._start(Partition())
        live = [Partition.of(*partition.live(window, latest)) for partition in stored]
        self._last_end = max((partition.last for partition in live if partition.ends), default=-1)
        for begun in live:
            if self._filling.partition.ends:
                self._cut(window)
            self._start(begun)
        entries = sorted(e for one in live for e in one.best_of(self.config.k, latest))
        self._answer = entries[-self.config.k :]
        self._soonest = min((entry[3] for entry in self._answer), default=NEVER_EXPIRES)
        self._is_changed = True
        self._set_due()

    def state(self) -> StateData:
        latest, window = self._renewals.latest, self._buffer.closed + 1
        stored = [partition.state(window, latest) for partition in self._stored()]
        content = {"buffer": self._buffer.state(), "partitions": stored}
        return with_header(
            "Sap", asdict(self.config), {**content, "largest": self._renewals.largest}
        )

    @classmethod
    def restored(cls, config: SapConfig, state: StateData) -> Sap:
        """Return an operator that goes on from a state."""
        check_header(state, "Sap", asdict(config))
        made = cls(config)
        made._buffer.restore(state["buffer"])
        made._renewals.largest = state["largest"]
        stored = [Partition.restored(partition) for partition in state["partitions"]]
        made._rebuild(stored, made._buffer.closed + 1)
        return made

    def _check(self) -> None:
        """Assert what always holds after a window has closed."""
        check_sap(self)
