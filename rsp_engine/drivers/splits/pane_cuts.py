"""The cuts of a split into panes: which lines or elements fall into each pane of each window.

Windows whose RANGE is a multiple of their STEP cut a stream at the same instants if their STEP, t0
and bounds are equal: their panes have the same content.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.windows import Pane

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from rsp_engine.drivers.splits.pushdown import Pushdown
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.windows import TimeFrame

__all__ = ["PaneCuts", "last_closed", "panes_of"]


class PaneCuts:
    """The panes of segments, whose `edges` are indices of `times`; equal cuts are made once."""

    def __init__(self, times: Integers, edges: Sequence[int]) -> None:
        self._times = times
        self._edges = edges
        self._windows: dict[TimeFrame, tuple[Integers, Integers]] = {}
        self._groups: dict[Hashable, list[tuple[int, Integers]]] = {}
        self.taken = np.zeros(len(times), dtype=bool)
        """Which indices are in a pane of the windows that were asked for so far."""

    def shared(
        self, readers: Sequence[Pushdown]
    ) -> Iterator[tuple[int, Integers, list[tuple[Pushdown, Pane]]]]:
        """Yield what is in both a segment and a pane, as the number of the segment and indices.

        Each comes with the readers that have such a pane, and with the pane of each.
        """
        by_cut: dict[Hashable, list[Pushdown]] = {}
        for reader in readers:
            by_cut.setdefault(_cut(reader.frame), []).append(reader)
        for cut, alike in by_cut.items():
            windows = [self._windows_of(reader.frame) for reader in alike]
            for number, indices in self._groups_of(cut, *windows[0]):
                at = indices[0]
                panes = [Pane(int(first[at]), int(last[at])) for first, last in windows]
                yield number, indices, list(zip(alike, panes, strict=True))

    def _windows_of(self, frame: TimeFrame) -> tuple[Integers, Integers]:
        """Return the first and the last window of each index."""
        if frame not in self._windows:
            first, last = self._windows[frame] = panes_of(frame, self._times)
            self.taken |= first <= last
        return self._windows[frame]

    def _groups_of(
        self, cut: Hashable, first: Integers, last: Integers
    ) -> list[tuple[int, Integers]]:
        """Return the number of a segment, and the indices of what is in it and in one pane."""
        if cut not in self._groups:
            self._groups[cut] = list(_groups(self._edges, first, last))
        return self._groups[cut]


def _cut(frame: TimeFrame) -> Hashable:
    """Return what the instants at which windows begin or end depend on."""
    is_multiple = frame.range % frame.step == 0
    return (frame.t0, frame.step, frame.bounds) if is_multiple else frame


def _groups(
    edges: Sequence[int], first: Integers, last: Integers
) -> Iterator[tuple[int, Integers]]:
    for number, (start, end) in enumerate(pairwise(edges)):
        low, high = first[start:end], last[start:end]
        inside = np.flatnonzero(low <= high)
        if not len(inside):
            continue
        keys = (low + high)[inside]  # both rise with time, so their sum identifies a pane
        order = np.argsort(keys, kind="stable")
        cuts = np.flatnonzero(np.diff(keys[order])) + 1
        for part in np.split(inside[order], cuts):
            yield number, part + start


def panes_of(frame: TimeFrame, times: Integers) -> tuple[Integers, Integers]:
    """Return the first and the last window of each instant; if first > last, there is none.

    This is `TimeFrame.pane` for arrays.
    """
    since = times - frame.t0
    if frame.bounds == "(]":
        first, last = -((frame.range - since) // frame.step), -(-since // frame.step) - 1
    else:
        first, last = (since - frame.range) // frame.step + 1, since // frame.step
    return np.maximum(first, 0), last


def last_closed(frame: TimeFrame, watermarks: Integers) -> Integers:
    """Return the last window that each watermark closes: `TimeFrame.last_closed` for arrays."""
    since = watermarks - frame.t0 - frame.range
    return -(-since // frame.step) - 1 if frame.bounds == "(]" else since // frame.step
