"""The command on a terminal: a pseudo-terminal that keeps all that is written to it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
"""What hides and shows the cursor."""
ESCAPE = b"\x1b"


class Done(NamedTuple):
    """The outcome of a command: its exit code, the output on the terminal, and the piped output."""

    code: int
    seen: bytes
    piped: bytes


def on_a_terminal(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    is_piped: bool = False,
    until: bytes | None = None,
    signal: int | None = None,
    meanwhile: Callable[[bytes], None] = lambda _: None,
) -> Done:
    """Run `rsp` on a terminal; its standard output may be piped elsewhere.

    Where the terminal has seen something, a signal is sent, if one is given. `meanwhile` is called
    with what the terminal has seen so far.
    """
    screen, inner = pty.openpty()
    command = [sys.executable, "-m", "rsp_engine.cli", *arguments]
    usual = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", "RSP_RUNNER": "local"}
    process = subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if is_piped else inner,
        stderr=inner,
        env={**os.environ, **usual, **(environment or {})},
        start_new_session=True,
    )
    os.close(inner)
    seen, end = b"", time.monotonic() + 60
    while time.monotonic() < end and (data := _read(screen, process)) is not None:
        seen += data
        meanwhile(seen)
        if until is not None and until in seen and signal is not None:
            os.kill(process.pid, signal)
            signal = None
    if process.poll() is None:
        process.kill()
    piped, _ = process.communicate()
    os.close(screen)
    return Done(process.returncode, seen, piped or b"")


def _read(screen: int, process: subprocess.Popen[bytes]) -> bytes | None:
    """Return the new output of the terminal; nothing once the command is done."""
    is_over = process.poll() is not None
    ready, _, _ = select.select([screen], [], [], 0 if is_over else 0.05)
    if not ready:
        return None if is_over else b""
    try:
        return os.read(screen, 65536)
    except OSError:  # the last one who had it open is gone
        process.wait()
        return None
