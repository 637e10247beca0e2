"""The live view of a run on a terminal: frames on standard error, a few a second.

A thread of its own draws, so a run is looked at even while a long window is evaluated. Frames are
as many as cost little: at most eight a second, and never more than a few hundredths of the time.
Whatever ends the run, the last frame stays and the terminal is as it was.
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
"""So many frames a second at most."""
_COST = 40
"""Between two frames passes so many times what drawing one took of the processor."""
_LATELY = 3.0
"""Over so many seconds the throughput is measured."""


class EventRate:
    """How much came in a second, lately; times are given, never asked for.

    >>> rate = EventRate()
    >>> rate(0.0, 0), rate(1.0, 500), rate(2.0, 1500)
    (0.0, 500.0, 750.0)
    >>> rate(5.0, 1500)
    0.0
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def __call__(self, now: float, count: int) -> float:
        """Return the rate at an instant at which so much has come in all."""
        self._seen.append((now, count))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _LATELY:
            self._seen.popleft()
        (then, before), (last, after) = self._seen[0], self._seen[-1]
        return (after - before) / (last - then) if last > then else 0.0


class LiveView:
    """Shows a watch on a console while it is entered."""

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
        self._live.stop()  # the last frame is drawn, and the cursor is there again

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
        """Draw until it is over."""
        cost = 0.0
        while not self._is_over.wait(max(1 / FRAMES, cost * _COST)):
            begun = time.thread_time()
            self._live.refresh()
            cost = time.thread_time() - begun
