"""The CPU seconds and the peak memory of a process and all that it starts."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from resource import struct_rusage

__all__ = ["Usage", "adopt_orphans", "measure"]

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_PATIENCE_S = 60  # how long a process may outlive the one that started it, as the JVM of PySpark
_PER_MB = 1 << 20 if sys.platform == "darwin" else 1 << 10  # the unit of ru_maxrss


class Usage(NamedTuple):
    """What a process and its descendants used."""

    cpu_s: float
    peak_mb: float
    """That of the largest process."""


def adopt_orphans() -> None:
    """Become the parent of processes that outlive theirs, so that their usage is counted."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def measure(command: Sequence[str], folder: Path, log: Path) -> Usage:
    """Run a command in a folder, and return what it used; raise CalledProcessError if it fails.

    Python keeps the bytecode of what it imports, whatever the environment says.
    """
    known = {name: text for name, text in os.environ.items() if name != _NO_BYTECODE}
    with log.open("wb") as messages:
        process = subprocess.Popen(  # noqa: S603 - the commands of peers, and ours
            command, stdout=messages, stderr=messages, cwd=folder, env=known
        )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    usages = [used, *_orphans()]
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    cpu_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return Usage(cpu_s, max(usage.ru_maxrss for usage in usages) / _PER_MB)


def _orphans() -> Iterator[struct_rusage]:
    """Wait for the processes that were adopted, and yield what each used."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            pid, _, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:  # there is none
            return
        if pid:
            yield used
        else:
            time.sleep(0.05)
    raise TimeoutError(f"a process still ran {_PATIENCE_S} s after the one that started it")
