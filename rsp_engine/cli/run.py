"""`rsp run`: running queries over streams."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections import Counter
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer

from rsp_engine.cli.app import EXIT_FAILURE, app, exit_on_error
from rsp_engine.cli.config import (
    ConfigFlag,
    FilesArgument,
    configured_queries,
    refuse_writing_elsewhere,
)
from rsp_engine.cli.flag_signature import takes_flags
from rsp_engine.cli.flags import RunFlags
from rsp_engine.cli.grouped_help import GroupedCommand
from rsp_engine.cli.query_setup import engine_of, refuse_overwriting, register_queries
from rsp_engine.cli.snapshots import SnapshotPrinter
from rsp_engine.cli.watching import RunView
from rsp_engine.errors import BindingError
from rsp_engine.model.option import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.drivers.checkpoint.commits import RewindableOutput
    from rsp_engine.engine import Engine
    from rsp_engine.io.sinks.format import ContentForm
    from rsp_engine.model.option import DurationLike
    from rsp_engine.monitor.run_monitor import Counts

__all__ = []


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ONE_TABLE = ("csv", "tsv", "sparql-json", "sparql-xml")
"""Formats that hold the answers of one query only."""


@app.command("run", cls=GroupedCommand)
@takes_flags(RunFlags)
def run_files(
    context: typer.Context,
    flags: RunFlags,
    files: FilesArgument = None,
    config: ConfigFlag = None,
) -> None:
    """Run queries over streams, and print an answer for each window that closes."""
    from rsp_engine.io.sinks import DeadLetterFile, open_sink

    out = flags.output
    with ExitStack() as opened, exit_on_error():
        refuse_writing_elsewhere(context)
        if flags.run.speed == 0:
            raise BindingError("--speed 0: nothing would ever arrive", "use a speed above 0")
        letters: list[DeadLetterFile] = []
        verdict, faults = RunVerdict(), FaultReporter()
        write_dead = lambda letter: letters[0].write(letter) if letters else None  # noqa: E731
        engine = engine_of(context, flags, dead_letter=write_dead)
        queries = configured_queries(context, files, config)
        registered, read = register_queries(engine, queries, flags.bindings)
        forms = engine.forms
        _check_format(out.output_format, forms)
        written = {
            "--output": out.output,
            "--dead-letters": out.dead_letters,
            "--manifest": out.manifest,
        }
        refuse_overwriting(written, read)
        if out.dry_run:
            engine.check()
            typer.echo(engine.explain(), nl=False)
            return
        view = RunView(context, out)
        if view.monitor is not None:
            engine.watched_by(view.monitor)
        outputs: list[RewindableOutput] = []
        answers = engine.run(outputs)
        snapshots = SnapshotPrinter(registered, out.snapshot)
        keep = flags.run.checkpoint is not None
        sink = open_sink(out.output_format, out.output, forms[0], keep=keep)
        opened.enter_context(closing(sink))
        if out.dead_letters is not None:
            letters.append(
                opened.enter_context(closing(DeadLetterFile(out.dead_letters, keep=keep)))
            )
        if keep:
            outputs.extend((sink, *letters))
        opened.enter_context(_stop_on_signals(engine))
        opened.enter_context(view.begin())
        opened.enter_context(_stop_after(engine, out.live_for))
        gc.freeze()  # what exists by now lives as long as the run: do not scan it
        gc.set_threshold(50_000, 20, 100)  # a run creates hardly any cyclic garbage
        with exit_on_error(EXIT_FAILURE), suppress(BrokenPipeError), view, snapshots:
            for answer in answers:
                if not view.replaces_answers:
                    sink.write(answer)
                verdict.add(answer.stats)
                faults.add(answer.stats)
                snapshots.after(answer)
    print_summary(engine.counts, out.dead_letters)
    verdict.report()
    faults.report()


def _check_format(name: str, forms: Sequence[ContentForm]) -> None:
    """Refuse a format that cannot hold the answers of the queries."""
    from rsp_engine.io.sinks import FORMATS

    if len(forms) > 1 and name in _ONE_TABLE:
        hint = "use jsonl, or run each query separately"
        raise BindingError(f"{name} holds the answers of one query", hint)
    for form in forms:
        if name in FORMATS:
            FORMATS[name].check(form)


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


class FaultReporter:
    """A reporter of the faults of services: each kind when it first happens, and all at the end."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def add(self, stats: Mapping[str, Any]) -> None:
        """Add the faults of an answer, and warn of new kinds."""
        for cause, number in stats.get("faults", {}).items():
            if cause not in self._seen:
                warning = f"warning: a request to a service failed: {cause}"
                hint = "answers use the values in the replica; rsp doctor probes endpoints"
                typer.echo(f"{warning}\n  = hint: {hint}", err=True)
            self._seen[cause] += number

    def report(self) -> None:
        """Print the number of faults, if there are any."""
        if self._seen:
            kinds = ", ".join(f"{cause} {number}" for cause, number in sorted(self._seen.items()))
            typer.echo(f"{self._seen.total()} faults of services ({kinds})", err=True)


class RunVerdict:
    """The mean quality of all answers against the oracle."""

    def __init__(self) -> None:
        self._windows, self._ndcg, self._precision = 0, 0.0, 0.0

    def add(self, stats: Mapping[str, Any]) -> None:
        """Add the scores of an answer, if the oracle has judged it."""
        if "ndcg" in stats:
            self._windows += 1
            self._ndcg += stats["ndcg"]
            self._precision += stats["precision"]

    def report(self) -> None:
        """Print the means, if the oracle has judged an answer."""
        if self._windows:
            ndcg, precision = self._ndcg / self._windows, self._precision / self._windows
            means = f"against the oracle: nDCG {ndcg:.3f}, precision {precision:.3f}"
            typer.echo(f"{means}, mean of {self._windows} windows", err=True)


def print_summary(counts: Counts, dead_letters: str | None) -> None:
    """Print the counts of a run, on a terminal or if there are dead letters."""
    dead = sum(counts.dead.values())
    if not dead and not sys.stderr.isatty():
        return
    summary = f"{counts.elements} elements, {counts.triples} triples, {counts.answers} answers"
    if counts.between_windows:
        summary += f", {counts.between_windows} elements between windows"
    typer.echo(summary, err=True)
    if dead:
        kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(counts.dead.items()))
        where = f"in {dead_letters}" if dead_letters else "--dead-letters FILE keeps them"
        typer.echo(f"{dead} set aside ({kinds}); {where}", err=True)
