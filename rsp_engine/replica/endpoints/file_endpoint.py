"""File endpoints: a file in place of a SPARQL endpoint, for tests, trials and replays.

An RDF file is a dataset that never changes. A CSV or JSON Lines file is a history, as `rsp record`
writes it: the endpoint answers with the values at the event time of each request.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.errors import ServiceError, SourceError
from rsp_engine.replica.change_signal import ModifiedPattern
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from rsp_engine.replica.endpoints.recorded import read_csv, read_jsonl

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.replica.endpoints.endpoint import Endpoint
    from rsp_engine.replica.pattern import RemotePattern

__all__ = ["file_endpoint", "is_file_endpoint"]

_HISTORIES = {".csv": read_csv, ".jsonl": read_jsonl}


def is_file_endpoint(address: str) -> bool:
    """Return whether the address of a service is a file: a path with a known extension.

    >>> [is_file_endpoint(a) for a in ("people.ttl", "a/b.csv", "http://e/a.ttl", "e:80/sparql")]
    [True, True, False, False]
    """
    return "://" not in address and _kind(Path(address)) is not None


def _kind(path: Path) -> str | ox.RdfFormat | None:
    suffix = path.suffix.lower()
    return suffix if suffix in _HISTORIES else ox.RdfFormat.from_extension(suffix[1:])


def file_endpoint(address: str) -> Callable[[RemotePattern], Endpoint]:
    """Return a function that opens the file for a clause; raise if there is no such file."""
    path = Path(address)
    if not path.is_file():
        raise SourceError(f"{path} cannot be read: there is no such file", "check the path")
    kind = _kind(path)

    @cache
    def store() -> ox.Store:
        return _load(path)

    def open_for(pattern: RemotePattern) -> Endpoint:
        if not isinstance(kind, str):
            return InProcessEndpoint(pattern, store())
        if isinstance(pattern, ModifiedPattern):
            raise ServiceError(
                f"{path} is a history, and states no time of modification",
                "leave out --modified, or bind the service to its endpoint",
            )
        return _HISTORIES[kind](path, pattern)

    return open_for


def _load(path: Path) -> ox.Store:
    store = ox.Store()
    try:
        store.load(path=path, base_iri=path.absolute().as_uri())
    except (SyntaxError, ValueError, OSError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from None
    return store
