"""The report: at which instants a query is evaluated, each window once and in order.

(SECRET: Botan, Derakhshan, Dindar, Haas, Miller, Tatbul, PVLDB 3(1), 2010: a report says when
the content of windows becomes visible; here always when one of them closes.)

    nonempty   every instant at which one of the windows has content; with ISTREAM and DSTREAM also
               the first empty instant after it, because the last rows end there
    every      all instants from the first to the last at which one of the windows has content

With several windows, an instant is one at which any of them closes. The others contribute the
content of their last closed window. The first report waits until every window has closed once.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import Bounds
    from rsp_engine.operators.windows.r2s import R2S
    from rsp_engine.operators.windows.scan import Scan
    from rsp_engine.options import ReportKind

__all__ = ["Report"]


class Report:
    """The schedule of evaluations. It moves the scans of a query from instant to instant.

    `counts` says that the query has count windows. Its instants are reported once a later element
    has arrived, whatever the bounds: until then another window may close at the same instant.
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
        """Yield the instants that the watermark has passed, with the scans moved to each.

        The scans keep the content of an instant until the next one is requested.
        """
        self.begin(watermark)
        while (move := self.advance(watermark)) is not None:
            instant, is_reported = move
            if is_reported:
                yield instant

    def begin(self, watermark: float) -> None:
        """Set the watermark, before `peek` and `advance`."""
        self._note_watermark(watermark)
        for scan in self._scans:
            scan.has_news = False
            scan.settle(watermark)

    def peek(self, watermark: float) -> tuple[int, int] | None:
        """Return the next instant, if it may be due, and the largest index of a next window."""
        windows = [scan.next(skip_empty=self._may_skip()) for scan in self._scans]
        coming = [(window[1], window[0]) for window in windows if window is not None]
        if not coming or not self._has_passed(min(coming)[0], watermark):
            return None
        return min(coming)[0], max(coming)[1]

    def advance(self, watermark: float) -> tuple[int, bool] | None:
        """Move the scans to the next due instant; return it, and whether it is reported."""
        instant = self._next(watermark)
        return None if instant is None else (instant, self._is_reported())

    def may_be_due(self, watermark: float) -> bool:
        """Return, by a quick check, whether an evaluation may be due."""
        self._note_watermark(watermark)
        if watermark == inf or self._has_passed(self._nothing_before, watermark):
            return True
        for scan in self._scans:  # noqa: SIM110 - called for every element, and `any` is slower
            if scan.has_news:
                return True
        return False

    def waits_for(self, watermark: float) -> float:
        """Return the watermark up to which no more instants will be reported."""
        if self._waiting is None or watermark == inf:
            return watermark
        return min(watermark, self._waiting)

    def _note_watermark(self, watermark: float) -> None:
        """Keep the last watermark before the end of the stream."""
        if watermark < inf:
            self._watermark = watermark

    def _has_passed(self, instant: float, watermark: float) -> bool:
        return watermark >= instant if self._reports_at else watermark > instant

    def _was_closed(self, instant: float) -> bool:
        """Return whether the windows of an instant closed before the end of the stream."""
        return self._watermark >= instant if self._closes_at else self._watermark > instant

    def _next(self, watermark: float) -> int | None:
        """Move the scans to the next instant, if the watermark has passed it."""
        coming = [scan.next(skip_empty=self._may_skip()) for scan in self._scans]
        instants = [window[1] for window in coming if window is not None]
        self._nothing_before = min(instants, default=inf)
        if not instants or not self._has_passed(self._nothing_before, watermark):
            return None
        instant = min(instants)
        # Nothing after the last content is due: not at the end of the stream, and with `every` not
        # before later content shows that the empty windows lie in between.
        waits = self._kind == "every" or (watermark == inf and not self._was_closed(instant))
        if waits and instant > max(scan.last_content() for scan in self._scans):
            self._nothing_before = inf
            self._waiting = None if watermark == inf else instant
            return None
        self._waiting = None
        self._move(instant, coming)
        return instant

    def _may_skip(self) -> bool:
        """Return whether empty windows may be skipped."""
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
        """Return the progress of the report; the scans have their own states."""
        return {
            "watermark": self._watermark,
            "has_started": self._has_started,
            "was_empty": self._was_empty,
            "nothing_before": self._nothing_before,
            "waiting": self._waiting,
        }

    def restore(self, state: StateData) -> None:
        """Restore the progress; the scans are restored separately."""
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
