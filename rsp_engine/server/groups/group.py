"""A group: the process of one or more queries, watched over by the server.

A process that crashes, takes too much memory, or evaluates a window for too long is killed, and
started again from its checkpoint, after a pause. If that happens again and again at the same place,
the group has failed: it stays stopped, with its reason, and no other group notices.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GroupState", "WorkerGroup", "WorkerLimits"]

GroupState = Literal["starting", "running", "restarting", "stopped", "finished", "failed"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 15.0
_MOST_FAILURES = 4
"""How often a process may fail at the same place."""
_STEADY_S = 120.0
"""A process that has run for so long has passed the place where the one before it failed."""
_START_S = 60.0
"""How long a process may take to start."""
_STOP_S = 10.0
"""How long a process may take to finish its micro-batch."""
_LASTING = ("DriverError", "SinkError")
"""Kinds of failures that may be over after a while: a full disk, a locked folder."""
_LARGEST_MESSAGES = 1 << 20


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """The limits of the process of a group."""

    memory: int
    evaluation_s: float


@dataclass(slots=True)
class _Run:
    """One process of a group, from its start to its end."""

    process: subprocess.Popen[bytes]
    began: float = field(default_factory=time.monotonic)
    is_ready: bool = False
    """Whether it has begun to run queries; until then, nothing is lost if it is killed."""
    place: Any = None
    """How far the checkpoint was at its first report."""
    seen: Any = None
    """What shows that the run goes on, when it last changed."""
    moved: float = field(default_factory=time.monotonic)
    """When that was."""
    reason: str | None = None
    """Why it was killed."""
    last: dict[str, Any] | None = None
    """The message with which it ended."""


class WorkerGroup:
    """A worker process, from its registration to its end."""

    def __init__(
        self, name: str, folder: Path, limits: WorkerLimits, changed: Callable[[], None]
    ) -> None:
        """Set the folder with the plan; `changed` is called when the state has changed."""
        self.name = name
        self.folder = folder
        self._limits = limits
        self._changed = changed
        self.state: GroupState = "stopped"
        self.reason: str | None = None
        """Why it has failed, or is started again."""
        self.report: dict[str, Any] = {}
        """The last report of the process."""
        self.reported: float | None = None
        self.rates: tuple[float, float] = (0.0, 0.0)
        """Elements and windows per second, lately."""
        self.restarts = 0
        self._run: _Run | None = None
        self._failures = 0
        self._failed_at: Any = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()

    def start(self) -> None:
        """Start the process, and keep it running."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._failures, self.reason = 0, None
            self._stopping.clear()
            self._set("starting")
            self._thread = threading.Thread(target=self._keep, name=f"group {self.name}")
            self._thread.daemon = True
            self._thread.start()

    def stop(self) -> None:
        """Stop after the current micro-batch; return when the process has ended."""
        with self._lock:
            self._stopping.set()
            thread, run = self._thread, self._run
            if run is not None:
                self._end(run)
        if thread is not None and thread is not threading.current_thread():
            thread.join(_STOP_S)
            if thread.is_alive() and run is not None:
                self._kill(run, "it did not stop")
                thread.join()

    @staticmethod
    def _end(run: _Run) -> None:
        """Let a process end after its micro-batch; at once, if it has not begun."""
        if not run.is_ready:
            run.process.kill()
        elif run.process.stdin is not None:
            with suppress(OSError):
                run.process.stdin.close()

    @property
    def is_active(self) -> bool:
        """Whether it is kept running."""
        return self._thread is not None and self._thread.is_alive()

    def fail(self, reason: str) -> None:
        """Declare that the group cannot go on."""
        self.reason = reason
        self._set("failed")

    @property
    def pid(self) -> int | None:
        """The number of the process, while it runs."""
        run = self._run
        return None if run is None or run.process.poll() is not None else run.process.pid

    @property
    def memory(self) -> int | None:
        """The resident memory of the process in bytes, while it runs."""
        return None if (pid := self.pid) is None else _resident(pid)

    def watch(self) -> None:
        """Kill a process that takes too much memory, or evaluates a window for too long."""
        run = self._run
        if run is None or run.process.poll() is not None:
            return
        memory = _resident(run.process.pid)
        if memory is not None and memory > self._limits.memory:
            self._kill(run, f"it took {memory:,} bytes of memory, more than the limit")
        limit = self._limits.evaluation_s
        if run.place is None:
            limit = max(limit, _START_S)
        if time.monotonic() - run.moved > limit:
            self._kill(run, f"an evaluation took more than {limit:g} s")

    @staticmethod
    def _kill(run: _Run, reason: str) -> None:
        run.reason = run.reason or reason
        run.process.kill()

    def _keep(self) -> None:
        """Run processes until the group is stopped, is finished, or has failed."""
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            run = self._started()
            if run is None:
                continue
            self._listen(run)
            code = run.process.wait()
            with self._lock:
                self._run = None
                if self._stopping.is_set():
                    break
            verdict = self._verdict(run, code)
            if verdict is None:
                pause = _FIRST_PAUSE if self._failures <= 1 else min(2 * pause, _LONGEST_PAUSE)
                self.restarts += 1
                self._set("restarting")
                self._stopping.wait(pause)
                continue
            self._set(verdict)
            return
        self._set("stopped")

    def _started(self) -> _Run | None:
        messages = self.folder / "worker.log"
        with suppress(OSError):
            if messages.stat().st_size > _LARGEST_MESSAGES:
                messages.replace(messages.with_suffix(".old"))
        command = [sys.executable, "-m", "rsp_engine.server.groups.worker", str(self.folder)]
        try:
            with messages.open("ab") as errors:
                process = subprocess.Popen(  # noqa: S603 - of this package
                    [*command, str(self._limits.memory)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
        except OSError as error:
            self.reason = f"its process cannot be started: {error.strerror or error}"
            self._set("restarting")
            self._stopping.wait(_LONGEST_PAUSE)
            return None
        with self._lock:
            self._run = run = _Run(process)
            if self._stopping.is_set():
                self._end(run)
        return run

    def _listen(self, run: _Run) -> None:
        """Read the reports of a process to its end."""
        assert run.process.stdout is not None, "it is a pipe"  # noqa: S101
        with run.process.stdout as lines:
            for line in lines:
                try:
                    message = json.loads(line)
                except ValueError:
                    continue  # cut off by a kill
                if "report" in message:
                    self._take_report(run, message["report"])
                elif "ready" in message:
                    run.moved, run.is_ready = time.monotonic(), True
                    self._set("running")
                else:
                    run.last = message

    def _take_report(self, run: _Run, report: dict[str, Any]) -> None:
        now = time.monotonic()
        counts = report["counts"]
        if run.place is None and report["passes"]:
            run.place = [counts["elements"], counts["answers"]]
        seen = [report["passes"], [q["windows"] for q in report["queries"].values()]]
        if seen != run.seen:
            run.seen, run.moved = seen, now
        self._measure(report, now)
        self.report, self.reported = report, time.time()
        if now > run.began + _STEADY_S:
            self._failures = 0

    def _measure(self, report: dict[str, Any], now: float) -> None:
        before = self.report.get("at")
        report["at"] = now
        if before is None or now <= before:
            return
        counts, earlier = report["counts"], self.report["counts"]
        for place, name in enumerate(("elements", "answers")):
            rate = max(counts[name] - earlier[name], 0) / (now - before)
            rates = list(self.rates)
            # A mean that forgets within some seconds.
            rates[place] = 0.8 * rates[place] + 0.2 * rate
            self.rates = (rates[0], rates[1])

    def _verdict(self, run: _Run, code: int) -> GroupState | None:
        """Return how the group has ended; None if its process is to be started again."""
        last = run.last or {}
        if "end" in last:
            return "finished" if last["end"] == "finished" else None
        reason = run.reason or _reason(last, code)
        if "failure" in last and last["kind"] not in _LASTING:
            self.reason = reason
            return "failed"
        self._failures = self._failures + 1 if run.place in (None, self._failed_at) else 1
        self._failed_at = run.place if run.place is not None else self._failed_at
        self.reason = reason
        is_by_others = run.reason is None and code == -signal.SIGKILL
        is_lasting = "failure" in last or is_by_others
        if self._failures > _MOST_FAILURES and not is_lasting:
            self.reason = f"{reason}; that happened {self._failures} times at the same place"
            return "failed"
        return None

    def _set(self, state: GroupState) -> None:
        if state == "running":
            self.reason = None
        if state != self.state:
            self.state = state
            self._changed()


def _reason(last: dict[str, Any], code: int) -> str:
    if "failure" in last:
        hint = f"; {last['hint']}" if last.get("hint") else ""
        return f"{last['failure']}{hint}"
    if code < 0:
        return f"its process was killed by signal {-code}"
    return f"its process ended with the code {code}: see worker.log in the folder of its group"


def _resident(pid: int) -> int | None:
    """Return the resident memory of a process in bytes; None if it is not known."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
