"""The objects of the open windows of a joined query: what each is, and its join key.

With arrivals `latest` the object is the join key, and its latest arrival counts. With `all` each
arrival is an object of its own; the numbers of objects that are gone are given out again, so that
tables by number do not grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rsp_engine.model.ntriples import read_rows, row_text
from rsp_engine.model.written import WrittenRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.matching import Solution
    from rsp_engine.operators.state import State
    from rsp_engine.plan.options import Arrivals

__all__ = ["Came", "Population"]

_GONE = -1


class Came(NamedTuple):
    """Arrivals of a pane as columns: solutions, or their texts, join keys, x_S, and positions."""

    solutions: Sequence[Solution | str]
    keys: Integers
    streaming: Floats
    positions: Integers


class Population:
    """Objects by number, in tables. Memory: the largest number that an object ever had."""

    def __init__(self, arrivals: Arrivals = "latest") -> None:
        self._are_all = arrivals == "all"
        self._key = np.empty(0, dtype=np.int64)
        self._streaming = np.empty(0)
        self._position = np.empty(0, dtype=np.int64)
        self._end = np.empty(0, dtype=np.int64)  # the last window that holds it, or `_GONE`
        self._solution: NDArray[Any] = np.empty(0, dtype=object)
        self._free: list[int] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self.numbers())

    def join(self, end: int, came: Came) -> Integers:
        """Take arrivals of a pane that lives until a window; return the numbers of their objects.

        >>> population = Population()
        >>> solutions, positions = ["<urn:a>", "<urn:b>"], np.array([0, 1])
        >>> population.join(2, Came(solutions, np.array([7, 3]), np.array([1.0, 3.0]), positions))
        array([7, 3])
        >>> population.numbers(), population.streaming(np.array([3, 7]))
        (array([3, 7]), array([3., 1.]))
        """
        numbers = self._numbers(came.keys)
        if len(numbers):
            self._grow(int(numbers.max()) + 1)
        # What is late may have come before what is known; the latest counts.
        is_new = (self._end[numbers] == _GONE) | (self._position[numbers] <= came.positions)
        chosen = np.flatnonzero(is_new)
        places = numbers[chosen]
        self._key[places] = came.keys[chosen]
        self._streaming[places] = came.streaming[chosen]
        self._position[places] = came.positions[chosen]
        self._end[places] = end
        for place, at in zip(places.tolist(), chosen.tolist(), strict=True):
            self._solution[place] = came.solutions[at]
        return numbers

    def _numbers(self, keys: Integers) -> Integers:
        if not self._are_all:
            return keys
        again = [self._free.pop() for _ in range(min(len(self._free), len(keys)))]
        fresh = range(self._next, self._next + len(keys) - len(again))
        self._next = fresh.stop
        return np.array([*again, *fresh], dtype=np.int64)

    def _grow(self, size: int) -> None:
        more = size - len(self._end)
        if more <= 0:
            return
        more = max(more, len(self._end))
        self._key = np.concatenate((self._key, np.zeros(more, dtype=np.int64)))
        self._streaming = np.concatenate((self._streaming, np.zeros(more)))
        self._position = np.concatenate((self._position, np.zeros(more, dtype=np.int64)))
        self._end = np.concatenate((self._end, np.full(more, _GONE, dtype=np.int64)))
        self._solution = np.concatenate((self._solution, np.full(more, None, dtype=object)))

    def expire(self, window: int) -> None:
        """Forget objects that do not live until a window."""
        gone = np.flatnonzero((self._end != _GONE) & (self._end < window))
        self._end[gone] = _GONE
        self._solution[gone] = None
        if self._are_all:
            self._free.extend(gone.tolist())

    def numbers(self) -> Integers:
        """Return the numbers of all objects."""
        return np.flatnonzero(self._end != _GONE)

    def keys(self) -> Integers:
        """Return the join keys of all objects, each once."""
        return np.unique(self._key[self.numbers()]) if self._are_all else self.numbers()

    def keys_of(self, numbers: Sequence[int] | Integers) -> Integers:
        """Return the join keys of objects."""
        return self._key[np.asarray(numbers, dtype=np.int64)]

    def of_keys(self, keys: Integers) -> Integers:
        """Return the objects of join keys."""
        numbers = self.numbers()
        return numbers[np.isin(self._key[numbers], keys)]

    def streaming(self, numbers: Integers) -> Floats:
        """Return the x_S of objects."""
        return self._streaming[numbers]

    def positions(self, numbers: Integers) -> Integers:
        """Return when objects came."""
        return self._position[numbers]

    def solutions(self, numbers: Sequence[int], width: int) -> list[Solution]:
        """Return the solutions of objects, of so many terms."""
        return [self._read(self._solution[number], width) for number in numbers]

    def _read(self, solution: Solution | str, width: int) -> Solution:
        if isinstance(solution, str):
            return WrittenRows(width, [solution])[0]
        return solution

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        """Return the largest value that the objects of each key streamed."""
        wanted = np.asarray(keys, dtype=np.int64)
        if not self._are_all:
            return self._streaming[wanted]
        numbers = self.numbers()
        known, places = np.unique(self._key[numbers], return_inverse=True)
        best = np.full(len(known), -np.inf)
        np.maximum.at(best, places, self._streaming[numbers])
        return best[np.searchsorted(known, wanted)]

    def state(self) -> State:
        """Return the objects as columns of plain data."""
        numbers = self.numbers()
        solutions = self._solution[numbers].tolist()
        return {
            "numbers": numbers.tolist(),
            "keys": self._key[numbers].tolist(),
            "streaming": self._streaming[numbers].tolist(),
            "positions": self._position[numbers].tolist(),
            "ends": self._end[numbers].tolist(),
            "solutions": [
                found if isinstance(found, str) else row_text(found) for found in solutions
            ],
            "free": self._free[:],
            "next": self._next,
        }

    def restore(self, state: State, width: int) -> None:
        """Go on from a state; a solution has so many terms."""
        solutions: Any = read_rows(state["solutions"], width)
        self._free, self._next = state["free"][:], state["next"]
        numbers = np.array(state["numbers"], dtype=np.int64)
        self._grow(int(numbers.max(initial=-1)) + 1)
        self._key[numbers] = state["keys"]
        self._streaming[numbers] = state["streaming"]
        self._position[numbers] = state["positions"]
        self._end[numbers] = state["ends"]
        for number, solution in zip(state["numbers"], solutions, strict=True):
            self._solution[number] = solution
