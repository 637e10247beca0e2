"""The replica: a local copy of remote data, with the freshness of each key.

(AcquaTop, section 3.2 and Algorithm 5: `UpdateReplica` compares the fetched values with those in
the replica, and returns the changed keys.)

A full replica is loaded from a snapshot. A bounded replica holds the `capacity` most recently used
keys. A dropped key is unknown: it is a cold miss when it is needed again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import Cache, LRUCache

from rsp_engine.errors import StateError
from rsp_engine.model.blocks import RowBlocks, rows_of
from rsp_engine.model.candidates import Entries
from rsp_engine.model.terms.ntriples import read_terms
from rsp_engine.replica.endpoints.endpoint import FetchResult
from rsp_engine.replica.store.estimator import (
    FOREVER,
    Estimation,
    Estimator,
    LearnedIntervals,
    estimator,
)
from rsp_engine.replica.store.keys import Keys
from rsp_engine.replica.store.terms import solution_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping, Sequence

    from rsp_engine.model.arrays import Booleans, Integers
    from rsp_engine.replica.pattern import RemotePattern, RemoteSolution

__all__ = ["NEVER", "FreshnessTable", "Replica", "ReplicaConfig"]

VERSION = 2
"""The version of the saved state."""
NEVER = -FOREVER
"""The time of an event that did not happen: before every instant, without overflow in sums."""

_TIMES = ("last_refresh", "last_change", "best_before", "interval")


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """The configuration of a replica: its SERVICE clause, and `capacity` if it is bounded."""

    pattern: RemotePattern
    estimation: Estimation = field(default_factory=LearnedIntervals)
    capacity: int | None = None

    def __post_init__(self) -> None:
        if self.capacity is not None and self.capacity < 1:
            raise ValueError("a replica must have room for at least 1 key")


class Replica:
    """Maps keys to remote solutions. Keys are terms in fetched answers, and numbers elsewhere.

    An unknown (cold) key has no solutions. A known key may have none either: then it has none at
    the remote side.
    """

    def __init__(self, config: ReplicaConfig, keys: Keys | None = None) -> None:
        self.config = config
        self.keys = Keys() if keys is None else keys
        self._estimator: Estimator = estimator(config.estimation)
        self._freshness = FreshnessTable()
        self._values: MutableMapping[int, tuple[RemoteSolution, ...]]
        self._values = {} if config.capacity is None else LRUCache(config.capacity)
        self._blocks = RowBlocks()
        self._dropped: set[int] = set()
        self._empty: set[int] = set()  # known keys without solutions

    def __len__(self) -> int:
        return len(self._values)

    def is_known(self, numbers: Integers) -> Booleans:
        """Return which keys are known; the others are cold."""
        self._freshness.grow(self.keys.size)
        return self._freshness.is_known[numbers]

    def entries(self, numbers: Integers) -> Entries:
        """Return the entries of keys, the input of policies, in the order of the numbers."""
        self._freshness.grow(self.keys.size)
        return self._freshness.entries(numbers)

    def values(self, numbers: Iterable[int] | Integers) -> list[tuple[RemoteSolution, ...]]:
        """Return the solutions of keys. In a bounded replica, this counts as use."""
        return [self._values.get(int(number), ()) for number in numbers]

    def look(self, numbers: Iterable[int] | Integers) -> list[tuple[RemoteSolution, ...]]:
        """Return the solutions of keys, without counting it as use."""
        numbers = numbers.tolist() if isinstance(numbers, np.ndarray) else numbers
        values: Any = self._values
        if not isinstance(values, Cache):
            return [*map(values.get, numbers, repeat(()))]
        # Unlike LRUCache, Cache.__getitem__ does not move the key to the end.
        return [Cache.__getitem__(values, n) if n in values else () for n in numbers]

    def known_keys(self) -> Integers:
        """Return the known keys, most recently used last, without counting it as use."""
        numbers = self._in_order_of_use()
        return np.fromiter(numbers, dtype=np.int64, count=len(numbers))

    def load(self, snapshot: FetchResult, now: int) -> Integers:
        """Apply a snapshot; return the keys whose solutions have changed.

        A snapshot without faults is the whole dataset: keys missing from it have no solutions.
        """
        answers = dict(snapshot.answers)
        if not snapshot.faults:
            answers |= {key: () for key in self.keys.of(self._values) if key not in answers}
        return self.apply(FetchResult(answers), now)

    def apply(self, fetched: FetchResult, now: int) -> Integers:
        """Apply fetched answers; return the changed keys, in order of their numbers.

        A cold key counts as changed, even if it turns out to have no solutions, and so does a
        known key that is dropped to make room. An answer older than the last refresh is ignored.
        """
        numbers = self.keys.numbers(fetched.answers)
        self._freshness.grow(self.keys.size)
        in_time = self._freshness.last_refresh[numbers] <= now
        answers = dict(zip(numbers.tolist(), fetched.answers.values(), strict=True))
        if not in_time.all():
            answers = dict(compress(answers.items(), in_time.tolist()))
        self._note_empty(answers)
        if not self._values and self.config.capacity is None:  # the first snapshot
            have_any = np.array([*map(bool, answers.values())], dtype=np.bool_)
            self._renew(numbers[in_time], have_any, now)
            self._values.update(answers)
            return np.sort(numbers[in_time])
        olds = [*map(self._values.get, answers)]
        differ = [
            bool(new) if old is None else not _are_equal(old, new)
            for old, new in zip(olds, answers.values(), strict=True)
        ]
        self._renew(numbers[in_time], np.array(differ, dtype=np.bool_), now)
        is_new = [differs or old is None for differs, old in zip(differ, olds, strict=True)]
        # Equal solutions keep their order, and their identity: callers compare with `is`.
        if self.config.capacity is None:
            self._values.update(compress(answers.items(), is_new))
            changed = [*compress(answers, is_new)]
        else:
            changed = self._put_within_capacity(answers, olds, is_new)
        return np.array(sorted(changed), dtype=np.int64)

    def _note_empty(self, answers: Mapping[int, tuple[RemoteSolution, ...]]) -> None:
        self._empty.difference_update(answers)
        self._empty.update([number for number, solutions in answers.items() if not solutions])

    def _put_within_capacity(
        self,
        answers: Mapping[int, tuple[RemoteSolution, ...]],
        olds: Sequence[tuple[RemoteSolution, ...] | None],
        is_new: Sequence[bool],
    ) -> list[int]:
        """Store answers, or keep the old ones; return the changed keys, with those dropped."""
        before = dict(zip(answers, olds, strict=True))
        changed = dict.fromkeys(answers, False)
        for (number, new), differs in zip(answers.items(), is_new, strict=True):
            for dropped, solutions in self._put(number, new if differs else before[number] or ()):
                changed[dropped] = before.get(dropped, solutions) is not None
            changed[number] = differs
        self._forget_dropped(changed)
        return [number for number, has_changed in changed.items() if has_changed]

    def confirm(self, numbers: Integers, now: int) -> None:
        """Record that keys are unchanged, by the change signal: the same as an equal fetch."""
        self._freshness.grow(self.keys.size)
        known = numbers[self._freshness.is_known[numbers]]
        known = known[self._freshness.last_refresh[known] <= now]
        self._renew(known, np.zeros(len(known), dtype=np.bool_), now)

    def doubt(self, numbers: Integers, now: int) -> None:
        """Record that keys have changed, by the change signal: they are stale."""
        self._freshness.grow(self.keys.size)
        self._freshness.doubt(numbers, now)
        self._blocks.touch(numbers)

    def _renew(self, numbers: Integers, differ: Booleans, now: int) -> None:
        """Record a refresh, and learn change intervals from it."""
        freshness = self._freshness
        elapsed = now - freshness.last_refresh[numbers]
        # The first refresh of a key, or another at the same instant, says nothing about its rate.
        is_repeat = freshness.is_known[numbers] & (elapsed > 0)
        self._estimator.observe(numbers[is_repeat], elapsed[is_repeat], differ[is_repeat])
        freshness.renew(numbers, differ, self._estimator.intervals(numbers), now)
        self._blocks.touch(numbers)

    def _put(
        self, number: int, solutions: tuple[RemoteSolution, ...]
    ) -> list[tuple[int, tuple[RemoteSolution, ...]]]:
        """Store the solutions of a key; return the key dropped to make room, if any."""
        is_full = number not in self._values and len(self._values) == self.config.capacity
        dropped = [self._values.popitem()] if is_full else []
        self._values[number] = solutions
        return dropped

    def _forget_dropped(self, numbers: Iterable[int]) -> None:
        gone = np.array([n for n in numbers if n not in self._values], dtype=np.int64)
        self._freshness.forget(gone)
        self._estimator.forget(gone)
        self._blocks.touch(gone)
        self._dropped.update(gone.tolist())
        self._empty.difference_update(gone.tolist())

    def drop_empty(self, numbers: Integers) -> None:
        """Drop those of these keys that have no solutions."""
        empty = self._empty.intersection(numbers.tolist()) if self._empty else set()
        for number in empty:
            del self._values[number]
        self._forget_dropped(empty)

    def dropped(self) -> set[int]:
        """Return the keys dropped since the last call, except those known again."""
        numbers = {number for number in self._dropped if number not in self._values}
        self._dropped = set()
        return numbers

    def state(self) -> dict[str, Any]:
        """Return the replica as plain data, with terms as N-Triples."""
        is_bounded = self.config.capacity is not None
        values = self._in_order_of_use() if is_bounded else self._values
        numbers = np.fromiter(values, dtype=np.int64, count=len(values))
        self._freshness.grow(self.keys.size)
        return {
            "version": VERSION,
            "config": _plain(self.config),
            "keys": self.keys.state(),
            "size": len(values),
            "used": numbers.tolist() if is_bounded else None,
            "rows": self._blocks.state(numbers, lambda some: self._rows(some, values)),
            "shared": self._estimator.shared(),
        }

    def _rows(
        self, numbers: list[int], values: Mapping[int, tuple[RemoteSolution, ...]]
    ) -> list[list[Any]]:
        """Return a row for each key: number, solutions, freshness, and change observations."""
        some = np.array(numbers, dtype=np.int64)
        rows = zip(numbers, self._freshness.rows(some), self._estimator.rows(some), strict=True)
        pattern = self.config.pattern
        return [
            [number, [_write_solution(s, pattern) for s in values[number]], freshness, learned]
            for number, freshness, learned in rows
        ]

    def _in_order_of_use(self) -> dict[int, tuple[RemoteSolution, ...]]:
        """Return the values, most recently used key last; by number if the replica is unbounded."""
        if self.config.capacity is None:
            return {number: self._values[number] for number in sorted(self._values)}
        values = dict(self._values.popitem() for _ in range(len(self._values)))
        self._values.update(values)
        return values

    @classmethod
    def restored(cls, config: ReplicaConfig, state: Mapping[str, Any]) -> Replica:
        """Return the replica of a saved state; refuse another version or configuration."""
        replica = cls(config)
        replica.restore(state)
        return replica

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state into an empty replica."""
        _refuse_other(self.config, state)
        try:
            self.keys.restore(state["keys"])
            self._restore_rows(state)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StateError(f"the saved replica is damaged: {error}") from None

    def _restore_rows(self, state: Mapping[str, Any]) -> None:
        rows = rows_of(state["rows"], state["size"])
        columns = zip(*rows, strict=True) if rows else ((), (), (), ())
        numbers, solutions, freshness, learned = (list(column) for column in columns)
        restored = np.array(numbers, dtype=np.int64)
        if not np.isin(restored, self.keys.every()).all():
            raise ValueError("a number has no key")
        self._freshness.grow(self.keys.size)
        self._freshness.restore(restored, freshness)
        self._estimator.restore(restored, learned, state["shared"])
        used = numbers if (order := state["used"]) is None else order
        values = dict(zip(numbers, self._solutions(solutions), strict=True))
        if len(values) != len(used):
            raise ValueError("a key was never used")
        if self.config.capacity is not None and len(values) > self.config.capacity:
            raise ValueError("it holds more keys than it has room for")
        self._values.update((number, values[number]) for number in used)
        self._note_empty(values)

    def _solutions(self, saved: Sequence[Sequence[Mapping[str, str | None]]]) -> list[Any]:
        """Read the solutions of each key."""
        pattern, names = self.config.pattern, set(self.config.pattern.variables)
        texts: list[list[Any]] = [
            # The common case needs no copy: every variable is there, and bound.
            [s if names <= s.keys() and None not in s.values() else _bound(s, pattern) for s in key]
            for key in saved
        ]
        terms = iter(read_terms([text for key in texts for s in key for text in s.values()]))
        return [tuple([dict(zip(s, terms, strict=False)) for s in key]) for key in texts]


def _write_solution(solution: RemoteSolution, pattern: RemotePattern) -> dict[str, str | None]:
    """Write a solution. Unbound variables are None, so that damage is detected."""
    return {**dict.fromkeys(pattern.variables), **solution_text(solution)}


def _bound(solution: Mapping[str, str | None], pattern: RemotePattern) -> dict[str, str]:
    """Return the bound variables of a saved solution, with terms as text."""
    for name in pattern.variables:
        if name not in solution:
            raise ValueError(f"a solution has no {name}")
    return {name: text for name, text in solution.items() if text is not None}


def _are_equal(old: tuple[RemoteSolution, ...], new: tuple[RemoteSolution, ...]) -> bool:
    """Return whether two answers are equal as bags of solutions."""
    if len(old) != len(new) or len(old) < 2:
        return old == new
    return old == new or _in_order(old) == _in_order(new)


def _in_order(solutions: tuple[RemoteSolution, ...]) -> list[list[tuple[str, str]]]:
    return sorted([*solution_text(solution).items()] for solution in solutions)


def _plain(config: ReplicaConfig) -> dict[str, Any]:
    pattern = {field: _listed(value) for field, value in asdict(config.pattern).items()}
    return {
        **pattern,
        "estimation": {"kind": config.estimation.tag, **asdict(config.estimation)},
        "capacity": config.capacity,
    }


def _listed(value: str | tuple[str, ...]) -> str | list[str]:
    return list(value) if isinstance(value, tuple) else value


def _refuse_other(config: ReplicaConfig, state: Mapping[str, Any]) -> None:
    version = state.get("version")
    if version != VERSION:
        raise StateError(f"the saved replica is of version {version}, not {VERSION}")
    saved = state.get("config")
    known = saved if isinstance(saved, dict) else {}
    for name, value in _plain(config).items():
        if name not in known:
            raise StateError(f"the saved replica is damaged: it has no {name}")
        if known[name] != value:
            raise StateError(
                f"the saved replica has another {name}: {known[name]!r}, not {value!r}",
                "start without the saved state, or run the query that saved it",
            )


class FreshnessTable:
    """Refresh and change times of keys, which are dense numbers.

    An unknown key has `NEVER` as its times, and a change interval of 1. The first refresh of a key
    counts as its last change.
    """

    def __init__(self) -> None:
        self.is_known: Booleans = np.zeros(0, dtype=np.bool_)
        self.last_refresh: Integers = np.zeros(0, dtype=np.int64)
        self.last_change: Integers = np.zeros(0, dtype=np.int64)
        self.best_before: Integers = np.zeros(0, dtype=np.int64)
        self.interval: Integers = np.zeros(0, dtype=np.int64)

    def grow(self, size: int) -> None:
        """Make room for the keys below `size`. Arrays double: amortised O(1) per key."""
        old = len(self.is_known)
        if size <= old:
            return
        more = max(size - old, old)
        self.is_known = np.pad(self.is_known, (0, more))
        for name in _TIMES:
            setattr(self, name, np.pad(getattr(self, name), (0, more)))
        self.forget(np.arange(old, old + more))

    def entries(self, numbers: Integers) -> Entries:
        """Return the entries of keys, the input of policies."""
        return Entries(*(getattr(self, name).take(numbers) for name in _TIMES))

    def renew(self, numbers: Integers, changed: Booleans, interval: Integers, now: int) -> None:
        """Record a refresh of keys, and whether each has changed."""
        first_or_changed = numbers[changed | ~self.is_known[numbers]]
        self.last_change[first_or_changed] = now
        self.is_known[numbers] = True
        self.last_refresh[numbers] = now
        self.interval[numbers] = interval
        self.best_before[numbers] = now + interval

    def doubt(self, numbers: Integers, now: int) -> None:
        """Mark keys as stale, whatever their best-before time was."""
        self.best_before[numbers] = np.minimum(self.best_before[numbers], now)

    def forget(self, numbers: Integers) -> None:
        """Reset keys to unknown."""
        self.is_known[numbers] = False
        self.last_refresh[numbers] = self.last_change[numbers] = NEVER
        self.best_before[numbers] = NEVER
        self.interval[numbers] = 1

    def rows(self, numbers: Integers) -> list[list[int]]:
        """Return the attributes of known keys as plain data, a row for each."""
        return np.array([getattr(self, name)[numbers] for name in _TIMES]).T.tolist()  # type: ignore[no-any-return]

    def restore(self, numbers: Integers, rows: Sequence[Sequence[int]]) -> None:
        """Restore the saved rows of these keys."""
        self.is_known[numbers] = True
        columns = np.array(rows, dtype=np.int64).reshape(len(numbers), len(_TIMES)).T
        for name, column in zip(_TIMES, columns, strict=True):
            getattr(self, name)[numbers] = column
