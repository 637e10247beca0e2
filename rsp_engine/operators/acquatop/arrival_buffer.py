"""Arrivals with a streaming and a remote value, buffered until their window is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.windows import Pane
from rsp_engine.operators.topk.contract import as_array, check_open, check_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData

__all__ = [
    "ArrivalBuffer",
    "JoinedArrivals",
    "ScoreFunction",
    "apply_score",
    "as_joined_arrivals",
    "last_changes",
]

ScoreFunction = Callable[["Floats", "Floats"], "Floats"]
"""F, from streaming and remote values to scores. It is NaN where the remote value is NaN."""


@dataclass(frozen=True, slots=True)
class JoinedArrivals:
    """A batch of arrivals: arrays of equal length, with x_S, x_D and F(x_S, x_D).

    `has_unknown` means that some scores are NaN. `has_rising_keys` means that the keys strictly
    rise, so each occurs once.
    """

    keys: Integers
    positions: Integers
    streaming: Floats
    remote: Floats
    scores: Floats
    smallest: int
    largest: int
    has_unknown: bool
    has_rising_keys: bool

    def latest(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those of the given indices that are the latest arrivals of their keys.

        At equal positions the larger x_S wins, so the result does not depend on batches or changes.
        """
        if self.has_rising_keys:
            return places
        keys = self.keys[places]
        order = keys.argsort(kind="stable")
        in_order = keys[order]
        is_last = np.ones(len(places), dtype=bool)
        np.not_equal(in_order[1:], in_order[:-1], out=is_last[:-1])
        if is_last.all():
            return places
        positions = self.positions[places]
        is_rising = (positions[1:] > positions[:-1]).all()
        if not is_rising:  # otherwise the stable sort has them in order
            order = np.lexsort((self.streaming[places], positions, keys))
        return places[order[is_last]]

    def newest(self) -> JoinedArrivals:
        """Return the arrivals that have the latest position of their key.

        Several arrivals of a key at that position are all kept: a change may decide between them.
        """
        if self.has_rising_keys:
            return self
        in_order = np.sort(self.keys)
        if not (in_order[1:] == in_order[:-1]).any():
            return self
        order = np.lexsort((self.positions, self.keys))
        keys, positions = self.keys[order], self.positions[order]
        is_last = np.r_[keys[1:] != keys[:-1], True]
        newest = positions[is_last][np.cumsum(is_last) - is_last]
        places = np.sort(order[positions == newest])
        columns = (self.keys, self.positions, self.streaming, self.remote, self.scores)
        keys, positions, streaming, remote, scores = (column[places] for column in columns)
        has_unknown = self.has_unknown and bool(np.isnan(scores).any())
        return replace(
            self,
            keys=keys,
            positions=positions,
            streaming=streaming,
            remote=remote,
            scores=scores,
            has_unknown=has_unknown,
        )


def as_joined_arrivals(columns: tuple[Any, Any, Any, Any], score: ScoreFunction) -> JoinedArrivals:
    """Convert array-likes to a batch with scores; raise ValueError if they are not one."""
    keys, positions = (as_array(column, np.int64) for column in columns[:2])
    streaming, remote = (as_array(column, np.float64) for column in columns[2:])
    if not len(keys) == len(positions) == len(streaming) == len(remote):
        raise ValueError("keys, positions and both scores must be of equal length")
    if not len(keys):
        return JoinedArrivals(
            keys,
            positions,
            streaming,
            remote,
            streaming,
            0,
            0,
            has_unknown=False,
            has_rising_keys=True,
        )
    # Keys are numbered in order of first arrival, so this is common.
    is_rising = bool((keys[1:] > keys[:-1]).all())
    smallest, largest = int(keys[0]), int(keys[-1])
    if not is_rising:
        smallest, largest = int(keys.min()), int(keys.max())
    if smallest < 0:
        raise ValueError("a key must not be negative")
    if np.isnan(streaming.min()):
        raise ValueError("a score must be a number")
    scores, has_unknown = apply_score(streaming, remote, score)
    return JoinedArrivals(
        keys, positions, streaming, remote, scores, smallest, largest, has_unknown, is_rising
    )


def apply_score(streaming: Floats, remote: Floats, score: ScoreFunction) -> tuple[Floats, bool]:
    """Return the scores, and whether some are NaN; raise ValueError if one is where x_D is not."""
    if not len(streaming):
        return streaming, False
    with np.errstate(all="ignore"):
        scores = np.asarray(score(streaming, remote), dtype=np.float64)
    if scores.shape != streaming.shape:
        raise ValueError("a scoring function must give one score for each pair of values")
    has_unknown = bool(np.isnan(scores.min()))
    if has_unknown and (np.isnan(scores) & ~np.isnan(remote)).any():
        raise ValueError("a score must be a number")
    return scores, has_unknown


class ArrivalBuffer:
    """All arrivals of the panes that no window has taken yet.

    The buffer cannot keep only the best: the latest arrival of a key counts, even if it is worse.
    """

    def __init__(self) -> None:
        self.closed = -1
        self._panes: dict[Pane, list[JoinedArrivals]] = {}

    def add(self, pane: Pane, batch: JoinedArrivals) -> None:
        """Add a batch to its pane; raise ValueError if a window of the pane has closed."""
        check_open(pane, self.closed)
        if len(batch.keys):
            self._panes.setdefault(pane, []).append(batch)

    def until(self, window: int) -> Iterator[tuple[Pane, JoinedArrivals]]:
        """Remove and yield the panes that begin by a window, in time order, with their arrivals."""
        check_order(window, self.closed)
        for pane in sorted(pane for pane in self._panes if pane.first <= window):
            parts = self._panes.pop(pane)
            yield pane, _concatenate(parts)

    def within(self, window: int) -> Iterator[tuple[Pane, JoinedArrivals]]:
        """Yield the panes that a window contains, with the newest arrivals of their keys."""
        check_order(window, self.closed)
        for pane, parts in self._panes.items():
            if len(parts) > 1:
                self._panes[pane] = [_concatenate(parts).newest()]
            if pane.first <= window <= pane.last:
                yield pane, self._panes[pane][0]

    def holds(self, keys: Integers) -> Booleans:
        """Return which keys have an arrival in the buffer."""
        parts = [part.keys for parts in self._panes.values() for part in parts]
        return np.isin(keys, np.concatenate(parts)) if parts else np.zeros(len(keys), dtype=bool)

    def close(self, window: int) -> None:
        """Close a window, and remove the panes that no later window contains."""
        check_order(window, self.closed)
        self.closed = window
        self._panes = {pane: parts for pane, parts in self._panes.items() if pane.last > window}

    def change(self, keys: Integers, remote: Floats, score: ScoreFunction) -> None:
        """Set new remote values of keys, which are sorted, in the buffered arrivals."""
        self._panes = {
            pane: [_with_remote(part, keys, remote, score) for part in parts]
            for pane, parts in self._panes.items()
        }

    def state(self) -> StateData:
        """Return the buffered arrivals as plain data, without scores."""
        panes = {}
        for pane, parts in sorted(self._panes.items(), key=itemgetter(0)):
            whole = _concatenate(parts)
            columns = (whole.keys, whole.positions, whole.streaming, whole.remote)
            panes[pane.name] = list(map(list, zip(*(c.tolist() for c in columns), strict=True)))
        return {"closed": self.closed, "size": len(panes), "panes": panes}

    def restore(self, state: StateData, score: ScoreFunction) -> None:
        """Restore the buffered arrivals, and compute their scores."""
        self.closed = state["closed"]
        if len(state["panes"]) != state["size"]:
            raise ValueError(f"{state['size']} panes were saved")
        self._panes = {}
        for pane, rows in sorted((Pane.named(n), r) for n, r in state["panes"].items()):
            keys, positions, streaming, remote = zip(*rows, strict=True) if rows else ((),) * 4
            self._panes[pane] = [as_joined_arrivals((keys, positions, streaming, remote), score)]


def last_changes(
    keys: Integers, remote: Floats, streaming: Floats
) -> tuple[Integers, Floats, Floats]:
    """Sort changes by key, and keep the last change of each key."""
    if not len(keys) == len(remote) == len(streaming):
        raise ValueError("keys and remote values must be of equal length")
    order = np.argsort(keys, kind="stable")
    is_last = np.ones(len(keys), dtype=bool)
    is_last[:-1] = keys[order][1:] != keys[order][:-1]
    order = order[is_last]
    return keys[order], remote[order], streaming[order]


def _concatenate(parts: list[JoinedArrivals]) -> JoinedArrivals:
    if len(parts) == 1:
        return parts[0]
    return JoinedArrivals(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.streaming for part in parts]),
        np.concatenate([part.remote for part in parts]),
        np.concatenate([part.scores for part in parts]),
        min(part.smallest for part in parts),
        max(part.largest for part in parts),
        any(part.has_unknown for part in parts),
        has_rising_keys=False,
    )


def _with_remote(
    part: JoinedArrivals, keys: Integers, remote: Floats, score: ScoreFunction
) -> JoinedArrivals:
    places = np.minimum(np.searchsorted(keys, part.keys), len(keys) - 1)
    is_changed = keys[places] == part.keys
    if not is_changed.any():
        return part
    values = np.where(is_changed, remote[places], part.remote)
    scores, has_unknown = apply_score(part.streaming, values, score)
    return replace(part, remote=values, scores=scores, has_unknown=has_unknown)
