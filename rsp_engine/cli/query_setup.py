"""The engine of a command: made from its flags, with queries registered and names bound.

No output file may be read by the same run, since it is emptied at the start.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import typer

from rsp_engine.cli.flag_signature import is_set
from rsp_engine.errors import BindingError
from rsp_engine.garbage import no_garbage_collection
from rsp_engine.grammar.iris import full_iri
from rsp_engine.options import ServiceOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from rsp_engine.cli.flags import BindingFlags, RunFlags
    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.engine import Engine

__all__ = ["bindings", "engine_of", "refuse_overwriting", "register_queries"]


def files_of(source: str) -> list[str]:
    """Return the files that a source may read: its path, and its template.

    >>> files_of("a.csv?template=b.ttl&unit=s"), files_of("file:///tmp/a.nq")
    (['a.csv', 'b.ttl'], ['/tmp/a.nq'])
    """
    from rsp_engine.io.sources.spec import read_spec

    spec = read_spec(source)
    parts = urlsplit(spec.place)
    path = unquote(parts.path) if parts.scheme == "file" else spec.place
    return [path, *(v for key, v in spec.options.items() if key == "template")]


def refuse_overwriting(written: Iterable[tuple[str, str | None]], read: Iterable[str]) -> None:
    """Refuse an output flag that names a file that is read, or that another flag names."""
    used = {path.resolve() for path in map(Path, read) if path.is_file()}
    for flag, name in written:
        if name is None or name == "-" or not _is_plain(Path(name)):
            continue
        path = Path(name).resolve()
        if path in used:
            message = f"{flag} {name}: this run uses that file, and would overwrite it"
            raise BindingError(message, "name another file")
        used.add(path)


def _is_plain(path: Path) -> bool:
    """Return whether a path is a regular file, or free; /dev/null may be written several times."""
    try:
        return path.is_file() or not path.exists()
    except OSError:
        return False  # opening it raises the error


def bindings(
    texts: Iterable[str], known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> list[tuple[str, str]]:
    """Parse each `IRI=VALUE`; the IRI may be written as in the query.

    An IRI can contain an equals sign, so the names that the queries use are tried first.

    >>> texts = [":s=a.nq", "http://e/?x=1=b.nq"]
    >>> bindings(texts, ["http://e/?x=1"], {"": "http://e/"}, "--stream")
    [('http://e/s', 'a.nq'), ('http://e/?x=1', 'b.nq')]
    """
    return [_binding(text, known, prefixes, flag) for text in texts]


def bound_once(
    texts: Iterable[str], known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> list[tuple[str, str]]:
    """Parse bindings as `bindings` does; refuse an IRI that is bound twice.

    >>> bound_once([":g=a.ttl", ":g=b.ttl"], (), {"": "http://e/"}, "--graph")
    Traceback (most recent call last):
    ...
    rsp_engine.errors.BindingError: --graph binds <http://e/g> twice
      hint: remove one of them
    """
    bound: dict[str, str] = {}
    for iri, value in bindings(texts, known, prefixes, flag):
        if iri in bound:
            raise BindingError(f"{flag} binds <{iri}> twice", "remove one of them")
        bound[iri] = value
    return list(bound.items())


def _binding(
    text: str, known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> tuple[str, str]:
    for iri in known:
        for written in (iri, f"<{iri}>"):
            value = text.removeprefix(f"{written}=")
            if value and value != text:
                return iri, value
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        wanted = min(known) if len(known) == 1 else ":name"
        hint = f"name it as the query does: {flag} {wanted}={value or name or 'VALUE'}"
        if len(known) > 1:
            hint += f"; the query has {', '.join(f'<{iri}>' for iri in sorted(known))}"
        if equals and name:
            hint = f"give its value: {flag} {name}=VALUE"
        raise BindingError(f"{flag} {text} is not of the form IRI=VALUE", hint)
    return full_iri(name, prefixes) or name, value


def modified_by(
    texts: Iterable[str],
    bound: Collection[str],
    known: Collection[str],
    prefixes: Mapping[str, str],
) -> dict[str, str]:
    """Return the property that states when a key was last modified, by service.

    >>> modified_by([":s=dct:modified"], {"http://e/s"}, (), {"": "http://e/", "dct": "http://d/"})
    {'http://e/s': 'http://d/modified'}
    """
    properties = {}
    for iri, text in bound_once(texts, known, prefixes, "--modified"):
        if iri not in bound:
            hint = "bind it: --service IRI=URL"
            raise BindingError(f"--modified {iri}: that service is not bound", hint)
        properties[iri] = full_iri(text, prefixes) or text
    return properties


def value_ranges(texts: Iterable[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Parse the `LOW,HIGH` of each stream.

    >>> value_ranges([("http://e/s", "0,250")])
    {'http://e/s': (0.0, 250.0)}
    """
    return {stream: _range(stream, text) for stream, text in texts}


def _range(stream: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise BindingError(
            f"--range {stream}={text}: this is not a range", "write LOW,HIGH, such as 0,250"
        ) from None
    return low, high


class Registered(NamedTuple):
    """The registered queries, the files that their run reads, and the URLs of their services."""

    queries: list[Query]
    read: list[str]
    services: dict[str, str]


def engine_of(context: typer.Context, flags: RunFlags, **more: Any) -> Engine:  # noqa: ANN401 - an option
    """Return an engine with the options of flags; refuse flags of remote data without a service."""
    from rsp_engine.engine import Engine

    remote = [known.name for known in fields(ServiceOptions)] + ["arrivals", "memory"]
    idle = [name for name in remote if is_set(context, name)]
    if idle and not (flags.bindings.service or flags.bindings.changes):
        flag = f"--{idle[0].replace('_', '-')}"
        hint = "bind one: --service IRI=URL"
        raise BindingError(f"{flag} needs a service, but none is bound", hint)
    groups = (flags.windows, flags.ranking, flags.services, flags.run)
    return Engine(**{name: value for each in groups for name, value in vars(each).items()}, **more)


@no_garbage_collection(is_loading=True)
def register_queries(
    engine: Engine,
    files: list[str],
    bound: BindingFlags,
    *,
    opens_sources: bool = True,
    quiet: bool = False,
) -> Registered:
    """Register the queries of files, and bind what they need; open no source if told so.

    Print the warnings of the queries, unless `quiet`.
    """
    from rsp_engine.drivers.bindings import is_file
    from rsp_engine.grammar import check, tree
    from rsp_engine.grammar.validate import read_query
    from rsp_engine.http_client.access import allowed_origin

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
        if bound.allow and not is_file(url):
            allowed_origin(url, bound.allow)
        verb = properties.get(iri)
        engine.service(f"<{iri}>", url, modified=None if verb is None else f"<{verb}>")
    read = [*files, *(url for _, url in services if is_file(url))]
    for iri, source in bindings(bound.changes, called, prefixes, "--changes"):
        engine.changes(f"<{iri}>", source if opens_sources else [])
        read += files_of(source)
    known = {window.stream.value for query in queries for window in query.windows}
    ranges = value_ranges(bound_once(bound.range, known, prefixes, "--range"))
    for iri, (low, high) in ranges.items():
        engine.range(f"<{iri}>", low, high)
    with _warnings_to(logging.NullHandler() if quiet else _Echo()):
        registered = [engine.register(text, file, Path(file).parent) for file, text in texts]
    read += (str(graph.path) for query in registered for graph in query.physical.graphs)
    for iri, source in bindings(bound.stream, known, prefixes, "--stream"):
        if opens_sources:
            engine.bind(f"<{iri}>", source)
        read += files_of(source)
    return Registered(registered, read, dict(services))


class _Echo(logging.Handler):
    """Writes log records to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(self.format(record), err=True)


@contextmanager
def _warnings_to(handler: logging.Handler) -> Iterator[None]:
    """Hand the warnings of queries to a handler."""
    log = logging.getLogger("rsp")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
