"""`rsp run`: running queries over streams, with the live view, the metrics and the manifest."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack, closing, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from rsp_engine import __version__
from rsp_engine.cli.app import EXIT_FAILURE, GroupedCommand, command_app, exit_on_error
from rsp_engine.cli.config import (
    ConfigFlag,
    FilesArgument,
    configured_queries,
    refuse_writing_elsewhere,
)
from rsp_engine.cli.flag_signature import is_set, takes_flags
from rsp_engine.cli.flags import RunFlags
from rsp_engine.cli.query_setup import engine_of, refuse_overwriting, register_queries
from rsp_engine.cli.signals import exit_at_once, on_signals
from rsp_engine.errors import BindingError, RspError, UndeliveredError
from rsp_engine.garbage import own_memory
from rsp_engine.model.option import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

    from rsp_engine.cli.flags import OutputFlags
    from rsp_engine.drivers.checkpoint.commits import RewindableOutput
    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.engine import Engine
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.option import DurationLike
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.monitor.manifest import Manifest, RunState
    from rsp_engine.monitor.run_monitor import RunMonitor

__all__ = []

app = command_app()


@app.command("run", cls=GroupedCommand)
@takes_flags(RunFlags)
def run_files(
    context: typer.Context,
    flags: RunFlags,
    files: FilesArgument = None,
    config: ConfigFlag = None,
) -> None:
    """Run queries over streams, and print an answer for each window that closes."""
    from rsp_engine.cli.answer_outputs import AnswerOutputs
    from rsp_engine.cli.run_summary import RunSummary
    from rsp_engine.io.sinks import DeadLetterFile

    out = flags.output
    with ExitStack() as opened, exit_on_error():
        refuse_writing_elsewhere(context)
        if flags.run.speed == 0:
            raise BindingError("--speed 0: nothing would ever arrive", "use a speed above 0")
        letters: list[DeadLetterFile] = []
        summary = RunSummary(quiet=out.quiet)

        def set_aside(letter: DeadLetter) -> None:
            summary.add_dead_letter(letter)
            for file in letters:
                file.write(letter)

        engine = engine_of(context, flags, dead_letter=set_aside)
        queries = configured_queries(context, files, config)
        registered = register_queries(engine, queries, flags.bindings, quiet=out.quiet)
        summary.name_services(registered)
        written = AnswerOutputs(out, engine.forms, flags.bindings.allow)
        refuse_overwriting(
            [*written.paths, ("--dead-letters", out.dead_letters), ("--manifest", out.manifest)],
            registered.read,
        )
        if out.dry_run:
            engine.check()
            typer.echo(engine.explain(), nl=False)
            return
        view = _RunView(context, out)
        if view.monitor is not None:
            engine.watched_by(view.monitor)
        engine.check()
        if flags.run.runner == "auto" and not out.quiet:
            typer.echo(engine.runner_choice, err=True)
        outputs: list[RewindableOutput] = []
        answers = _with_snapshots(engine.run(outputs), registered.queries, out.snapshot)
        keep = flags.run.checkpoint is not None
        outputs += written.open(opened, flags.run.checkpoint, view.monitor)
        if out.dead_letters is not None:
            letters.append(
                opened.enter_context(closing(DeadLetterFile(out.dead_letters, keep=keep)))
            )
        if keep:
            outputs += letters
        opened.enter_context(_stop_on_signals(engine))
        opened.enter_context(view.begin())
        opened.enter_context(_stop_after(engine, out.live_for))
        own_memory()
        _announce_spark(engine, quiet=out.quiet)
        with exit_on_error(EXIT_FAILURE), suppress(BrokenPipeError):
            try:
                with view:
                    for answer in answers if view.replaces_answers else written.write_all(answers):
                        summary.add(answer)
            except UndeliveredError:
                summary.print(engine, registered.queries, out.dead_letters, written.sinks)
                raise
    summary.print(engine, registered.queries, out.dead_letters, written.sinks)


def _with_snapshots(
    answers: Iterator[Answer], queries: Sequence[Query], snapshot: str | None
) -> Iterator[Answer]:
    """Return the answers of a run that prints snapshots, if the user asks for them."""
    if snapshot is None:
        return answers
    from rsp_engine.cli.snapshots import SnapshotPrinter

    return SnapshotPrinter(queries, snapshot).after_each(answers)


def _announce_spark(engine: Engine, *, quiet: bool) -> None:
    """Say that Spark starts, which takes some seconds."""
    if engine.is_on_spark and not quiet:
        from rsp_engine.drivers.spark.session import is_started, start_notice

        if not is_started():
            typer.echo(start_notice(), err=True)


@contextmanager
def _stop_on_signals(engine: Engine) -> Iterator[None]:
    """Stop the run after the current micro-batch on Ctrl-C or SIGTERM, and at once on the second.

    A run that is not stoppable ends at once on the first.
    """
    second = ExitStack()

    def stop(number: int, frame: object) -> None:
        second.enter_context(on_signals(exit_at_once))
        with suppress(RuntimeError):  # the signal interrupted a write to the same stream
            typer.echo("stopping after this batch; interrupt again to stop at once", err=True)
        engine.stop()

    with on_signals(stop if engine.is_stoppable else exit_at_once), second:
        yield


@contextmanager
def _stop_after(engine: Engine, live_for: DurationLike | None) -> Iterator[None]:
    """Stop a run over live streams after a duration, if there is one."""
    if live_for is None:
        yield
        return
    if not engine.is_live:
        raise BindingError("--for needs a live stream, but none is bound", "remove it")
    timer = threading.Timer(milliseconds(live_for) / 1000, engine.stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _wants_live_view(wanted: bool | None, context: typer.Context) -> bool:
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


class _RunView:
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

        self._is_live = _wants_live_view(flags.live, context)
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
