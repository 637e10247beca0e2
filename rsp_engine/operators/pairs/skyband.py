"""The K-skyband of the pairs of a window, maintained as objects arrive and expire.

A pair is in it unless K pairs are both better and as young: these are better in every window that
holds the pair. So the k best pairs of the last n objects are in it for every k up to K and every n.

A new object is scored with the whole window, and one comparison with the K-staircase selects the
pairs that may be in the skyband, which are few. They wait, and after some arrivals, or when the
skyband is read, Algorithm 4 merges them. Until then the previous staircase remains in use. It stays
correct, because more pairs only lower it, and expired pairs affect only its expired steps.

A query reads the pairs best first, and takes the first k of its window: the linear algorithm of the
paper. Its priority search tree, and answers maintained from window to window, take longer than one
comparison of arrays in all skybands up to some thousand pairs; they are baselines in `benchmarks/`.

>>> def distance(columns, row):
...     return np.abs(columns[0] - row[0])
>>> skyband = PairSkyband(SkybandConfig(1), 1, distance)
>>> for value in (1.0, 5.0, 2.0, 9.0):
...     skyband.arrive([value])
>>> pairs = skyband.pairs()
>>> list(zip(pairs.scores.tolist(), pairs.older.tolist(), pairs.newer.tolist()))
[(1.0, 0, 2), (3.0, 1, 2), (7.0, 2, 3)]

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section V.A and Algorithm 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.pairs.objects import LastObjects
from rsp_engine.operators.pairs.pairs import Pairs, as_pairs, best_pairs_first, concatenated_pairs
from rsp_engine.operators.pairs.staircase import Staircase, update_skyband_and_staircase

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.pairs.threshold_algorithm import SortedLists

__all__ = ["PairScore", "PairSkyband", "SkybandConfig"]

PairScore = Callable[["Floats", "Floats"], "Floats"]
"""The scores of an object (a row) with others (columns): smaller is better, NaN for no pair.

The score of two objects must not depend on which of them is the row.
"""

_NO_PAIRS = as_pairs([], [], [])
_MANY = 4096  # waiting pairs; beyond this, a new staircase saves more than the merge costs


@dataclass(frozen=True, slots=True)
class SkybandConfig:
    """K, and the number of arrivals after which waiting pairs are merged."""

    k: int
    every: int = 24

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k must be at least 1")
        if self.every < 1:
            raise ValueError("the skyband must be brought up to date after at least 1 arrival")


class PairSkyband:
    """The K-skyband. Time per object: O(N). Memory: O(N) objects and O(K log(N / K)) pairs.

    With sorted `lists`, only the objects that the threshold algorithm cannot exclude are scored.
    """

    def __init__(
        self, config: SkybandConfig, width: int, score: PairScore, lists: SortedLists | None = None
    ) -> None:
        self.config = config
        self.considered = 0
        """The number of pairs scored so far."""
        self._score = score
        self._lists = lists
        self._width = width
        self._objects = LastObjects(width, 1)  # the last column is the bound of the staircase
        self._dead: set[int] = set()  # positions of objects that arrived again elsewhere
        self._pairs = _NO_PAIRS
        self._new: list[tuple[Floats, Integers, int]] = []  # scores, older objects, newer one
        self._arrivals = self._waiting = 0

    def __len__(self) -> int:
        return len(self.pairs().scores)

    @property
    def first(self) -> int:
        """The position of the oldest object."""
        return self._objects.first

    @property
    def end(self) -> int:
        """The position after the newest object."""
        return self._objects.end

    def arrive(self, row: Floats | list[float]) -> None:
        """Add a new object (Algorithm 3)."""
        row = np.asarray(row, dtype=np.float64)
        columns = self._objects.columns
        if self._lists is None:
            self._consider(columns[:-1], row, columns[-1], None)
        else:
            positions = self._lists.seen(columns[:-1], row, columns[-1], self.first)
            if positions is None:
                self._consider(columns[:-1], row, columns[-1], None)
            elif len(positions):
                subset = self._objects.rows(positions)
                self._consider(subset[:-1], row, subset[-1], positions)
        self._append(row)

    def _consider(
        self, columns: Floats, row: Floats, bounds: Floats, positions: Integers | None
    ) -> None:
        """Score an object with others, and queue the pairs that the staircase does not dominate."""
        scores = self._score(columns, row)
        self.considered += len(scores)
        [places] = (scores <= bounds).nonzero()
        if positions is None:
            older = places + self.first
        else:
            older, distinct = np.unique(positions[places], return_index=True)
            places = places[distinct]
        if count := len(places):
            self._new.append((scores[places], older, self.end))
            self._waiting += count

    def _append(self, row: Floats) -> None:
        self._objects.append(row)
        self._arrivals += 1
        if self._arrivals >= self.config.every or self._waiting > _MANY:
            self.settle()

    def insert(self, position: int, row: Floats | list[float]) -> None:
        """Insert a late object: those from this position on are newer, and move by one.

        No pair that was excluded returns, because the order of the other objects is unchanged.
        Time: O(N).
        """
        if position >= self.end:
            self.arrive(row)
            return
        position = max(position, self.first)
        self.settle()
        row = np.asarray(row, dtype=np.float64)
        columns = self._objects.columns
        place = position - self.first
        bounds = columns[-1].copy()
        # From here on the new object is the older one of a pair, so its own bound applies: that of
        # the next live position, since the bound of a dead one is NaN.
        alive = np.flatnonzero(~np.isnan(bounds[place:]))
        bound = bounds[place + alive[0]] if len(alive) else np.inf
        bounds[place:] = np.minimum(bounds[place:], bound)
        scores = self._score(columns[:-1], row)
        self.considered += len(scores)
        places = np.flatnonzero(scores <= bounds)
        others = places + self.first
        others += others >= position
        self._pairs = self._pairs.moved(position)
        older, newer = np.minimum(others, position), np.maximum(others, position)
        late = Pairs(scores[places], older, newer)
        self._dead = {dead + (dead >= position) for dead in self._dead}
        self._objects.insert(position, row)
        self._objects.columns[-1, place] = bound
        if self._lists is not None:
            self._lists.forget()
        self._update([self._pairs, late])

    def renew(self, position: int, to: int | None = None) -> None:
        """Let an object arrive again, as the newest or at another, later position.

        Each of its pairs keeps its score and expires no sooner, so the pairs that these dominated
        stay dominated.
        """
        place = position - self.first
        row = self._objects.columns[:-1, place].copy()
        self._pairs = self._pairs.without(position)
        self._new = [
            (scores[older != position], older[older != position], newer)
            for scores, older, newer in self._new
            if newer != position
        ]
        self._objects.columns[-1, place] = np.nan  # a bound that allows no pair
        self._dead.add(position)
        self.insert(self.end if to is None else to, row)

    def expire(self, first: int) -> None:
        """Remove the objects before a position."""
        self._objects.expire(first)

    def settle(self) -> None:
        """Merge waiting pairs into skyband and staircase (Algorithm 4)."""
        if not self._arrivals and not self._new and not self._has_expired_pairs():
            return
        self._update([self._pairs, *self._waiting_pairs()])

    def _waiting_pairs(self) -> Iterator[Pairs]:
        if self._new:
            scores, older, newer = zip(*self._new, strict=True)
            counts = list(map(len, older))
            yield Pairs(np.concatenate(scores), np.concatenate(older), np.repeat(newer, counts))

    def _update(self, parts: list[Pairs]) -> None:
        candidates = best_pairs_first(concatenated_pairs(parts).since(self.first))
        kept, staircase = update_skyband_and_staircase(candidates, self.config.k)
        self._pairs = candidates.take(kept)
        self._new.clear()
        self._arrivals = self._waiting = 0
        self._set_bounds(staircase)

    def _has_expired_pairs(self) -> bool:
        return bool(len(self._pairs.older)) and int(self._pairs.older.min()) < self.first

    def _set_bounds(self, staircase: Staircase) -> None:
        bounds = self._objects.columns[-1]
        bounds[:] = staircase.bounds(self.first, self.end)
        self._dead = {position for position in self._dead if position >= self.first}
        for position in self._dead:
            bounds[position - self.first] = np.nan

    def pairs(self) -> Pairs:
        """Return the pairs of the K-skyband, best first."""
        self.settle()
        return self._pairs

    def best(self, k: int, since: int) -> Pairs:
        """Return the k best pairs of the objects from a position on, best first.

        Time: O(pairs), in one comparison of arrays.
        """
        if k > self.config.k:
            raise ValueError(f"a {self.config.k}-skyband does not hold the {k} best pairs")
        pairs = self.pairs()
        return pairs.take(np.flatnonzero(pairs.older >= since)[:k])

    def staircase(self) -> Staircase:
        """Return the K-staircase."""
        return update_skyband_and_staircase(self.pairs(), self.config.k)[1]

    def rewrite(self, column: int, values: Floats) -> None:
        """Replace a column by equivalent values, which must not change any score."""
        self._objects.columns[column] = values

    def state(self) -> StateData:
        """Return the state as plain data."""
        pairs = self.pairs()
        return with_header(
            "KSkyband",
            asdict(self.config),
            {
                "first": self.first,
                "columns": self._objects.columns[:-1].tolist(),
                "dead": sorted(self._dead),
                "pairs": [values.tolist() for values in pairs],
            },
        )

    @classmethod
    def restored(
        cls,
        config: SkybandConfig,
        score: PairScore,
        state: StateData,
        lists: SortedLists | None = None,
    ) -> PairSkyband:
        """Return a skyband restored from a state."""
        check_header(state, "KSkyband", asdict(config))
        columns = np.array(state["columns"], dtype=np.float64)
        skyband = cls(config, len(columns), score, lists)
        skyband._objects.restore(state["first"], columns)
        skyband._dead = set(state["dead"])
        skyband._pairs = as_pairs(*state["pairs"])
        skyband._set_bounds(update_skyband_and_staircase(skyband._pairs, config.k)[1])
        return skyband

    def _check(self) -> None:
        """Assert the invariants of the skyband."""
        pairs = self.pairs()
        assert (pairs.scores[1:] >= pairs.scores[:-1]).all(), "best first"  # noqa: S101
        assert (pairs.older < pairs.newer).all(), "the older object arrived first"  # noqa: S101
        assert (pairs.older >= self.first).all(), "no pair has expired"  # noqa: S101
        assert (pairs.newer < self.end).all(), "every object has arrived"  # noqa: S101
        assert not self._dead & {*pairs.older.tolist(), *pairs.newer.tolist()}, "all live"  # noqa: S101
        positions = [tuple(map(int, both)) for both in zip(pairs.older, pairs.newer, strict=True)]
        assert len(set(positions)) == len(positions), "no pair occurs twice"  # noqa: S101
        _, counts = np.unique(pairs.older, return_counts=True)
        assert (counts <= self.config.k).all(), "at most K pairs of equal age"  # noqa: S101
        for place, older in enumerate(pairs.older.tolist()):
            better = int(np.count_nonzero(pairs.older[:place] >= older))
            assert better < self.config.k, "no pair is dominated by K others"  # noqa: S101
        bounds = self._objects.columns[-1]
        alive = bounds[~np.isnan(bounds)]
        assert (alive[1:] >= alive[:-1]).all(), "the staircase rises"  # noqa: S101
