"""The engine of a command: made from its flags, with queries registered and names bound."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from rsp_engine.cli.binding import bindings, bound_once, modified_by, value_ranges
from rsp_engine.cli.flag_signature import is_set
from rsp_engine.cli.output_guard import files_of
from rsp_engine.errors import BindingError
from rsp_engine.options import ServiceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.cli.flags import BindingFlags, RunFlags
    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.engine import Engine

__all__ = ["Registered", "engine_of", "register_queries"]


class Registered(NamedTuple):
    """The registered queries, and the files that their run reads."""

    queries: list[Query]
    read: list[str]


def engine_of(context: typer.Context, flags: RunFlags, **more: Any) -> Engine:  # noqa: ANN401 - an option
    """Return an engine with the options of flags; refuse flags of remote data without a service."""
    from rsp_engine.engine import Engine

    remote = [known.name for known in fields(ServiceOptions)] + ["arrivals"]
    idle = [name for name in remote if is_set(context, name)]
    if idle and not (flags.bindings.service or flags.bindings.changes):
        flag = f"--{idle[0].replace('_', '-')}"
        hint = "bind one: --service IRI=URL"
        raise BindingError(f"{flag} needs a service, but none is bound", hint)
    groups = (flags.windows, flags.ranking, flags.services, flags.run)
    return Engine(**{name: value for each in groups for name, value in vars(each).items()}, **more)


def register_queries(
    engine: Engine, files: list[str], bound: BindingFlags, *, opens_sources: bool = True
) -> Registered:
    """Register the queries of files, and bind what they need; open no source if told so."""
    from rsp_engine.grammar import check, tree
    from rsp_engine.grammar.files import read_query
    from rsp_engine.replica.sparql_client.origins import allowed_origin

    texts = [(file, read_query(file)) for file in files]
    queries = [check(text, file) for file, text in texts]
    prefixes = {name: iri for query in queries for name, iri in query.prefixes.items()}
    for iri, path in bound_once(bound.graph, (), prefixes, "--graph"):
        engine.graph(f"<{iri}>", path)
    for text in bound.function:
        engine.define(text, prefixes)
    clauses = (clause for query in queries for clause in tree.find(query, tree.ServicePattern))
    called = {clause.name.value for clause in clauses if isinstance(clause.name, tree.Iri)}
    services = bound_once(bound.service, called, prefixes, "--service")
    properties = modified_by(bound.modified, dict(services), called, prefixes)
    for iri, url in services:
        if bound.allow:
            allowed_origin(url, bound.allow)
        verb = properties.get(iri)
        engine.service(f"<{iri}>", url, modified=None if verb is None else f"<{verb}>")
    read = list(files)
    for iri, source in bindings(bound.changes, called, prefixes, "--changes"):
        engine.changes(f"<{iri}>", source if opens_sources else [])
        read += files_of(source)
    known = {window.stream.value for query in queries for window in query.windows}
    ranges = value_ranges(bound_once(bound.range, known, prefixes, "--range"))
    for iri, (low, high) in ranges.items():
        engine.range(f"<{iri}>", low, high)
    with _warnings_on_standard_error():
        registered = [engine.register(text, file, Path(file).parent) for file, text in texts]
    read += (str(graph.path) for query in registered for graph in query.physical.graphs)
    for iri, source in bindings(bound.stream, known, prefixes, "--stream"):
        if opens_sources:
            engine.bind(f"<{iri}>", source)
        read += files_of(source)
    return Registered(registered, read)


class _Echo(logging.Handler):
    """Writes log records to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(self.format(record), err=True)


@contextmanager
def _warnings_on_standard_error() -> Iterator[None]:
    """Print the warnings of queries."""
    log, echo = logging.getLogger("rsp"), _Echo()
    log.addHandler(echo)
    try:
        yield
    finally:
        log.removeHandler(echo)
