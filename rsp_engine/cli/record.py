"""`rsp record`: recording what an endpoint says over time, as a history for replays and trials."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine.cli.app import EXIT_FAILURE, command_app, exit_on_error
from rsp_engine.cli.signals import interrupt, on_signals
from rsp_engine.errors import BindingError
from rsp_engine.model.quantities import quantity

if TYPE_CHECKING:
    from rsp_engine.replica.endpoints.endpoint import Endpoint, Limits
    from rsp_engine.replica.endpoints.history_file import HistoryFile
    from rsp_engine.replica.pattern import RemotePattern

__all__ = ["record_service"]

app = command_app()


@app.command("record")
def record_service(
    service: Annotated[
        str, typer.Argument(metavar="URL", help="The SPARQL endpoint, such as http://host/query.")
    ],
    output: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The history, a CSV file; what is there is kept."),
    ],
    query: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Record the SERVICE clause of this query."),
    ] = None,
    clause: Annotated[
        str | None,
        typer.Option("--service", metavar="IRI", help="Which SERVICE of the query, if several."),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="IRI", help="Record this property of all its subjects."),
    ] = None,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="From one snapshot to the next.")
    ] = "60s",
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="How long; by default until Ctrl-C."),
    ] = None,
    max_requests: Annotated[
        int | None,
        typer.Option(min=1, metavar="REQUESTS", help="How many requests a snapshot may send."),
    ] = None,
    deadline: Annotated[
        str, typer.Option(metavar="DURATION", help="How long a snapshot may take.")
    ] = "30s",
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="The only origins that may be asked, as http://host."),
    ] = None,
) -> None:
    """Ask an endpoint for all its values again and again, and append what has changed to a file.

    The same command goes on with the file. A snapshot that fails is left out.

    Example: rsp record http://localhost:7878/query --property http://example.org/price --every 60s
    --output prices.csv
    """
    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.endpoints.history_file import HistoryFile
    from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint

    with exit_on_error():
        pattern = _pattern(service, query, clause, properties or [])
        step, most = _duration("--every", every), _duration("--deadline", deadline)
        limits = Limits(max_requests, most)
        length = None if duration is None else _duration("--for", duration)
        endpoint = HttpEndpoint(service, pattern, HttpConfig(allowed=tuple(allow or [service])))
        history = HistoryFile(output, pattern)
    recording = _Recording(endpoint, history, limits)
    with exit_on_error(EXIT_FAILURE), suppress(KeyboardInterrupt), on_signals(interrupt):
        recording.run(step, length)
    endpoint.close()
    typer.echo(
        f"{quantity(recording.snapshots, 'snapshot')}, {quantity(recording.rows, 'row')} added to"
        f" {output}, which has {quantity(history.keys, 'key')}"
        + (f"; {recording.failed} failed" if recording.failed else ""),
        err=True,
    )
    if recording.failed and not recording.snapshots:
        raise typer.Exit(EXIT_FAILURE)


class _Recording:
    """Snapshots at equal distances, and their counts."""

    def __init__(self, endpoint: Endpoint, history: HistoryFile, limits: Limits) -> None:
        self._endpoint = endpoint
        self._history = history
        self._limits = limits
        self.snapshots = self.failed = self.rows = 0

    def run(self, step: int, length: int | None) -> None:
        """Take snapshots every `step` milliseconds, for `length` or until an interrupt.

        Where a snapshot takes longer than a step, those that are late are left out.
        """
        begin, number = time.monotonic(), 0
        while length is None or number * step < length:
            time.sleep(max(begin + number * step / 1000 - time.monotonic(), 0))
            self._snapshot()
            late = int((time.monotonic() - begin) * 1000) // step
            number = max(number, late) + 1

    def _snapshot(self) -> None:
        now = int(time.time() * 1000)
        found = self._endpoint.snapshot(self._limits, now)
        if found.faults:
            self.failed += 1
            causes = ", ".join(f"{cause} ({count})" for cause, count in found.faults.items())
            typer.echo(f"a snapshot failed: {causes}", err=True)
            return
        self.rows += self._history.append(found.answers, now)
        self.snapshots += 1


def _duration(flag: str, text: str) -> int:
    from rsp_engine.model.option import milliseconds

    try:
        found = milliseconds(text)
    except ValueError as reason:
        raise BindingError(f"{flag} {text}: {reason}") from None
    if found < 1:
        raise BindingError(f"{flag} {text}: it must be at least a millisecond")
    return found


def _pattern(
    url: str, query: Path | None, clause: str | None, properties: list[str]
) -> RemotePattern:
    """Return what to ask for: the clause of a query, or properties of all subjects."""
    if (query is None) == (not properties):
        raise BindingError("name what to record", "give either --query FILE or --property IRI")
    if query is None:
        if clause is not None:
            raise BindingError(f"--service {clause} needs --query", "--property needs no clause")
        return _of_properties(url, properties)
    return _of_query(query, clause)


def _of_properties(url: str, properties: list[str]) -> RemotePattern:
    from pyoxigraph import NamedNode

    from rsp_engine.replica.pattern import RemotePattern

    try:
        verbs = [NamedNode(text.removeprefix("<").removesuffix(">")) for text in properties]
    except ValueError as error:
        raise BindingError(f"--property: {error}", "write a full IRI") from None
    names = ["value", *(f"value{number}" for number in range(2, len(verbs) + 1))]
    triples = " ".join(f"?key {verb} ?{name} ." for verb, name in zip(verbs, names, strict=False))
    return RemotePattern(url, f"{{ {triples} }}", ("key",), tuple(names))


def _of_query(path: Path, clause: str | None) -> RemotePattern:
    """Return the pattern of the SERVICE clause of a query, as its plan has it."""
    from pyoxigraph import Store

    from rsp_engine.engine import Engine
    from rsp_engine.grammar import check, tree
    from rsp_engine.grammar.validate import read_query

    text = read_query(str(path))
    clauses = tree.find(check(text, str(path)), tree.ServicePattern)
    engine = Engine(runner="local")
    for iri in {each.name.value for each in clauses if isinstance(each.name, tree.Iri)}:
        engine.service(f"<{iri}>", Store())
    plan = engine.register(text, str(path), path.parent).physical
    patterns = {service.pattern.service: service.pattern for service in plan.services}
    if not patterns:
        raise BindingError(f"{path} has no SERVICE clause", "record a --property")
    wanted = next(iter(patterns)) if clause is None and len(patterns) == 1 else clause
    if wanted not in patterns:
        known = ", ".join(patterns)
        raise BindingError(f"which SERVICE of {path} is to be recorded?", f"--service IRI: {known}")
    return patterns[wanted]
