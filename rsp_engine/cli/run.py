"""`rsp run`: running queries over streams."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from rsp_engine.cli.app import EXIT_FAILURE, exit_on_error
from rsp_engine.cli.commands import GroupedCommand, command_app
from rsp_engine.cli.config import (
    ConfigFlag,
    FilesArgument,
    configured_queries,
    refuse_writing_elsewhere,
)
from rsp_engine.cli.flag_signature import takes_flags
from rsp_engine.cli.flags import RunFlags
from rsp_engine.cli.query_setup import engine_of, refuse_overwriting, register_queries
from rsp_engine.cli.watching import RunView
from rsp_engine.errors import BindingError, UndeliveredError
from rsp_engine.garbage import own_memory
from rsp_engine.model.option import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.drivers.checkpoint.commits import RewindableOutput
    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.engine import Engine
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.option import DurationLike
    from rsp_engine.model.streams import DeadLetter

__all__ = []


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
        view = RunView(context, out)
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

    def stop(number: int, frame: object) -> None:
        for each in _SIGNALS:
            signal.signal(each, _exit)
        with suppress(RuntimeError):  # the signal interrupted a write to the same stream
            typer.echo("stopping after this batch; interrupt again to stop at once", err=True)
        engine.stop()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = stop if engine.is_stoppable else _exit
    before = [(number, signal.signal(number, handler)) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handled in before:
            signal.signal(number, handled)


def _exit(number: int, frame: object) -> None:
    """Exit at once, with the exit code of the signal."""
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


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
