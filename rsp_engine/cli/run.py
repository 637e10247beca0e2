"""`rsp run`: running queries over streams."""

from __future__ import annotations

import gc
import signal
import threading
from contextlib import ExitStack, closing, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rsp_engine.cli.app import EXIT_FAILURE, app, exit_on_error
from rsp_engine.cli.config import ConfigFlag, configured_queries, refuse_writing_elsewhere
from rsp_engine.cli.output_guard import files_of, refuse_overwriting
from rsp_engine.cli.ranking import (
    ArrivalsFlag,
    FunctionsFlag,
    MatchChoice,
    MatchFlag,
    MaxInstancesFlag,
    OperatorChoice,
    OperatorFlag,
    OracleFlag,
    RangesFlag,
    value_ranges,
)
from rsp_engine.cli.remote import (
    AllowFlag,
    BudgetFlag,
    CapacityFlag,
    ChangesFlag,
    DeadlineFlag,
    MaxRequestsFlag,
    ModifiedFlag,
    PolicyFlag,
    ReplicaFlag,
    SeedFlag,
    ServicesFlag,
    StandByFlag,
    modified_by,
    service_options,
)
from rsp_engine.cli.run_summary import FaultReporter, RunVerdict, print_summary
from rsp_engine.cli.watching import LiveFlag, ManifestFlag, MetricsFlag, RunView
from rsp_engine.errors import BindingError
from rsp_engine.model.durations import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.drivers.checkpoint.rewindable import RewindableOutput
    from rsp_engine.engine import Engine

__all__ = ["run_files"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ONE_TABLE = ("csv", "tsv", "sparql-json", "sparql-xml")
"""Formats that hold the answers of one query only."""


class Runner(StrEnum):
    """The driver of the queries."""

    spark = "spark"
    local = "local"


class Report(StrEnum):
    """Which windows are evaluated."""

    nonempty = "nonempty"
    every = "every"


class Bounds(StrEnum):
    """Which edge of a window belongs to it."""

    right = "(]"
    left = "[)"


@app.command("run")
def run_files(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE", help="RSP-QL files; several run side by side.", show_default=False
        ),
    ] = None,
    config: ConfigFlag = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI=SOURCE",
            help="A stream and its source: a path, - or a URL, with ?format=... if the name does"
            " not show it (repeatable; several sources of one stream are merged by time).",
        ),
    ] = None,
    graph: Annotated[
        list[str] | None,
        typer.Option(metavar="IRI=FILE", help="The file of a static graph (repeatable)."),
    ] = None,
    function: FunctionsFlag = None,
    runner: Annotated[
        Runner,
        typer.Option(
            envvar="RSP_RUNNER",
            help="Run the queries on Spark, which needs Java, or in this process alone.",
        ),
    ] = Runner.spark,
    master: Annotated[
        str,
        typer.Option(
            metavar="URL", envvar="RSP_MASTER", help="The Spark master: local[N], or a cluster."
        ),
    ] = "local[*]",
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder of the checkpoint: a run that broke off resumes from it.",
        ),
    ] = None,
    packages: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Maven packages for Spark: its Kafka connector."),
    ] = None,
    place_bytes: Annotated[
        int,
        typer.Option(
            min=1, metavar="BYTES", help="The approximate size of a split, which one task reads."
        ),
    ] = 4 << 20,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="FACTOR",
            help="Replay by event time, this many times faster: 1 is the original speed.",
        ),
    ] = None,
    live_for: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="How long to listen to live streams: 1m."),
    ] = None,
    bounds: Annotated[
        Bounds, typer.Option(help="Which edge of a window belongs to it: (] as in RSP-QL.")
    ] = Bounds.right,
    t0: Annotated[int, typer.Option(help="When the first window opens, in milliseconds.")] = 0,
    report: Annotated[
        Report,
        typer.Option(help="Which windows are evaluated: nonempty ones, or every one."),
    ] = Report.nonempty,
    max_delay: Annotated[
        str,
        typer.Option(metavar="DURATION", help="How late an element may be: 5s, PT5S, 5000."),
    ] = "0",
    operator: OperatorFlag = OperatorChoice.auto,
    service: ServicesFlag = None,
    allow: AllowFlag = None,
    policy: PolicyFlag = None,
    budget: BudgetFlag = None,
    n: StandByFlag = None,
    max_requests: MaxRequestsFlag = None,
    deadline: DeadlineFlag = None,
    changes: ChangesFlag = None,
    modified: ModifiedFlag = None,
    seed: SeedFlag = None,
    replica: ReplicaFlag = None,
    capacity: CapacityFlag = None,
    arrivals: ArrivalsFlag = None,
    match: MatchFlag = MatchChoice.window,
    attribute_range: RangesFlag = None,
    max_instances: MaxInstancesFlag = None,
    oracle: OracleFlag = False,
    output_format: Annotated[
        str, typer.Option("--format", help="jsonl, csv, tsv, sparql-json, sparql-xml or nquads.")
    ] = "jsonl",
    output: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Where to write answers; standard output by default."),
    ] = None,
    dead_letters: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where to write malformed and late input, as jsonl."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the plan and the requests that would be sent; read and send nothing.",
        ),
    ] = False,
    live: LiveFlag = None,
    metrics_port: MetricsFlag = None,
    manifest: ManifestFlag = None,
) -> None:
    """Run queries over streams, and print an answer for each window that closes."""
    from rsp_engine.engine import Engine
    from rsp_engine.io.sinks import FORMATS, DeadLetterFile, open_sink

    with ExitStack() as opened, exit_on_error():
        refuse_writing_elsewhere(context)
        letters: list[DeadLetterFile] = []
        verdict, faults = RunVerdict(), FaultReporter()
        remote = service_options(
            policy=policy,
            budget=budget,
            n=n,
            max_requests=max_requests,
            deadline=deadline,
            seed=seed,
            replica=replica,
            capacity=capacity,
            arrivals=None if arrivals is None else arrivals.value,
            is_bound=bool(service or changes),
        )
        engine = Engine(
            bounds=bounds.value,
            t0=t0,
            report=report.value,
            max_delay=_duration(max_delay, "--max-delay"),
            operator=operator.value,
            dead_letter=lambda letter: letters[0].write(letter) if letters else None,
            policy=remote.policy,
            budget=remote.budget,
            n=remote.n,
            max_requests=remote.limits.max_requests,
            deadline_ms=remote.limits.deadline_ms,
            seed=remote.seed,
            snapshot=remote.snapshot,
            capacity=remote.capacity,
            arrivals=None if arrivals is None else arrivals.value,
            match=match.value,
            max_instances=max_instances,
            oracle=oracle,
            runner=runner.value,
            master=master,
            checkpoint=checkpoint,
            place_bytes=place_bytes,
            speed=_speed(speed),
            packages=packages,
        )
        queries = configured_queries(context, files, config)
        bound = _Bound(stream, graph, function, service, changes, allow, attribute_range, modified)
        read = _bind(engine, queries, bound)
        forms = engine.forms
        if len(forms) > 1 and output_format in _ONE_TABLE:
            hint = "use jsonl, or run each query separately"
            raise BindingError(f"{output_format} holds the answers of one query", hint)
        for form in forms:
            if output_format in FORMATS:
                FORMATS[output_format].check(form)
        written = {"--output": output, "--dead-letters": dead_letters, "--manifest": manifest}
        refuse_overwriting(written, read)
        if dry_run:
            engine.check()
            typer.echo(engine.explain(), nl=False)
            return
        view = RunView(context, live=live, metrics_port=metrics_port, manifest=manifest)
        if view.monitor is not None:
            engine.watched_by(view.monitor)
        outputs: list[RewindableOutput] = []
        answers = engine.run(outputs)
        keep = checkpoint is not None
        sink = opened.enter_context(closing(open_sink(output_format, output, forms[0], keep=keep)))
        if dead_letters is not None:
            letters.append(opened.enter_context(closing(DeadLetterFile(dead_letters, keep=keep))))
        if keep:
            outputs.extend((sink, *letters))
        opened.enter_context(_stop_on_signals(engine))
        opened.enter_context(view.begin())
        opened.enter_context(_stop_after(engine, live_for))
        gc.freeze()  # what exists by now lives as long as the run: do not scan it
        gc.set_threshold(50_000, 20, 100)  # a run creates hardly any cyclic garbage
        with exit_on_error(EXIT_FAILURE), suppress(BrokenPipeError), view:
            for answer in answers:
                if not view.replaces_answers:
                    sink.write(answer)
                verdict.add(answer.stats)
                faults.add(answer.stats)
    print_summary(engine.counts, dead_letters)
    verdict.report()
    faults.report()


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
def _stop_after(engine: Engine, live_for: str | None) -> Iterator[None]:
    """Stop a run over live streams after a duration, if there is one."""
    if live_for is None:
        yield
        return
    if not engine.is_live:
        raise BindingError("--for needs a live stream, but none is bound", "remove it")
    timer = threading.Timer(_duration(live_for, "--for") / 1000, engine.stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _duration(text: str, flag: str) -> int:
    try:
        duration = parse_duration(text)
    except ValueError as reason:
        raise BindingError(f"{flag} {text}: {reason}") from None
    if duration < 0:
        raise BindingError(f"{flag} {text}: it must not be negative")
    return duration


def _speed(speed: float | None) -> float | None:
    if speed == 0:
        raise BindingError("--speed 0: nothing would ever arrive", "use a speed above 0")
    return speed


class _Bound(NamedTuple):
    """The values of the flags that bind something."""

    streams: list[str] | None
    graphs: list[str] | None
    functions: list[str] | None
    services: list[str] | None
    changes: list[str] | None
    allowed: list[str] | None
    ranges: list[str] | None
    modified: list[str] | None


def _bind(engine: Engine, files: list[str], bound: _Bound) -> list[str]:
    """Register the queries of files, and bind what they need; return the files that are read."""
    from rsp_engine.cli.binding import bindings, bound_once
    from rsp_engine.grammar import check, tree
    from rsp_engine.grammar.files import read_query
    from rsp_engine.replica.sparql_client.origins import allowed_origin

    texts = [(file, read_query(file)) for file in files]
    queries = [check(text, file) for file, text in texts]
    prefixes = {name: iri for query in queries for name, iri in query.prefixes.items()}
    for iri, path in bound_once(bound.graphs or [], (), prefixes, "--graph"):
        engine.graph(iri, path)
    for text in bound.functions or []:
        engine.define(text, prefixes)
    clauses = (clause for query in queries for clause in tree.find(query, tree.ServicePattern))
    called = {clause.name.value for clause in clauses if isinstance(clause.name, tree.Iri)}
    services = bound_once(bound.services or [], called, prefixes, "--service")
    properties = modified_by(bound.modified, dict(services), called, prefixes)
    for iri, url in services:
        if bound.allowed:
            allowed_origin(url, bound.allowed)
        engine.service(iri, url, modified=properties.get(iri))
    read = list(files)
    for iri, source in bindings(bound.changes or [], called, prefixes, "--changes"):
        engine.changes(iri, source)
        read += files_of(source)
    known = {window.stream.value for query in queries for window in query.windows}
    for iri, (low, high) in value_ranges(
        bound_once(bound.ranges or [], known, prefixes, "--range")
    ).items():
        engine.range(iri, low, high)
    for file, text in texts:
        query = engine.register(text, file, Path(file).parent)
        read += (str(graph.path) for graph in query.physical.graphs)
    for iri, source in bindings(bound.streams or [], known, prefixes, "--stream"):
        engine.bind(iri, source)
        read += files_of(source)
    return read
