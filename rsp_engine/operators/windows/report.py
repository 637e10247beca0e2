"""The report: at which instants a query is evaluated, each window once and in order.

(SECRET: Botan, Derakhshan, Dindar, Haas, Miller, Tatbul, PVLDB 3(1), 2010: a report says when
the content of windows becomes visible; here always when one of them closes.)

    nonempty   an instant counts if one of the windows holds something; ISTREAM and DSTREAM also
               see the first empty one after it, since rows end there
    every      all instants from the first to the last at which one of the windows holds something

With several windows, an instant is one at which one of them closes; each of the others counts
with the content it had when it last closed, and nothing counts before each has closed once.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import Bounds
    from rsp_engine.operators.windows.r2s import R2S
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["Report", "ReportKind"]

ReportKind = Literal["nonempty", "every"]


class Report:
    """Moves the scans of a query from one instant of evaluation to the next.

    A query that also `counts` elements is evaluated at an instant when later elements have come,
    whatever the bounds: until then another window may close at the same instant.
    """

    def __init__(
        self,
        scans: Sequence[Scan],
        kind: ReportKind,
        r2s: R2S,
        bounds: Bounds,
        *,
        counts: bool = False,
    ) -> None:
        self._scans = scans
        self._kind = kind
        self._sees_ends = r2s != "RSTREAM"
        self._closes_at = bounds == "[)"
        self._reports_at = self._closes_at and not counts
        self._watermark: float = -inf
        self._has_started = False
        self._was_empty = True
        self._nothing_before: float = -inf
        self._waiting: int | None = None

    def due(self, watermark: float) -> Iterator[int]:
        """Yield the instants that the watermark has passed, the scans moved to each.

        The content of the scans is that of the instant until the next one is asked for.
        """
        self.begin(watermark)
        while (moved := self.advance(watermark)) is not None:
            instant, is_reported = moved
            if is_reported:
                yield instant

    def begin(self, watermark: float) -> None:
        """Learn how far the watermark has come, before `peek` and `advance`."""
        self._see(watermark)
        for scan in self._scans:
            scan.has_news = False
            scan.settle(watermark)

    def peek(self, watermark: float) -> tuple[int, int] | None:
        """Return the next instant, if it may be due, and the last index of a window that closes."""
        found = [scan.next(skip_empty=self._may_skip()) for scan in self._scans]
        coming = [(window[1], window[0]) for window in found if window is not None]
        if not coming or not self._has_passed(min(coming)[0], watermark):
            return None
        return min(coming)[0], max(coming)[1]

    def advance(self, watermark: float) -> tuple[int, bool] | None:
        """Move the scans to the next instant, if one is due, and tell whether it is reported."""
        instant = self._next(watermark)
        return None if instant is None else (instant, self._is_reported())

    def may_be_due(self, watermark: float) -> bool:
        """Tell, without looking closer, whether anything may be due."""
        self._see(watermark)
        if watermark == inf or self._has_passed(self._nothing_before, watermark):
            return True
        for scan in self._scans:  # noqa: SIM110 - asked for every element, and `any` is slower
            if scan.has_news:
                return True
        return False

    def quiet_until(self) -> float:
        """Return the largest watermark that is known, without looking closer, to make nothing due.

        It holds until an element is news to one of the scans.
        """
        if any(scan.has_news for scan in self._scans):
            return -inf
        return self._nothing_before - 1 if self._reports_at else self._nothing_before

    def waits_for(self, watermark: float) -> float:
        """Return the watermark up to which nothing more will be reported."""
        if self._waiting is None or watermark == inf:
            return watermark
        return min(watermark, self._waiting)

    def _see(self, watermark: float) -> None:
        """Remember how far the watermark came before the end."""
        if watermark < inf:
            self._watermark = watermark

    def _has_passed(self, instant: float, watermark: float) -> bool:
        return watermark >= instant if self._reports_at else watermark > instant

    def _was_closed(self, instant: float) -> bool:
        """Tell whether windows of an instant were closed before the end of the stream."""
        return self._watermark >= instant if self._closes_at else self._watermark > instant

    def _next(self, watermark: float) -> int | None:
        """Move to the next instant, if it is known to be over."""
        coming = [scan.next(skip_empty=self._may_skip()) for scan in self._scans]
        instants = [window[1] for window in coming if window is not None]
        self._nothing_before = min(instants, default=inf)
        if not instants or not self._has_passed(self._nothing_before, watermark):
            return None
        instant = min(instants)
        # Past the last content nothing is due: not at the end of a stream, and not before the
        # windows in between are known to be in between.
        waits = self._kind == "every" or (watermark == inf and not self._was_closed(instant))
        if waits and instant > max(scan.last_content() for scan in self._scans):
            self._nothing_before = inf
            self._waiting = None if watermark == inf else instant
            return None
        self._waiting = None
        self._move(instant, coming)
        return instant

    def _may_skip(self) -> bool:
        """Tell whether windows may be passed over until one holds something."""
        if self._kind == "every" and self._has_started:
            return False
        is_over = self._was_empty or not self._sees_ends
        return is_over and all(scan.is_empty() for scan in self._scans)

    def _move(self, instant: int, coming: Sequence[tuple[int, int] | None]) -> None:
        if len(self._scans) == 1 and coming[0] is not None:
            self._scans[0].close(coming[0][0])
        else:
            for scan in self._scans:
                scan.close_until(instant)

    def state(self) -> StateData:
        """Return how far the report has come, beside the scans."""
        return {
            "watermark": self._watermark,
            "has_started": self._has_started,
            "was_empty": self._was_empty,
            "nothing_before": self._nothing_before,
            "waiting": self._waiting,
        }

    def restore(self, state: StateData) -> None:
        """Go on from a state; the scans are restored by themselves."""
        self._watermark, self._nothing_before = state["watermark"], state["nothing_before"]
        self._has_started, self._was_empty = state["has_started"], state["was_empty"]
        self._waiting = state["waiting"]

    def _is_reported(self) -> bool:
        if any(scan.closed < 0 for scan in self._scans):
            return False
        is_empty = all(scan.is_empty() for scan in self._scans)
        ends = self._sees_ends and not self._was_empty
        if is_empty and not ends and not (self._kind == "every" and self._has_started):
            return False
        self._has_started = True
        self._was_empty = is_empty
        return True
