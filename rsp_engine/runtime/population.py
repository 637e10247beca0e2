"""The objects of the open windows of a joined query: what each is, and its join key.

With arrivals `latest` the object is the join key, and its latest arrival counts. With `all` each
arrival is an object of its own; the numbers of objects that are gone are given out again, so that
tables by number do not grow.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.ntriples import read_rows, row_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.matching import Solution
    from rsp_engine.operators.state import State
    from rsp_engine.plan.options import Arrivals

__all__ = ["Member", "Population"]


@dataclass(frozen=True, slots=True)
class Member:
    """An object: its solution, its join key, and what it streamed."""

    solution: Solution
    key: int
    streaming: float
    position: int
    end: int


class Population:
    """Memory: the objects of open windows."""

    def __init__(self, arrivals: Arrivals = "latest") -> None:
        self._are_all = arrivals == "all"
        self._members: dict[int, Member] = {}
        self._of_key: defaultdict[int, list[int]] = defaultdict(list)
        self._ends: defaultdict[int, list[int]] = defaultdict(list)
        self._free: list[int] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, number: int) -> Member:
        return self._members[number]

    def join(self, members: Sequence[Member]) -> Integers:
        """Take arrivals in the order of their positions, and return the numbers of their objects.

        >>> population = Population()
        >>> population.join([Member((), 7, 1.0, 0, end=2), Member((), 7, 3.0, 1, end=2)])
        array([7, 7])
        >>> population[7].streaming
        3.0
        """
        numbers = [self._number(member) for member in members]
        for number, member in zip(numbers, members, strict=True):
            known = self._members.get(number)
            if known is not None and member.position < known.position:
                continue  # a late one, and not the latest
            if known is None:
                self._of_key[member.key].append(number)
            if known is None or known.end != member.end:
                self._ends[member.end].append(number)
            self._members[number] = member
        return np.array(numbers, dtype=np.int64)

    def _number(self, member: Member) -> int:
        if not self._are_all:
            return member.key
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next - 1

    def expire(self, window: int) -> None:
        """Forget objects that do not live until a window."""
        for end in sorted(end for end in self._ends if end < window):
            for number in self._ends.pop(end):
                if (member := self._members.get(number)) is None or member.end != end:
                    continue
                del self._members[number]
                self._of_key[member.key].remove(number)
                if not self._of_key[member.key]:
                    del self._of_key[member.key]
                if self._are_all:
                    self._free.append(number)

    def numbers(self) -> Integers:
        """Return the numbers of all objects."""
        return np.fromiter(self._members, dtype=np.int64, count=len(self._members))

    def keys(self) -> Integers:
        """Return the join keys of all objects, each once."""
        return np.fromiter(self._of_key, dtype=np.int64, count=len(self._of_key))

    def keys_of(self, numbers: Iterable[int]) -> list[int]:
        """Return the join keys of objects."""
        return [self._members[number].key for number in numbers]

    def of_keys(self, keys: Iterable[int]) -> list[int]:
        """Return the objects of join keys."""
        return [number for key in keys for number in self._of_key.get(key, ())]

    def state(self) -> State:
        """Return the objects as columns of plain data."""
        members = self._members.values()
        return {
            "numbers": list(self._members),
            "keys": [member.key for member in members],
            "streaming": [member.streaming for member in members],
            "positions": [member.position for member in members],
            "ends": [member.end for member in members],
            "solutions": [row_text(member.solution) for member in members],
            "of_key": list(self._of_key),
            "free": self._free[:],
            "next": self._next,
        }

    def restore(self, state: State, width: int) -> None:
        """Go on from a state; a solution has so many terms. All that is in an order keeps it."""
        solutions: Any = read_rows(state["solutions"], width)
        columns = (state[name] for name in ("keys", "streaming", "positions", "ends"))
        members = itertools.starmap(Member, zip(solutions, *columns, strict=True))
        self._members = dict(zip(state["numbers"], members, strict=True))
        self._of_key = defaultdict(list, {key: [] for key in state["of_key"]})
        self._ends = defaultdict(list)
        for number, member in self._members.items():
            self._of_key[member.key].append(number)
            self._ends[member.end].append(number)
        self._free, self._next = state["free"][:], state["next"]

    def best_streaming(self, keys: Iterable[int]) -> Floats:
        """Return the largest value that the objects of each key streamed."""
        of_key = self._of_key
        found = [max(self._members[n].streaming for n in of_key[key]) for key in keys]
        return np.array(found, dtype=np.float64)
