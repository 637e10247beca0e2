"""What the operators for incomplete streams share: configuration, observations, and the order.

An observation is a stream, a key (an integer; one that has left may be given to another object), a
position (when it came) and a value; its pane says which windows hold it. Values are not negative.
Its `hash` is that of the object itself, and never of another one: sketches count by it.
The order is that of the family: larger score, then later arrival, then larger key; an object
arrives with the last of its observations. What comes later expires no earlier.

The same observation may come again. Then it counts once, and lives as long as the later arrival:
`since` is the last window of the pane in which it stood before, and -1 for one that is new.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from rsp_engine.model.windows import Pane
from rsp_engine.operators.topk.contract import as_array
from rsp_engine.operators.topk.pane_buffer import check_open, check_order

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
    """The k best of each window, of objects with an attribute in each of some streams.

    `highs` are the largest values of the attributes. An object is seen in stream i at most
    `most[i]` times: `within` its whole life, as in the paper, or any window. Values of one stream
    are put together by `repeats`, and these by `function`. An object must be seen in all `required`
    streams. Scores that differ by no more than `slack` may be equal.
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
        """Return the configuration as a state tells it."""
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
    """An operator of this kind."""

    def __len__(self) -> int:
        """Return how many items are kept: observations, or instances of objects."""

    def arrive(self, pane: Pane, batch: Observations) -> None:
        """Take observations of a pane whose windows are all open."""

    def close(self, window: int) -> TopkAnswer:
        """Close a window, and all before it, and return its ranking."""

    def near(self) -> Integers:
        """Return the keys of the window that closed last that may be as good as the k-th."""

    def state(self) -> StateData:
        """Return all there is to know, as plain data, to be restored from."""


def as_observations(  # noqa: PLR0913, PLR0917 - a column is an argument
    streams: Any,  # noqa: ANN401 - array-like
    keys: Any,  # noqa: ANN401
    positions: Any,  # noqa: ANN401
    values: Any,  # noqa: ANN401
    since: Any = None,  # noqa: ANN401
    hashes: Any = None,  # noqa: ANN401
) -> Observations:
    """Return arrays of a batch, or raise what is wrong with it.

    Keys that belong to one object forever are hashes themselves.
    """
    made = as_array(keys, np.int64)
    batch = Observations(
        as_array(streams, np.int64),
        made,
        as_array(positions, np.int64),
        as_array(values, np.float64),
        np.full(len(made), -1) if since is None else as_array(since, np.int64),
        made if hashes is None else as_array(hashes, np.int64),
    )
    if len(set(map(len, batch))) > 1:
        raise ValueError("observations need as many streams, keys, positions and values")
    if len(made) and (not batch.values.min() >= 0 or batch.values.max() == inf):
        raise ValueError("a value must be a number, and not below 0: this is what is missing")
    return batch


def check_stream_count(config: IncompleteOperatorConfig, batch: Observations) -> None:
    """Raise if a stream is none of those that there are."""
    streams = batch.streams
    if len(streams) and not (
        np.minimum.reduce(streams) >= 0 and np.maximum.reduce(streams) < config.streams
    ):
        raise ValueError(f"there are {config.streams} streams, numbered from 0")


def concatenated(parts: Iterable[Observations]) -> Observations:
    """Return several batches as one."""
    return Observations(*map(np.concatenate, zip(*parts, strict=True)))


class ScoredObject(NamedTuple):
    """Objects, each once: its key, its score, and when it came last."""

    keys: Integers
    scores: Floats
    latest: Integers

    def best(self, k: int) -> ScoredObject:
        """Return the k best, best first."""
        order = np.lexsort((self.keys, self.latest, self.scores))[::-1][:k]
        return ScoredObject(self.keys[order], self.scores[order], self.latest[order])

    def near(self, k: int, slack: float) -> Integers:
        """Return the keys that may be as good as the k-th: slack says what makes no difference."""
        if len(self.keys) <= k:
            return self.keys
        border = float(np.partition(self.scores, len(self.scores) - k)[len(self.scores) - k])
        found: Integers = self.keys[self.scores >= border - slack]
        return found


@dataclass(slots=True)
class ObservationBuffer:
    """Observations that wait for the first window that holds them to close."""

    config: IncompleteOperatorConfig
    closed: int = -1
    _panes: dict[tuple[int, int], list[Observations]] = field(default_factory=dict)

    def add(self, pane: Pane, batch: Observations) -> None:
        """Put a batch into its pane; nothing of it if one of its windows has closed."""
        check_open(pane, self.closed)
        check_stream_count(self.config, batch)
        if len(batch.keys):
            # The caller may use its own arrays again.
            copied: Any = (column.copy() for column in batch)
            self._panes.setdefault((pane.first, pane.last), []).append(Observations(*copied))

    def until(self, window: int) -> Iterator[tuple[Pane, Observations]]:
        """Yield the panes of a window that are not yet given out, in time order."""
        check_order(window, self.closed)
        for windows in sorted(windows for windows in self._panes if windows[0] <= window):
            parts = self._panes.pop(windows)
            yield Pane(*windows), parts[0] if len(parts) == 1 else concatenated(parts)
        self.closed = window

    def state(self) -> StateData:
        """Return what waits, as plain data."""
        panes = [
            {"pane": list(windows), "observations": [c.tolist() for c in concatenated(parts)]}
            for windows, parts in self._panes.items()
        ]
        return {"closed": self.closed, "panes": panes}

    def restore(self, state: StateData) -> None:
        """Take back what waits."""
        self.closed = state["closed"]
        self._panes = {}
        for waiting in state["panes"]:
            first, last = waiting["pane"]
            batch = as_observations(*waiting["observations"])
            self._panes[first, last] = [batch]
