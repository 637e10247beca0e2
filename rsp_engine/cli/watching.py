"""Monitoring of a run on the command line: the live view, the metrics and the manifest."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from rsp_engine import __version__
from rsp_engine.cli.app import EXIT_FAILURE
from rsp_engine.cli.flag_signature import is_set
from rsp_engine.errors import BindingError, RspError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from rsp_engine.cli.flags import OutputFlags
    from rsp_engine.monitor.manifest import Manifest, RunState
    from rsp_engine.monitor.run_monitor import RunMonitor

__all__ = ["RunView", "wants_live_view"]


def wants_live_view(wanted: bool | None, context: typer.Context) -> bool:
    """Return whether to show the live view: if wanted, or on a terminal without output flags."""
    if wanted is False:
        return False
    if wanted:
        if not sys.stderr.isatty():
            raise BindingError("--live needs a terminal on standard error", "remove it")
        return True
    has_output = bool(context.params.get("output")) or is_set(context, "output_format")
    is_smart = os.environ.get("TERM", "") not in ("", "dumb")
    return not has_output and is_smart and sys.stdout.isatty() and sys.stderr.isatty()


class RunView:
    """The live view, the metrics and the manifest of a run; enter it around the run.

    Flags that do not fit are refused on construction, before anything runs.
    """

    def __init__(
        self,
        context: typer.Context,
        flags: OutputFlags,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        from rsp_engine.monitor.redaction import Redactor
        from rsp_engine.monitor.run_monitor import RunMonitor

        self._is_live = wants_live_view(flags.live, context)
        self.replaces_answers = self._is_live and sys.stdout.isatty() and not flags.output
        """Whether the view takes the terminal to which answers would be written."""
        is_wanted = self._is_live or (flags.metrics_port, flags.manifest) != (None, None)
        self.monitor: RunMonitor | None = RunMonitor() if is_wanted else None
        """The monitor of the run, if something uses it."""
        self._port = flags.metrics_port
        self._manifest: Manifest | None = None
        self._open = ExitStack()
        self._hide = Redactor(environment)
        if flags.manifest is not None and self.monitor is not None:
            from rsp_engine.monitor.manifest import Manifest

            path, options = Path(flags.manifest), _as_data(context.params)
            self._manifest = Manifest(path, options, __version__, self.monitor, self._hide)

    def begin(self) -> ExitStack:
        """Serve the metrics and write the first manifest; close the result after the run."""
        if self.monitor is not None and self._port is not None:
            from rsp_engine.monitor.metrics import serve_metrics

            port = self._open.enter_context(serve_metrics(self._port, self.monitor, self._hide))
            typer.echo(f"metrics: http://127.0.0.1:{port}/metrics", err=True)
        if self._manifest is not None:
            self._manifest.begin()
        return self._open

    def __enter__(self) -> None:
        self._view = ExitStack()
        if self._is_live and self.monitor is not None:
            from rich.console import Console

            from rsp_engine.cli.live_view import LiveView

            console = Console(file=self._view.enter_context(_terminal()))
            self._view.enter_context(LiveView(self.monitor, console, self._hide))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._view.__exit__(kind, error, trace)
        if self._manifest is not None and self.monitor is not None:
            state, code = _ending(error, is_stopped=self.monitor.is_stopping)
            self._manifest.end(state, code, _message(error) if state == "failed" else None)


def _terminal() -> TextIO:
    """Duplicate the terminal of standard error, which is redirected while Java starts."""
    number = os.dup(sys.stderr.fileno())
    return os.fdopen(number, "w", encoding=sys.stderr.encoding, errors="backslashreplace")


def _ending(error: BaseException | None, *, is_stopped: bool) -> tuple[RunState, int]:
    """Return how a run has ended, and its exit code."""
    match error:
        case None:
            return ("stopped" if is_stopped else "finished"), 0
        case BrokenPipeError():
            return "output closed", 0
        case KeyboardInterrupt():
            return "interrupted", 130
        case SystemExit(code=int(code)):
            return "interrupted", code
        case RspError():
            return "failed", EXIT_FAILURE
        case _:
            return "failed", 1


def _message(error: BaseException | None) -> str:
    if isinstance(error, RspError):
        return error.message
    return f"{type(error).__name__}: {error}"


def _as_data(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as plain data."""
    return {name: _plain(value) for name, value in params.items()}


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever an option can be
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
