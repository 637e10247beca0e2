"""The replica: the local copy of remote data, with what is known about its age.

(AcquaTop, section 3.2 and Algorithm 5: `UpdateReplica` compares what is fetched with what is held,
and gives back what changed.)

A full replica is loaded from a snapshot. A bounded one holds at most `capacity` keys, those used
last; what it drops it does not know any more, so it is a cold miss when it is needed again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import Cache, LRUCache

from rsp_engine.errors import StateError
from rsp_engine.model.blocks import RowBlocks, rows_of
from rsp_engine.model.terms.ntriples import read_terms
from rsp_engine.replica.endpoints.endpoint import Fetched
from rsp_engine.replica.store.estimator import Estimation, Estimator, LearnedIntervals, estimator
from rsp_engine.replica.store.freshness_table import FreshnessTable
from rsp_engine.replica.store.keys import Keys
from rsp_engine.replica.store.terms import solution_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping, Sequence

    from rsp_engine.model.arrays import Booleans, Integers
    from rsp_engine.model.candidates import Entries
    from rsp_engine.replica.pattern import RemotePattern, RemoteSolution

__all__ = ["Replica", "ReplicaConfig"]

VERSION = 2


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """What is held: the data of a SERVICE clause, of all keys or of `capacity` of them."""

    pattern: RemotePattern
    estimation: Estimation = field(default_factory=LearnedIntervals)
    capacity: int | None = None

    def __post_init__(self) -> None:
        if self.capacity is not None and self.capacity < 1:
            raise ValueError("a replica must have room for at least 1 key")


class Replica:
    """Key -> remote solutions. Keys are terms in what is fetched, and numbers everywhere else.

    A key that is not known has no solutions. One that is known may have none either: then the
    remote side said so.
    """

    def __init__(self, config: ReplicaConfig, keys: Keys | None = None) -> None:
        self.config = config
        self.keys = Keys() if keys is None else keys
        self._estimator: Estimator = estimator(config.estimation)
        self._facts = FreshnessTable()
        self._held: MutableMapping[int, tuple[RemoteSolution, ...]]
        self._held = {} if config.capacity is None else LRUCache(config.capacity)
        self._blocks = RowBlocks()
        self._dropped: set[int] = set()

    def __len__(self) -> int:
        return len(self._held)

    def is_known(self, numbers: Integers) -> Booleans:
        """Tell which keys are held; the others are cold misses."""
        self._facts.grow(self.keys.size)
        return self._facts.is_known[numbers]

    def entries(self, numbers: Integers) -> Entries:
        """Return what policies look at, in the order of the numbers."""
        self._facts.grow(self.keys.size)
        return self._facts.entries(numbers)

    def values(self, numbers: Iterable[int] | Integers) -> list[tuple[RemoteSolution, ...]]:
        """Return the solutions of keys. A bounded replica takes this as use of them."""
        return [self._held.get(int(number), ()) for number in numbers]

    def look(self, numbers: Iterable[int] | Integers) -> list[tuple[RemoteSolution, ...]]:
        """Return the solutions of keys; this is no use of them."""
        held: Any = self._held
        read: Any = Cache.__getitem__ if isinstance(held, Cache) else dict.__getitem__
        return [read(held, int(n)) if int(n) in held else () for n in numbers]

    def holds(self, number: int) -> bool:
        """Tell whether a key is held; this is no use of it."""
        return number in self._held

    def held(self) -> Integers:
        """Return the keys that are held, what was used last at the end; this is no use of them."""
        held = self._in_order_of_use()
        return np.fromiter(held, dtype=np.int64, count=len(held))

    def load(self, snapshot: Fetched, now: int) -> Integers:
        """Take in a snapshot; return the keys whose solutions are others than before.

        A snapshot without faults is the whole dataset: what it does not name is not there.
        """
        answers = dict(snapshot.answers)
        if not snapshot.faults:
            answers |= {key: () for key in self.keys.of(self._held) if key not in answers}
        return self.apply(Fetched(answers), now)

    def apply(self, fetched: Fetched, now: int) -> Integers:
        """Take in answers; return the keys of which something else is known than before, in order.

        A key that was not known is among them, even if it turns out to have no solutions, and so is
        one that was dropped for lack of room. An answer older than what is held is left.
        """
        numbers = self.keys.numbers(fetched.answers)
        self._facts.grow(self.keys.size)
        in_time = self._facts.last_refresh[numbers] <= now
        pairs = zip(numbers.tolist(), fetched.answers.values(), strict=True)
        answers = dict(pair for pair, is_taken in zip(pairs, in_time, strict=True) if is_taken)
        before = {number: self._held.get(number) for number in answers}
        differ = [not _same(before[number] or (), new) for number, new in answers.items()]
        self._renew(numbers[in_time], np.array(differ, dtype=np.bool_), now)
        is_other = dict.fromkeys(answers, False)
        for (number, new), differs in zip(answers.items(), differ, strict=True):
            known = before[number]
            # What is unchanged stays the very same, in its order.
            for dropped, had in self._hold(number, new if differs or known is None else known):
                is_other[dropped] = before.get(dropped, had) is not None
            is_other[number] = differs or known is None
        self._forget_dropped(is_other)
        return np.array(sorted(n for n in is_other if is_other[n]), dtype=np.int64)

    def confirm(self, numbers: Integers, now: int) -> None:
        """Note that keys are told to be as they are held: as good as fetched, and the same."""
        self._facts.grow(self.keys.size)
        known = numbers[self._facts.is_known[numbers]]
        known = known[self._facts.last_refresh[known] <= now]
        self._renew(known, np.zeros(len(known), dtype=np.bool_), now)

    def doubt(self, numbers: Integers, now: int) -> None:
        """Note that keys are told to be others than they are held."""
        self._facts.grow(self.keys.size)
        self._facts.doubt(numbers, now)
        self._blocks.touch(numbers)

    def _renew(self, numbers: Integers, differ: Booleans, now: int) -> None:
        """Note a refresh, and learn from it."""
        facts = self._facts
        elapsed = now - facts.last_refresh[numbers]
        # The first refresh of a key, and a second one at the same instant, tell nothing of rates.
        tells = facts.is_known[numbers] & (elapsed > 0)
        self._estimator.observe(numbers[tells], elapsed[tells], differ[tells])
        facts.renew(numbers, differ, self._estimator.intervals(numbers), now)
        self._blocks.touch(numbers)

    def _hold(
        self, number: int, solutions: tuple[RemoteSolution, ...]
    ) -> list[tuple[int, tuple[RemoteSolution, ...]]]:
        """Hold the solutions of a key; return what was dropped to make room."""
        is_full = number not in self._held and len(self._held) == self.config.capacity
        dropped = [self._held.popitem()] if is_full else []
        self._held[number] = solutions
        return dropped

    def _forget_dropped(self, numbers: Iterable[int]) -> None:
        gone = np.array([n for n in numbers if n not in self._held], dtype=np.int64)
        self._facts.forget(gone)
        self._estimator.forget(gone)
        self._blocks.touch(gone)
        self._dropped.update(gone.tolist())

    def drop_empty(self, numbers: Integers) -> None:
        """Drop those of some keys that have no solutions."""
        pairs = zip(numbers.tolist(), self.look(numbers), strict=True)
        empty = [number for number, found in pairs if not found and number in self._held]
        for number in empty:
            del self._held[number]
        self._forget_dropped(empty)

    def dropped(self) -> set[int]:
        """Return the keys that were dropped since this was last asked, and are not held again."""
        found = {number for number in self._dropped if number not in self._held}
        self._dropped = set()
        return found

    def state(self) -> dict[str, Any]:
        """Return everything as plain data: numbers, lists, and terms as N-Triples text."""
        is_bounded = self.config.capacity is not None
        held = self._in_order_of_use() if is_bounded else self._held
        numbers = np.fromiter(held, dtype=np.int64, count=len(held))
        self._facts.grow(self.keys.size)
        return {
            "version": VERSION,
            "config": _plain(self.config),
            "keys": self.keys.state(),
            "size": len(held),
            "used": numbers.tolist() if is_bounded else None,
            "rows": self._blocks.state(numbers, lambda some: self._rows(some, held)),
            "shared": self._estimator.shared(),
        }

    def _rows(
        self, numbers: list[int], held: Mapping[int, tuple[RemoteSolution, ...]]
    ) -> list[list[Any]]:
        """Return what is known of keys: the number, the solutions, facts, and what is learned."""
        some = np.array(numbers, dtype=np.int64)
        rows = zip(numbers, self._facts.rows(some), self._estimator.rows(some), strict=True)
        pattern = self.config.pattern
        return [
            [number, [_written(s, pattern) for s in held[number]], facts, learned]
            for number, facts, learned in rows
        ]

    def _in_order_of_use(self) -> dict[int, tuple[RemoteSolution, ...]]:
        """Return what is held, what was used last at the end; numbers in order if all are held."""
        if self.config.capacity is None:
            return {number: self._held[number] for number in sorted(self._held)}
        held = dict(self._held.popitem() for _ in range(len(self._held)))
        self._held.update(held)
        return held

    @classmethod
    def restored(cls, config: ReplicaConfig, state: Mapping[str, Any]) -> Replica:
        """Return what was saved. A state of another version or configuration is refused."""
        made = cls(config)
        made.restore(state)
        return made

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what was saved, before anything is known here."""
        _refuse_other(self.config, state)
        try:
            self.keys.restore(state["keys"])
            self._take_up(state)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StateError(f"the saved replica is damaged: {error}") from None

    def _take_up(self, state: Mapping[str, Any]) -> None:
        rows = rows_of(state["rows"], state["size"])
        columns = zip(*rows, strict=True) if rows else ((), (), (), ())
        numbers, solutions, facts, learned = (list(column) for column in columns)
        found = np.array(numbers, dtype=np.int64)
        if not np.isin(found, self.keys.every()).all():
            raise ValueError("a number has no key")
        self._facts.grow(self.keys.size)
        self._facts.restore(found, facts)
        self._estimator.restore(found, learned, state["shared"])
        used = numbers if (order := state["used"]) is None else order
        held = dict(zip(numbers, self._solutions(solutions), strict=True))
        if len(held) != len(used):
            raise ValueError("a key was never used")
        if self.config.capacity is not None and len(held) > self.config.capacity:
            raise ValueError("it holds more keys than it has room for")
        self._held.update((number, held[number]) for number in used)

    def _solutions(self, saved: Sequence[Sequence[Mapping[str, str | None]]]) -> list[Any]:
        """Read the solutions of each key."""
        pattern, names = self.config.pattern, set(self.config.pattern.variables)
        told: list[list[Any]] = [
            # Mostly all is told, and nothing is without a value.
            [s if names <= s.keys() and None not in s.values() else _told(s, pattern) for s in key]
            for key in saved
        ]
        terms = iter(read_terms([text for key in told for s in key for text in s.values()]))
        return [tuple([dict(zip(s, terms, strict=False)) for s in key]) for key in told]


def _written(solution: RemoteSolution, pattern: RemotePattern) -> dict[str, str | None]:
    """Write a solution. A variable without a value is named too: nothing can be lost unseen."""
    return {**dict.fromkeys(pattern.variables), **solution_text(solution)}


def _told(solution: Mapping[str, str | None], pattern: RemotePattern) -> dict[str, str]:
    """Return the terms of a solution that was written, as text."""
    for name in pattern.variables:
        if name not in solution:
            raise ValueError(f"a solution does not tell its {name}")
    return {name: text for name, text in solution.items() if text is not None}


def _same(held: tuple[RemoteSolution, ...], fetched: tuple[RemoteSolution, ...]) -> bool:
    """Tell whether two answers are the same bag of solutions."""
    if len(held) != len(fetched) or len(held) < 2:
        return held == fetched
    return held == fetched or _in_order(held) == _in_order(fetched)


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
            raise StateError(f"the saved replica is damaged: it does not tell its {name}")
        if known[name] != value:
            raise StateError(
                f"the saved replica has another {name}: {known[name]!r}, not {value!r}",
                "start without the saved state, or run the query that it was saved from",
            )
