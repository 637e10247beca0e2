"""Observations, configuration and order, shared by the operators for incomplete streams.

An observation has a stream, a key (an integer, reused once its object has left), a position (its
arrival), and a value that is not negative; its pane determines the windows that hold it. Its `hash`
identifies the object forever; sketches count by it.

The order is that of all top-k operators: larger score, then later arrival, then larger key; an
object arrives with the last of its observations. A later arrival never expires earlier.

The same observation may arrive again. It counts once, and lives as long as the later arrival:
`since` is the last window of the pane of the previous arrival, and -1 for a new observation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from rsp_engine.model.windows import Pane
from rsp_engine.operators.topk.contract import as_array, check_open, check_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.topk.contract import TopkAnswer

__all__ = [
    "IncompleteOperator",
    "IncompleteOperatorConfig",
    "ObservationBuffer",
    "Observations",
    "ScoreAggregate",
    "ScoredObject",
    "as_observations",
    "check_stream_count",
    "concatenated",
]

ScoreAggregate = Literal["sum", "max"]


@dataclass(frozen=True, slots=True)
class IncompleteOperatorConfig:
    """The configuration of a top-k query over incomplete streams.

    `highs` are the largest values of the attributes, one for each stream. An object occurs in
    stream i at most `most[i]` times: `within` its whole life, as in the paper, or within any
    window. `repeats` aggregates the values of one stream, and `function` aggregates the streams. An
    object is ranked only if it occurs in all `required` streams. Scores that differ by no more than
    `slack` may be equal.
    """

    k: int
    highs: tuple[float, ...]
    most: tuple[int, ...] = ()
    function: ScoreAggregate = "sum"
    repeats: ScoreAggregate = "sum"
    required: tuple[int, ...] = ()
    within: Literal["life", "window"] = "life"
    slack: float = 0.0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k must be at least 1")
        if not self.highs or not all(isfinite(high) and high >= 0 for high in self.highs):
            raise ValueError("each stream needs the largest value of its attribute, not below 0")
        if not self.most:
            object.__setattr__(self, "most", (1,) * len(self.highs))
        if len(self.most) != len(self.highs) or min(self.most) < 1:
            raise ValueError("an object is seen in each stream at least once, if at all")
        if self.function == "max" and self.repeats == "sum":
            raise ValueError("a maximum over streams is one over all values")
        if not set(self.required) <= set(range(self.streams)):
            raise ValueError(f"there are only {self.streams} streams to require")
        if self.required and self.within == "life":
            raise ValueError("what is required is looked for in the window")

    @property
    def streams(self) -> int:
        """The number of streams: the paper's d."""
        return len(self.highs)

    def plain(self) -> dict[str, Any]:
        """Return the configuration as plain data, for the header of a state."""
        return {
            "k": self.k,
            "highs": list(self.highs),
            "most": list(self.most),
            "function": self.function,
            "repeats": self.repeats,
            "required": list(self.required),
            "within": self.within,
            "slack": self.slack,
        }


class Observations(NamedTuple):
    """Observations as arrays of equal length."""

    streams: Integers
    keys: Integers
    positions: Integers
    values: Floats
    since: Integers
    hashes: Integers


class IncompleteOperator(Protocol):
    """A top-k operator over incomplete streams."""

    def __len__(self) -> int:
        """Return the number of items kept: observations, or instances of objects."""

    def arrive(self, pane: Pane, batch: Observations) -> None:
        """Add observations of a pane whose windows are all open."""

    def close(self, window: int) -> TopkAnswer:
        """Close a window, and all before it, and return its ranking."""

    def near(self) -> Integers:
        """Return the keys in the last closed window that may tie with the k-th object."""

    def state(self) -> StateData:
        """Return the state as plain data."""


def as_observations(  # noqa: PLR0913, PLR0917 - a column is an argument
    streams: Any,  # noqa: ANN401 - array-like
    keys: Any,  # noqa: ANN401
    positions: Any,  # noqa: ANN401
    values: Any,  # noqa: ANN401
    since: Any = None,  # noqa: ANN401
    hashes: Any = None,  # noqa: ANN401
) -> Observations:
    """Return array-likes as observations, or raise ValueError if they are invalid.

    Without `hashes`, the keys are used, which must then never be reused.
    """
    key_array = as_array(keys, np.int64)
    batch = Observations(
        as_array(streams, np.int64),
        key_array,
        as_array(positions, np.int64),
        as_array(values, np.float64),
        np.full(len(key_array), -1) if since is None else as_array(since, np.int64),
        key_array if hashes is None else as_array(hashes, np.int64),
    )
    if len(set(map(len, batch))) > 1:
        raise ValueError("observations need as many streams, keys, positions and values")
    if len(key_array) and (not batch.values.min() >= 0 or batch.values.max() == inf):
        raise ValueError("a value must be a number, and not below 0: this is what is missing")
    return batch


def check_stream_count(config: IncompleteOperatorConfig, batch: Observations) -> None:
    """Raise ValueError if a batch has a stream that the configuration does not have."""
    streams = batch.streams
    if len(streams) and not (
        np.minimum.reduce(streams) >= 0 and np.maximum.reduce(streams) < config.streams
    ):
        raise ValueError(f"there are {config.streams} streams, numbered from 0")


def concatenated(parts: Iterable[Observations]) -> Observations:
    """Return several batches as one."""
    return Observations(*map(np.concatenate, zip(*parts, strict=True)))


class ScoredObject(NamedTuple):
    """Distinct objects as columns: keys, scores, and positions of their last arrivals."""

    keys: Integers
    scores: Floats
    latest: Integers

    def best(self, k: int) -> ScoredObject:
        """Return the k best, best first."""
        order = np.lexsort((self.keys, self.latest, self.scores))[::-1][:k]
        return ScoredObject(self.keys[order], self.scores[order], self.latest[order])

    def near(self, k: int, slack: float) -> Integers:
        """Return the keys whose scores may tie with the k-th: they are at most `slack` below it."""
        if len(self.keys) <= k:
            return self.keys
        border = float(np.partition(self.scores, len(self.scores) - k)[len(self.scores) - k])
        keys: Integers = self.keys[self.scores >= border - slack]
        return keys


@dataclass(slots=True)
class ObservationBuffer:
    """The buffer of observations until the first window that holds them closes."""

    config: IncompleteOperatorConfig
    closed: int = -1
    _panes: dict[tuple[int, int], list[Observations]] = field(default_factory=dict)

    def add(self, pane: Pane, batch: Observations) -> None:
        """Add a batch to its pane, or raise if one of its windows has closed."""
        check_open(pane, self.closed)
        check_stream_count(self.config, batch)
        if len(batch.keys):
            copies: Any = (column.copy() for column in batch)  # the caller may reuse its arrays
            self._panes.setdefault((pane.first, pane.last), []).append(Observations(*copies))

    def until(self, window: int) -> Iterator[tuple[Pane, Observations]]:
        """Remove and yield the panes up to a window, in time order."""
        check_order(window, self.closed)
        for windows in sorted(windows for windows in self._panes if windows[0] <= window):
            parts = self._panes.pop(windows)
            yield Pane(*windows), parts[0] if len(parts) == 1 else concatenated(parts)
        self.closed = window

    def state(self) -> StateData:
        """Return the buffered observations as plain data."""
        panes = [
            {"pane": list(windows), "observations": [c.tolist() for c in concatenated(parts)]}
            for windows, parts in self._panes.items()
        ]
        return {"closed": self.closed, "panes": panes}

    def restore(self, state: StateData) -> None:
        """Restore the buffered observations."""
        self.closed = state["closed"]
        self._panes = {}
        for saved in state["panes"]:
            first, last = saved["pane"]
            batch = as_observations(*saved["observations"])
            self._panes[first, last] = [batch]
