"""The live view of a run on a terminal: a few frames a second, on standard error.

A thread of its own draws, so the view also changes while a long window is evaluated. Drawing is
bounded: at most eight frames a second, and at most a few hundredths of the processor time. However
the run ends, the last frame stays, and the terminal is restored.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from rsp_engine.cli.view_frame import Moment, frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.console import Console, RenderableType

    from rsp_engine.monitor.run_monitor import RunMonitor

__all__ = ["FRAMES", "EventRate", "LiveView"]

FRAMES = 8
"""The most frames a second."""
_COST = 40
"""The least pause between two frames, as a multiple of the processor time of the last one."""
_RATE_S = 3.0
"""The time over which the throughput is measured, in seconds."""


class EventRate:
    """A rate of events over the last seconds; the caller passes the time.

    >>> rate = EventRate()
    >>> rate(0.0, 0), rate(1.0, 500), rate(2.0, 1500)
    (0.0, 500.0, 750.0)
    >>> rate(5.0, 1500)
    0.0
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def __call__(self, now: float, count: int) -> float:
        """Add the total count at an instant, and return the rate per second."""
        self._samples.append((now, count))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _RATE_S:
            self._samples.popleft()
        (first, before), (last, after) = self._samples[0], self._samples[-1]
        return (after - before) / (last - first) if last > first else 0.0


class LiveView:
    """A view that shows a monitor on a console while it is entered."""

    def __init__(
        self,
        watch: RunMonitor,
        console: Console,
        hide: Callable[[str], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watch = watch
        self._hide = hide
        self._console = console
        self._clock = clock
        self._began = clock()
        self._rate = EventRate()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="rsp-live-view", daemon=True)
        self._live = Live(
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
            get_renderable=self._frame,
            vertical_overflow="crop",
        )

    def __enter__(self) -> None:
        self._began = self._clock()
        self._live.start()
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._live.stop()  # draws the last frame, and shows the cursor again

    def _frame(self) -> RenderableType:
        now = self._clock()
        rate = self._rate(now, self._watch.elements)
        height = self._console.size.height
        ascii_only = self._console.options.ascii_only
        moment = Moment(now - self._began, rate, height, ascii_only)
        try:
            return frame(self._watch, moment, self._hide)
        except Exception as error:
            return Text(f"the live view cannot be drawn: {type(error).__name__}: {error}")

    def _draw(self) -> None:
        """Draw frames until the view is left."""
        cost = 0.0
        while not self._is_over.wait(max(1 / FRAMES, cost * _COST)):
            start = time.thread_time()
            self._live.refresh()
            cost = time.thread_time() - start
