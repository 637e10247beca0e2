"""Arrivals with two sides, as they wait for their window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.windows import Pane
from rsp_engine.operators.topk.contract import as_array
from rsp_engine.operators.topk.pane_buffer import check_open, check_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData

__all__ = ["ArrivalBuffer", "JoinedObject", "ScoreFunction"]

ScoreFunction = Callable[["Floats", "Floats"], "Floats"]
"""F: from streaming and remote values to scores. What is not known remotely is NaN, and so is F."""


@dataclass(frozen=True, slots=True)
class JoinedObject:
    """Arrivals as arrays of equal length, with x_S, x_D and F(x_S, x_D).

    Their smallest and largest key are known, whether a remote value is missing, and whether the
    keys rise: then each comes once.
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
        """Return those of some arrivals that are the latest of their keys.

        Of two arrivals at once the larger x_S counts, so that neither batches nor changes matter.
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
        if not (positions[1:] > positions[:-1]).all():  # else they stand in their order already
            order = np.lexsort((self.streaming[places], positions, keys))
        return places[order[is_last]]

    def newest(self) -> JoinedObject:
        """Return the arrivals without those that are older than another of their key.

        Of a key that came twice at once both are left: which is better, changes may change.
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


def as_joined(columns: tuple[Any, Any, Any, Any], score: ScoreFunction) -> JoinedObject:
    """Return arrays of a batch with their scores, or raise what is wrong with it."""
    keys, positions = (as_array(column, np.int64) for column in columns[:2])
    streaming, remote = (as_array(column, np.float64) for column in columns[2:])
    if not len(keys) == len(positions) == len(streaming) == len(remote):
        raise ValueError("keys, positions and both scores must be of equal length")
    if not len(keys):
        facts = (0, 0, False, True)
        return JoinedObject(keys, positions, streaming, remote, streaming, *facts)
    # New keys are numbered as they come, so this is worth a look.
    is_rising = bool((keys[1:] > keys[:-1]).all())
    smallest, largest = int(keys[0]), int(keys[-1])
    if not is_rising:
        smallest, largest = int(keys.min()), int(keys.max())
    if smallest < 0:
        raise ValueError("a key must not be negative")
    if np.isnan(streaming.min()):
        raise ValueError("a score must be a number")
    scores, has_unknown = scored(streaming, remote, score)
    facts = (smallest, largest, has_unknown, is_rising)
    return JoinedObject(keys, positions, streaming, remote, scores, *facts)


def scored(streaming: Floats, remote: Floats, score: ScoreFunction) -> tuple[Floats, bool]:
    """Return the scores, and whether some are NaN; they may be so only where x_D is."""
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
    """All arrivals of a pane, until the first window that holds them is looked at.

    All, because a later arrival of a key counts even where it is worse.
    """

    def __init__(self) -> None:
        self.closed = -1
        self._panes: dict[Pane, list[JoinedObject]] = {}

    def add(self, pane: Pane, batch: JoinedObject) -> None:
        """Put a batch into its pane; nothing of it if one of its windows has closed."""
        check_open(pane, self.closed)
        if len(batch.keys):
            self._panes.setdefault(pane, []).append(batch)

    def until(self, window: int) -> Iterator[tuple[Pane, JoinedObject]]:
        """Yield the panes of a window, in time order, and their arrivals."""
        check_order(window, self.closed)
        for pane in sorted(pane for pane in self._panes if pane.first <= window):
            parts = self._panes.pop(pane)
            yield pane, _joined(parts)

    def within(self, window: int) -> Iterator[tuple[Pane, JoinedObject]]:
        """Yield the panes that a window holds, and the latest arrivals of their keys; keep them."""
        check_order(window, self.closed)
        for pane, parts in self._panes.items():
            if len(parts) > 1:
                self._panes[pane] = [_joined(parts).newest()]
            if pane.first <= window <= pane.last:
                yield pane, self._panes[pane][0]

    def holds(self, keys: Integers) -> Booleans:
        """Tell which keys have an arrival here."""
        parts = [part.keys for parts in self._panes.values() for part in parts]
        return np.isin(keys, np.concatenate(parts)) if parts else np.zeros(len(keys), dtype=bool)

    def close(self, window: int) -> None:
        """Close a window, and forget the panes that no later one holds."""
        check_order(window, self.closed)
        self.closed = window
        self._panes = {pane: parts for pane, parts in self._panes.items() if pane.last > window}

    def change(self, keys: Integers, remote: Floats, score: ScoreFunction) -> None:
        """Give arrivals that wait the remote values of their keys, which come in order."""
        self._panes = {
            pane: [_changed(part, keys, remote, score) for part in parts]
            for pane, parts in self._panes.items()
        }

    def state(self) -> StateData:
        """Return what waits, as plain data; scores can be worked out anew."""
        panes = {}
        for pane, parts in sorted(self._panes.items(), key=itemgetter(0)):
            whole = _joined(parts)
            columns = (whole.keys, whole.positions, whole.streaming, whole.remote)
            panes[pane.name] = list(map(list, zip(*(c.tolist() for c in columns), strict=True)))
        return {"closed": self.closed, "size": len(panes), "panes": panes}

    def restore(self, state: StateData, score: ScoreFunction) -> None:
        """Take back what waits."""
        self.closed = state["closed"]
        if len(state["panes"]) != state["size"]:
            raise ValueError(f"{state['size']} panes were saved")
        self._panes = {}
        for pane, rows in sorted((Pane.named(n), r) for n, r in state["panes"].items()):
            keys, positions, streaming, remote = zip(*rows, strict=True) if rows else ((),) * 4
            self._panes[pane] = [as_joined((keys, positions, streaming, remote), score)]


def last_of_each(
    keys: Integers, remote: Floats, streaming: Floats
) -> tuple[Integers, Floats, Floats]:
    """Return changes in the order of their keys, of each key the last."""
    if not len(keys) == len(remote) == len(streaming):
        raise ValueError("keys and remote values must be of equal length")
    order = np.argsort(keys, kind="stable")
    is_last = np.ones(len(keys), dtype=bool)
    is_last[:-1] = keys[order][1:] != keys[order][:-1]
    order = order[is_last]
    return keys[order], remote[order], streaming[order]


def _joined(parts: list[JoinedObject]) -> JoinedObject:
    if len(parts) == 1:
        return parts[0]
    return JoinedObject(
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


def _changed(
    part: JoinedObject, keys: Integers, remote: Floats, score: ScoreFunction
) -> JoinedObject:
    places = np.minimum(np.searchsorted(keys, part.keys), len(keys) - 1)
    is_changed = keys[places] == part.keys
    if not is_changed.any():
        return part
    values = np.where(is_changed, remote[places], part.remote)
    scores, has_unknown = scored(part.streaming, values, score)
    return replace(part, remote=values, scores=scores, has_unknown=has_unknown)
