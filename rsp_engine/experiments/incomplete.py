"""The synthetic streams of the incomplete-streams paper: the same for the same seed.

Each of d streams tells every object at most once. To make an item of a stream, the generator picks,
with probability rho, one of the last C items of the other streams that this one has not told, and a
fresh one otherwise, or if there is none. Values are uniform in [0, 1): multiples of 2^-32, so that
sums of them are exact in any order. Streams take turns by chance.

    python -m rsp_engine.experiments.incomplete [--seed N] [--write FOLDER ...]

prints what SLA, EAA and the approximate operator keep of windows, and how precise the last one is,
beside the figures of the paper. With a folder, it writes streams of flows and of camera sightings
there instead, for the queries `flows` and `cameras`.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
6.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.dfc import Dice, check_whole

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["Observed", "observed"]

_UNIT = 1 << 32
_TRIES = 8  # picks by chance before all that could be picked are looked at


class Observed(NamedTuple):
    """Observations in their order: streams and objects by number, and values."""

    streams: Integers
    keys: Integers
    values: Floats


def observed(count: int, d: int, rho: float, seed: int = 0, c: int = 100) -> Observed:
    """Return so many observations of d streams.

    >>> made = observed(10, d=2, rho=0.5)
    >>> made.streams.tolist(), made.keys.tolist()
    ([1, 0, 1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    """
    check_whole("streams", d, 1, 64)
    check_whole("recent values", c, 1, 1_000_000)
    if not 0 <= rho <= 1:
        raise ValueError("rho is a probability")
    streams = Dice(seed, 10).below(d, count)
    repeats = (Dice(seed, 11).below(_UNIT, count) < rho * _UNIT).tolist()
    picks = Dice(seed, 12).below(_UNIT, count, _TRIES).tolist()
    values = Dice(seed, 13).below(_UNIT, count) / _UNIT
    recent: list[deque[int]] = [deque(maxlen=c) for _ in range(d)]
    told: list[set[int]] = [set() for _ in range(d)]
    keys, fresh = [], 0
    for stream, repeat, pick in zip(streams.tolist(), repeats, picks, strict=True):
        key = _picked(stream, recent, told[stream], pick) if repeat else None
        if key is None:
            key, fresh = fresh, fresh + 1
        recent[stream].append(key)
        told[stream].add(key)
        keys.append(key)
    return Observed(streams, np.array(keys, dtype=np.int64), values)


def _picked(stream: int, recent: list[deque[int]], told: set[int], picks: list[int]) -> int | None:
    """Return a recent item of another stream, all as likely that this one has not told."""
    others = [items for number, items in enumerate(recent) if number != stream]
    size = sum(map(len, others))
    if not size:
        return None
    for pick in picks:
        place = pick % size
        for items in others:
            if place < len(items):
                if items[place] not in told:
                    return items[place]
                break
            place -= len(items)
    left = [key for items in others for key in items if key not in told]
    return left[picks[0] % len(left)] if left else None
