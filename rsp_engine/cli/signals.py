"""Signals that ask a command to stop: Ctrl-C and SIGTERM."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["exit_at_once", "interrupt", "on_signals"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_signals(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Handle the signals in the main thread, also where the parent process has them ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.signal(number, handler)) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handled in before:
            signal.signal(number, handled)


def exit_at_once(number: int, frame: object) -> NoReturn:
    """Exit at once, with the exit code of the signal."""
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def interrupt(number: int, frame: object) -> NoReturn:
    """End what goes on until it is interrupted; both signals mean the same."""
    raise KeyboardInterrupt
