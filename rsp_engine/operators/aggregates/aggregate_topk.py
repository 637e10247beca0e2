"""Top-k by an aggregate (COUNT, SUM, MIN, MAX or AVG) of each key over a window.

An aggregate changes as the window slides, so no object can be dropped for good: the partial
aggregates of every key are kept for each pane, and the list is rebuilt on demand. It has the K+N
best objects of each active window, given the arrivals of the current window, each object once.

    panes   | a 3  b 1 | a 1  c 2 | c 2  d 3 |        k = 1, n = 0, sum
    W0      (     a 4      c 4      d 3      ]        c: of a tie, the later arrival
    W1                 (   a 1      c 4      d 3 ..   c
    W2                            ( c 2      d 3 ..   d
    list    c until W1, d until W2

Panes that begin after the current window are ignored: otherwise the list, and the set elected from
it, would depend on how far ahead the input was read. So every listed object is in the current
window, and the list is sorted by the scores there: its first K objects are the K-list.

The score is x_S, the aggregate or a function of it, or F(x_S, x_D), where x_D is the remote value
of the key. An object whose remote value is unknown is not ranked, and the answer is not exact; an
object that is known to have no remote value is not ranked either. Any other score that is NaN, such
as that of a value that is not a number, counts as -inf and ranks last.

A value that two panes of a window count can be negated from the pane that ends first: every later
window that contains that pane contains the other one too.

>>> from rsp_engine.model.windows import Pane
>>> operator = AggregateTopk(AggregateTopkConfig(1, function="sum"))
>>> operator.arrive(Pane(0, 0), [1, 2], [10, 20], [3.0, 1.0])
>>> operator.arrive(Pane(0, 1), [1, 3], [30, 40], [1.0, 2.0])
>>> operator.arrive(Pane(0, 2), [3, 4], [50, 60], [2.0, 3.0])
>>> operator.settle(0)
>>> operator.keys.tolist(), operator.ends.tolist()
([3, 4], [1, 2])
>>> operator.close(0)
TopkAnswer(window=0, keys=array([3]), scores=array([4.]), is_exact=True, has_exact_set=True)

Panes as in: Li, Maier, Tufte, Papadimos, Tucker: No pane, no gain. SIGMOD Record 34(1), 2005.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.aggregates.pane_partials import (
    Function,
    PanePartials,
    Suffixes,
    Totals,
    negated,
    partials,
)
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_array,
    check_order,
    rank_order,
)
from rsp_engine.operators.topk.super_mtk_list import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.acquatop.arrival_buffer import ScoreFunction
    from rsp_engine.operators.aggregates.pane_partials import Partials

__all__ = ["AggregateTopk", "AggregateTopkConfig"]

_NO_INTEGERS: Integers = np.empty(0, dtype=np.int64)
_NO_FLOATS: Floats = np.empty(0)


@dataclass(frozen=True, slots=True)
class AggregateTopkConfig(TopkOperatorConfig):
    """The configuration: k, n objects in reserve, and the aggregate function."""

    n: int = 0
    function: Function = "count"

    def __post_init__(self) -> None:
        TopkOperatorConfig.__post_init__(self)
        if self.n < 0:
            raise ValueError("n must not be negative")
        if self.function not in get_args(Function):
            raise ValueError(f"an aggregate is one of {', '.join(get_args(Function))}")

    @property
    def size(self) -> int:
        """The number of objects listed for each window: K+N."""
        return self.k + self.n


class _Listed(NamedTuple):
    """The list, best first, with window marks: the first and last window whose K+N best have it."""

    keys: Integers
    scores: Floats
    starts: Integers
    ends: Integers


class AggregateTopk:
    """An operator that ranks keys by an aggregate.

    Time for a batch of n arrivals: O(n log n); for a window: O(r log m), with r rows in m panes. A
    pane has a row for each of its keys; for sums, one or two. The list takes O(r log r + m d), with
    d distinct keys. Memory: the rows of panes in open windows, and the known remote values.
    """

    def __init__(
        self,
        config: AggregateTopkConfig,
        score: ScoreFunction | None = None,
        *,
        streaming: Callable[[Totals], Floats] | None = None,
    ) -> None:
        """Create an operator: `score` is F, `streaming` maps totals to x_S (default: values)."""
        self.config = config
        self._score = score
        self._streaming = streaming
        self._panes = PanePartials(config.function)
        self._settled = -1  # panes that begin later are ignored
        self._window = 0  # the first window of the list
        self._remote_keys, self._remote = _NO_INTEGERS, _NO_FLOATS
        self._totals: tuple[int, Totals] | None = None  # the totals of a window, until an arrival
        self._listed: _Listed | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def keys(self) -> Integers:
        """The keys of the list, best first in the current window."""
        return self._list().keys

    @property
    def scores(self) -> Floats:
        """The scores of the list in the current window, in descending order."""
        return self._list().scores

    @property
    def ends(self) -> Integers:
        """The last window whose K+N best contain each object of the list."""
        return self._list().ends

    @property
    def lives(self) -> Integers:
        """The number of windows from the current one to the end of each object."""
        return self.ends - self._window + 1

    def arrive(self, pane: Pane, keys: Any, positions: Any, values: Any = None) -> None:  # noqa: ANN401 - array-like
        """Add arrivals of a pane, none of whose windows has closed; COUNT needs no values."""
        keys, values = self._columns(keys, values)
        positions = as_array(positions, np.int64)
        if not len(keys) == len(positions):
            raise ValueError("keys, positions and values must be of equal length")
        self._panes.add(pane, partials(self.config.function, keys, positions, values))
        self._totals = self._listed = None

    def withdraw(self, pane: Pane, keys: Any, values: Any = None) -> None:  # noqa: ANN401 - array-like
        """Withdraw arrivals that another pane of the same windows counts, with their values.

        MIN and MAX are the same whether a value counts once or twice, and ignore the call.
        """
        keys, values = self._columns(keys, values)
        function = self.config.function
        rows = partials(function, keys, np.zeros_like(keys), values)
        if function not in {"min", "max"}:
            self._panes.add(pane, negated(function, rows))
            self._totals = self._listed = None

    def _columns(self, keys: Any, values: Any) -> tuple[Integers, Floats]:  # noqa: ANN401 - array-like
        keys = as_array(keys, np.int64)
        if values is None:
            if self.config.function != "count":
                raise ValueError(f"{self.config.function} needs values")
            values = np.zeros(len(keys))
        values = as_array(values, np.float64)
        if len(keys) != len(values):
            raise ValueError("keys, positions and values must be of equal length")
        return keys, values

    def settle(self, window: int) -> None:
        """Make a window the current one; its list has all panes that do not begin after it."""
        check_order(window, self._panes.closed)
        self._settled = self._window = window
        self._listed = None

    def change(self, keys: Any, remote: Any) -> None:  # noqa: ANN401 - array-like
        """Set remote values of keys; NaN means that a key has none.

        A value is kept, whether or not its key has arrived, until `forget`. If a key occurs twice,
        the last value counts.
        """
        if self._score is None:
            raise ValueError("without F there is no remote side")
        keys, remote = as_array(keys, np.int64), as_array(remote, np.float64)
        if len(keys) != len(remote):
            raise ValueError("keys and remote values must be of equal length")
        if not len(keys):
            return
        if keys.min() < 0:
            raise ValueError("a key must not be negative")
        places, known = self._find_remote(keys)
        self._listed = None
        if known.all():
            self._remote[places] = remote
            return
        keys = np.concatenate((self._remote_keys, keys))
        remote = np.concatenate((self._remote, remote))
        order = np.argsort(keys, kind="stable")
        is_last = np.ones(len(keys), dtype=bool)
        is_last[:-1] = keys[order][1:] != keys[order][:-1]
        order = order[is_last]
        self._remote_keys, self._remote = keys[order], remote[order]

    def forget(self, keys: Any) -> None:  # noqa: ANN401 - array-like
        """Remove the remote values of keys, which become unknown."""
        places, known = self._find_remote(as_array(keys, np.int64))
        if not known.any():
            return
        self._remote_keys = np.delete(self._remote_keys, places[known])
        self._remote = np.delete(self._remote, places[known])
        self._listed = None

    def _find_remote(self, keys: Integers) -> tuple[NDArray[np.intp], Booleans]:
        """Return the indices of the remote values of keys, and which of them are known."""
        if np.array_equal(keys, self._remote_keys):  # all that are live, mostly
            return np.arange(len(keys)), np.ones(len(keys), dtype=np.bool_)
        places = np.searchsorted(self._remote_keys, keys)
        known = places < len(self._remote_keys)
        known[known] = self._remote_keys[places[known]] == keys[known]
        return places, known

    def totals(self, window: int) -> Totals:
        """Return the sorted keys of an open window with their aggregates so far."""
        keys, positions, values, counts = self._cached_totals(window)
        return Totals(keys.copy(), positions.copy(), values.copy(), counts.copy())

    def _cached_totals(self, window: int) -> Totals:
        if self._totals is None or self._totals[0] != window:
            self._totals = window, self._panes.totals(window)
        return self._totals[1]

    def _scores(self, totals: Totals) -> Floats:
        """Return the scores; NaN where the remote value is unknown or missing."""
        values = totals.values if self._streaming is None else self._streaming(totals)
        if self._score is None:
            return np.where(np.isnan(values), -np.inf, values)
        scores = np.full(len(values), np.nan)
        places, known = self._find_remote(totals.keys)
        remote = self._remote[places[known]]
        if not len(remote):
            return scores
        with np.errstate(all="ignore"):
            joined = np.asarray(self._score(values[known], remote), dtype=np.float64)
        if joined.shape != remote.shape:
            raise ValueError("a scoring function must give one score for each pair of values")
        scores[known] = np.where(
            np.isnan(remote), np.nan, np.where(np.isnan(joined), -np.inf, joined)
        )
        return scores

    def close(self, window: int) -> TopkAnswer:
        """Close a window and all earlier ones, and return its top-k."""
        totals = self._cached_totals(window)
        scores = self._scores(totals)
        objects = Arrivals(totals.keys, totals.positions, scores).take(~np.isnan(scores))
        best = objects.take(_best(objects, self.config.k))
        best = best.take(rank_order(best))
        self._panes.close(window)
        self._settled, self._window = window, window + 1
        self._totals = self._listed = None
        is_exact = self._score is None or bool(self._find_remote(totals.keys)[1].all())
        return TopkAnswer(window, best.keys, best.scores, is_exact, is_exact)

    def _list(self) -> _Listed:
        """Return the list, from the cache if it is valid."""
        if self._listed is None:
            self._listed = self._build_list(self._panes.of(self._settled, self._window))
        return self._listed

    def _build_list(self, panes: list[tuple[int, Partials]]) -> _Listed:
        """Return the K+N best of each window that contains one of these panes.

        Windows between two consecutive ends of panes contain the same panes, and are ranked once.
        """
        if not panes:
            return _Listed(_NO_INTEGERS, _NO_FLOATS, _NO_INTEGERS, _NO_INTEGERS)
        ends = sorted({end for end, _ in panes})
        begins = dict(zip(ends, [self._window, *(end + 1 for end in ends)], strict=False))
        suffixes = Suffixes(self.config.function, panes)
        count = len(suffixes.keys)
        objects = Arrivals(suffixes.keys, np.zeros(count, dtype=np.int64), np.full(count, np.nan))
        values, counts = np.zeros(count), np.zeros(count, dtype=np.int64)
        starts, until = np.full(count, -1), np.full(count, -1)
        for end, changed, totals in suffixes:
            values[changed], counts[changed] = totals.values, totals.counts
            objects.positions[changed] = totals.positions
            objects.scores[changed] = self._scores(totals)
            present = np.flatnonzero(~np.isnan(objects.scores))
            best = present[_best(objects.take(present), self.config.size)]
            starts[best] = begins[end]
            until[best] = np.maximum(until[best], end)
        if self._settled == self._window:  # then these are all panes of the current window
            totals = Totals(objects.keys, objects.positions, values, counts)
            self._totals = self._window, totals.take(counts > 0)
        listed = np.flatnonzero(until >= 0)
        order = listed[rank_order(objects.take(listed))]
        return _Listed(objects.keys[order], objects.scores[order], starts[order], until[order])

    def candidates(self) -> list[Candidate]:
        """Return the list with its window marks; between them an object may leave and return."""
        columns = (column.tolist() for column in self._list())
        return [Candidate(*row) for row in zip(*columns, strict=True)]

    def state(self) -> StateData:
        """Return the state of the operator as plain data."""
        content = {
            "settled": self._settled,
            "window": self._window,
            "panes": self._panes.state(),
            "remote": [self._remote_keys.tolist(), self._remote.tolist()],
        }
        return with_header("Aggregates", asdict(self.config), content)

    @classmethod
    def restored(
        cls,
        config: AggregateTopkConfig,
        state: StateData,
        score: ScoreFunction | None = None,
        *,
        streaming: Callable[[Totals], Floats] | None = None,
    ) -> AggregateTopk:
        """Restore an operator from a saved state."""
        check_header(state, "Aggregates", asdict(config))
        operator = cls(config, score, streaming=streaming)
        operator._settled, operator._window = state["settled"], state["window"]
        operator._panes.restore(state["panes"])
        keys, remote = state["remote"]
        operator._remote_keys = np.array(keys, dtype=np.int64)
        operator._remote = np.array(remote, dtype=np.float64)
        return operator

    def _check(self) -> None:
        """Assert the invariants of the panes and the list."""
        self._panes.check()
        listed = self._list()
        falls = listed.scores[1:] <= listed.scores[:-1]
        assert falls.all(), "scores are not descending"  # noqa: S101
        assert (listed.starts >= self._window).all(), "a mark is in the past"  # noqa: S101
        assert (listed.starts <= listed.ends).all(), "marks are crossed"  # noqa: S101


def _best(objects: Arrivals, count: int) -> NDArray[np.intp]:
    """Return the indices of the `count` best, in no order. Time: O(n), also with many ties."""
    near = np.arange(len(objects.keys))
    sure = []
    for column in (objects.scores, objects.positions, objects.keys):
        if len(near) <= count:
            break
        values = column[near]
        border = np.partition(values, len(values) - count)[len(values) - count]
        sure.append(near[values > border])
        near = near[values == border]
        count -= len(sure[-1])
    return np.concatenate((*sure, near))
