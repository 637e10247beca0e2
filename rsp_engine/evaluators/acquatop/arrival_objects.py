"""Arrivals as ranked objects: the latest arrival of each join key, or every arrival.

They are ranked by Topk+N, or by an operator over the whole window if the policy elects from the
whole window.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rsp_engine.evaluators.acquatop.join_keys import JoinKeys
from rsp_engine.evaluators.acquatop.ranked_objects import Members
from rsp_engine.model.blocks import RowBlocks, rows_of
from rsp_engine.model.terms.ntriples import read_rows, row_text
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.acquatop.whole_window import WholeWindow
from rsp_engine.operators.scoring.positions import Positions, instants
from rsp_engine.operators.sparql.pane_matcher import UnreadRows
from rsp_engine.operators.topk.contract import TopkAnswer, TopkOperatorConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.acquatop.plain_scores import PlainScores, RemoteValues
    from rsp_engine.evaluators.service.refresh import Refresh
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.sparql.pane_matcher import PaneSolutions, SolutionTuple
    from rsp_engine.options import ArrivalRule
    from rsp_engine.policies import Policy

__all__ = ["Arrival", "ArrivalObjects", "arrivals_operator"]


_GONE = -1


class Arrival(NamedTuple):
    """The arrivals of a pane as columns: solutions or their texts, join keys, x_S, positions."""

    solutions: Sequence[SolutionTuple | str]
    keys: Integers
    streaming: Floats
    positions: Integers


def as_text(solution: SolutionTuple | str) -> str:
    """Return a solution as text."""
    return solution if isinstance(solution, str) else row_text(solution)


class ObjectTable:
    """Columns indexed by object number. Memory: the largest number of objects at once."""

    def __init__(self, arrivals: ArrivalRule = "latest") -> None:
        self._keeps_all = arrivals == "all"
        self._key = np.empty(0, dtype=np.int64)
        self._streaming = np.empty(0)
        self._position = np.empty(0, dtype=np.int64)
        self._end = np.empty(0, dtype=np.int64)  # the last window that contains it, or `_GONE`
        self._solution: NDArray[Any] = np.empty(0, dtype=object)
        self._free: list[int] = []  # a heap
        self._next = 0
        self._of_text: dict[str, int] = {}  # with `all`, the number of each solution
        self._blocks = RowBlocks()

    def __len__(self) -> int:
        return len(self.numbers())

    def join(self, end: int, batch: Arrival) -> Integers:
        """Add the arrivals of a pane whose last window is `end`; return the numbers of the objects.

        >>> table = ObjectTable()
        >>> solutions, positions = ["<urn:a>", "<urn:b>"], np.array([0, 1])
        >>> table.join(2, Arrival(solutions, np.array([7, 3]), np.array([1.0, 3.0]), positions))
        array([7, 3])
        >>> table.numbers(), table.streaming(np.array([3, 7]))
        (array([3, 7]), array([3., 1.]))
        """
        numbers = self._numbers(batch)
        if len(numbers):
            self._grow(int(numbers.max()) + 1)
        # A late element may be older than the known arrival; the latest counts.
        is_new = (self._end[numbers] == _GONE) | (self._position[numbers] <= batch.positions)
        chosen = np.flatnonzero(is_new)
        places = numbers[chosen]
        self._key[places] = batch.keys[chosen]
        self._streaming[places] = batch.streaming[chosen]
        self._position[places] = batch.positions[chosen]
        self._end[places] = end
        self._blocks.touch(places)
        solutions: Any = batch.solutions
        self._solution[places] = np.fromiter(solutions, dtype=object, count=len(numbers))[chosen]
        return numbers

    def _numbers(self, batch: Arrival) -> Integers:
        if not self._keeps_all:
            return batch.keys
        numbers = [self._number(as_text(solution)) for solution in batch.solutions]
        return np.array(numbers, dtype=np.int64)

    def _number(self, text: str) -> int:
        number = self._of_text.get(text)
        if number is None:
            number = heappop(self._free) if self._free else self._next
            self._next = max(self._next, number + 1)
            self._of_text[text] = number
        return number

    def _grow(self, size: int) -> None:
        missing = size - len(self._end)
        if missing <= 0:
            return
        more = max(missing, len(self._end))
        self._key = np.concatenate((self._key, np.zeros(more, dtype=np.int64)))
        self._streaming = np.concatenate((self._streaming, np.zeros(more)))
        self._position = np.concatenate((self._position, np.zeros(more, dtype=np.int64)))
        self._end = np.concatenate((self._end, np.full(more, _GONE, dtype=np.int64)))
        self._solution = np.concatenate((self._solution, np.full(more, None, dtype=object)))

    def expire(self, window: int) -> Integers:
        """Forget the objects that end before a window; return their join keys."""
        gone = np.flatnonzero((self._end != _GONE) & (self._end < window))
        if self._keeps_all:
            for number, solution in zip(gone.tolist(), self._solution[gone].tolist(), strict=True):
                heappush(self._free, number)
                del self._of_text[as_text(solution)]
        self._drop(gone)
        return np.unique(self._key[gone]) if self._keeps_all else gone

    def _drop(self, numbers: Integers) -> None:
        self._end[numbers] = _GONE
        self._solution[numbers] = None
        self._blocks.touch(numbers)

    def keep(self, numbers: Integers) -> Integers:
        """Forget all other objects; return the numbers among these that have no row."""
        self._drop(np.setdiff1d(self.numbers(), numbers))
        return np.setdiff1d(numbers, self.numbers())

    def numbers(self) -> Integers:
        """Return the numbers of all objects."""
        return np.flatnonzero(self._end != _GONE)

    def keys(self) -> Integers:
        """Return the distinct join keys of all objects."""
        return np.unique(self._key[self.numbers()]) if self._keeps_all else self.numbers()

    def holds(self, keys: Integers) -> Booleans:
        """Return which join keys have an object."""
        if self._keeps_all:
            return np.isin(keys, self.keys())
        return self._holds(keys)

    def _holds(self, numbers: Integers) -> Booleans:
        """Return which numbers have an object."""
        is_held = np.zeros(len(numbers), dtype=np.bool_)
        inside = np.flatnonzero(numbers < len(self._end))
        is_held[inside] = self._end[numbers[inside]] != _GONE
        return is_held

    def keys_of(self, numbers: Sequence[int] | Integers) -> Integers:
        """Return the join keys of objects."""
        return self._key[np.asarray(numbers, dtype=np.int64)]

    def of_keys(self, keys: Integers) -> Integers:
        """Return the objects of join keys."""
        if not self._keeps_all:
            return np.unique(keys[self._holds(keys)])
        numbers = self.numbers()
        return numbers[np.isin(self._key[numbers], keys)]

    def streaming(self, numbers: Integers) -> Floats:
        """Return the x_S of objects."""
        return self._streaming[numbers]

    def positions(self, numbers: Integers) -> Integers:
        """Return the positions of objects: the order of their arrival."""
        return self._position[numbers]

    def at(self, times: Integers) -> Iterator[tuple[str, int]]:
        """Yield the texts and the positions of the objects that arrived at these instants."""
        numbers = self.numbers()
        for number in numbers[np.isin(instants(self._position[numbers]), times)].tolist():
            yield as_text(self._solution[number]), int(self._position[number])

    def ends(self, numbers: Integers) -> Integers:
        """Return the last window that contains each object."""
        return self._end[numbers]

    def solutions(self, numbers: Sequence[int], width: int) -> list[SolutionTuple]:
        """Return the solutions of objects, of `width` terms each. Text is parsed once."""
        written = [number for number in numbers if isinstance(self._solution[number], str)]
        for number, solution in zip(
            written, read_rows([self._solution[n] for n in written], width), strict=True
        ):
            self._solution[number] = solution
        return [self._solution[number] for number in numbers]

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        """Return the largest x_S of the objects of each join key."""
        wanted = np.asarray(keys, dtype=np.int64)
        if not self._keeps_all:
            return self._streaming[wanted]
        numbers = self.numbers()
        known, places = np.unique(self._key[numbers], return_inverse=True)
        best = np.full(len(known), -np.inf)
        np.maximum.at(best, places, self._streaming[numbers])
        return best[np.searchsorted(known, wanted)]

    def state(self) -> StateData:
        """Return the objects as plain data, a row for each."""
        numbers = self.numbers()
        return {
            "size": len(numbers),
            "rows": self._blocks.state(numbers, self._rows),
        }

    def _rows(self, numbers: list[int]) -> list[list[Any]]:
        tables = (self._key, self._streaming, self._position, self._end)
        solutions = map(as_text, self._solution[numbers].tolist())
        columns = (table[numbers].tolist() for table in tables)
        return [[*row] for row in zip(numbers, *columns, solutions, strict=True)]

    def restore(self, state: StateData, width: int) -> None:
        """Restore a saved state, whose solutions have `width` terms."""
        rows = rows_of(state["rows"], state["size"])
        columns = zip(*rows, strict=True) if rows else ((),) * 6
        written, keys, streaming, positions, ends, texts = (list(column) for column in columns)
        solutions: Any = read_rows(texts, width)
        numbers = np.array(written, dtype=np.int64)
        self._next = int(numbers.max(initial=-1)) + 1
        self._grow(self._next)
        self._key[numbers] = keys
        self._streaming[numbers] = streaming
        self._position[numbers] = positions
        self._end[numbers] = ends
        for number, solution in zip(written, solutions, strict=True):
            self._solution[number] = solution
        if self._keeps_all:
            self._of_text = dict(zip(texts, written, strict=True))
            self._free = sorted(set(range(self._next)).difference(written))


def arrivals_operator(
    config: AcquaTopConfig, policy: Policy, scores: PlainScores
) -> TopkN | WholeWindow:
    """Return the operator that ranks arrivals: that of the list, or of the whole window."""
    if policy.proposer == "list":
        return TopkN(TopkNConfig(config.k, config.n, config.is_monotone), scores)
    return WholeWindow(TopkOperatorConfig(config.k), scores)


class ArrivalObjects:
    """Objects that are arrivals. Memory: the objects of open windows."""

    def __init__(
        self,
        config: AcquaTopConfig,
        refresh: Refresh,
        values: RemoteValues,
        scores: PlainScores,
        operator: TopkN | WholeWindow,
    ) -> None:
        self.config = config
        self._names = config.matching.names
        self._replica = refresh.replica
        self._values = values
        self._scores = scores
        self._table = ObjectTable(config.arrivals)
        self._keys = JoinKeys(refresh.replica.keys, len(config.key))
        self._operator = operator
        self._positions = Positions()

    @property
    def keys(self) -> Integers:
        return self._operator.keys

    @property
    def scores(self) -> Floats:
        return self._operator.scores

    @property
    def ends(self) -> Integers:
        return self._operator.ends

    @property
    def has_all(self) -> bool:
        return True

    def take(self, pane: Pane, matched: PaneSolutions) -> None:
        keys, places = self._keys.arrivals(matched, self.config.key, self.config.arrivals)
        if not len(places):
            return
        self._scores.stream(matched.kind)
        numbers = matched.numbers[places]
        streaming = np.where(np.isnan(numbers), -inf, numbers)
        rows = matched.solutions
        chosen = rows.texts if isinstance(rows, UnreadRows) else rows
        solutions = [chosen[place] for place in places.tolist()]
        positions = self._positions.of(
            matched.times[places], lambda place: as_text(solutions[place]), self._table.at
        )
        arrivals = Arrival(solutions, keys, streaming, positions)
        objects = self._table.join(pane.last, arrivals)
        remote = self._values.of(keys)
        self._operator.arrive(pane, objects, positions, streaming, remote)
        # The operator must tell a known key without a value from a cold key.
        empty = objects[np.isnan(remote) & self._replica.is_known(keys)]
        if len(empty):
            self._operator.change(empty, np.full(len(empty), np.nan))

    def settle(self, window: int) -> None:
        self._operator.settle(window)

    def change(self, keys: Integers) -> None:
        objects = self._table.of_keys(keys)
        if len(objects):
            values = self._values.of(self._table.keys_of(objects))
            self._operator.change(objects, values, self._table.streaming(objects))

    def refill(self, window: int) -> None:
        operator, table = self._operator, self._table
        if isinstance(operator, WholeWindow) or operator.is_complete(window):
            return
        objects = table.numbers()
        keys = table.keys_of(objects)
        unknown = objects[~self._replica.is_known(keys)]
        operator.refill(objects, self._values.of(keys), table.streaming(objects), unknown)

    def close(self, window: int) -> TopkAnswer:
        return self._operator.close(window)

    def expire(self, window: int) -> Integers:
        return self._table.expire(window)

    def holds(self, keys: Integers) -> Booleans:
        return self._table.holds(keys)

    def forget(self, keys: Integers) -> None:
        self._keys.forget(keys)

    def join_keys(self) -> Integers:
        return self._table.keys()

    def keys_of(self, numbers: Sequence[int]) -> Integers:
        return self._table.keys_of(numbers)

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        return self._table.best_streaming(keys)

    def streamed(self, numbers: Integers) -> tuple[Floats, Integers]:
        return self._table.streaming(numbers), self._table.positions(numbers)

    def bindings(self, numbers: Sequence[int], now: int) -> list[Mapping[str, Term]]:
        solutions = self._table.solutions(numbers, len(self._names))
        return [dict(zip(self._names, solution, strict=True)) for solution in solutions]

    def terms(self, numbers: Sequence[int], now: int) -> Sequence[Term | None]:
        if self.config.streaming is None:
            return [None] * len(numbers)
        place = self._names.index(self.config.streaming)
        return [row[place] for row in self._table.solutions(numbers, len(self._names))]

    def members(self) -> Members:
        table = self._table
        numbers = table.numbers()
        keys, positions = table.keys_of(numbers), table.positions(numbers)
        return Members(numbers, keys, table.streaming(numbers), positions, table.ends(numbers))

    def state(self) -> StateData:
        return {
            "population": self._table.state(),
            "operator": self._operator.state(),
            "positions": self._positions.state(),
        }

    def restore(self, state: StateData) -> None:
        self._table.restore(state["population"], len(self._names))
        self._positions.restore(state["positions"])
        self._operator = self._restored_operator(state["operator"])

    def _restored_operator(self, state: StateData) -> TopkN | WholeWindow:
        operator = self._operator
        if isinstance(operator, TopkN):
            return TopkN.restored(operator.config, self._scores, state)
        return WholeWindow.restored(operator.config, self._scores, state)
