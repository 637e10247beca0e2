"""The arrival times of the triples of a window: for each triple its latest arrival in the window.

Where the content of a window is the solutions of its elements, the nodes of the solutions have the
arrival times (see `element_solutions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.operators.windows.element_solutions import CAME_PREDICATE
from rsp_engine.operators.windows.time_windows import TimedScan

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    import pyoxigraph as ox

    from rsp_engine.operators.windows.scan import Contents

    Arrival = ox.Triple | ox.NamedNode | ox.BlankNode  # a triple, or the node of a solution

__all__ = ["ArrivalTimes"]


class ArrivalTimes:
    """The event times of the triples of a window; in a count window, the numbers of its items.

    Time of a move: the triples that enter and leave. Memory: the triples of the window.
    """

    def __init__(self) -> None:
        self._parts: dict[Hashable, dict[Arrival, int]] = {}
        self._times: dict[Arrival, dict[Hashable, int]] = {}

    def move(self, scan: Contents) -> None:
        """Move to the content of the last closed window of a scan."""
        content = dict(scan.content())
        for key in [key for key in self._parts if key not in content]:
            for arrival in self._parts.pop(key):
                del self._times[arrival][key]
                if not self._times[arrival]:
                    del self._times[arrival]
        for key in [key for key in content if key not in self._parts]:
            part: dict[Arrival, int] = {}
            for arrival, time in _arrivals(scan, key, content[key]):
                part[arrival] = max(time, part.get(arrival, time))
            self._parts[key] = part
            for arrival, time in part.items():
                self._times.setdefault(arrival, {})[key] = time

    def of(self, arrivals: Iterable[Arrival]) -> int | None:
        """Return the arrival time of the last of some triples; None if one is not in the window."""
        times = [self._times.get(arrival) for arrival in arrivals]
        known = [max(by_part.values()) for by_part in times if by_part]
        return max(known) if known and len(known) == len(times) else None


def _arrivals(
    scan: Contents, key: Hashable, part: Sequence[ox.Triple]
) -> Iterator[tuple[Arrival, int]]:
    """Yield the arrivals of a part with their times: triples, or the nodes of solutions."""
    if isinstance(scan, TimedScan):
        yield from zip(part, scan.times(key).tolist(), strict=True)  # type: ignore[arg-type]
        return
    for triple in part:
        if triple.predicate.value == CAME_PREDICATE:
            yield triple.subject, int(triple.object.value)  # type: ignore[union-attr]
        elif isinstance(key, int):  # a count window has a part for each number
            yield triple, key
