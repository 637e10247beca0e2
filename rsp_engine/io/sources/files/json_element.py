"""JSON elements: an object with the time and the graph of an element.

{"timestamp": 1000, "graph": "<http://example.org/a> <http://example.org/p> 1 ."}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rsp_engine.io.sources.files.rdf import GRAPH_FORMATS, MalformedRdfError, graph_of
from rsp_engine.io.sources.times import from_json

if TYPE_CHECKING:
    import pyoxigraph as ox

    from rsp_engine.io.sources.times import TimeUnit

__all__ = ["UnfitError", "element_in", "object_in", "syntax_of", "value_in"]


class UnfitError(ValueError):
    """An object is not a valid element; the message is the reason."""


def object_in(line: bytes) -> dict[str, object]:
    """Parse a JSON object; raise `UnfitError` if the text is something else."""
    value = value_in(line)
    if not isinstance(value, dict):
        raise UnfitError("the line is JSON, but not an object")
    return value


def value_in(line: bytes) -> object:
    """Parse a JSON value; raise `UnfitError` if the text is something else."""
    try:
        value: object = json.loads(line.decode())
    except UnicodeDecodeError:
        raise UnfitError("the line is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise UnfitError(f"the line is not JSON: {error.msg}, column {error.colno}") from None
    except (RecursionError, ValueError):  # a number with too many digits, or deep nesting
        raise UnfitError("the line is JSON that is too long or too deep to read") from None
    return value


def element_in(
    value: dict[str, object], arrival: int | None = None, unit: TimeUnit = "ms"
) -> tuple[int, tuple[ox.Triple, ...]]:
    """Return the timestamp and the triples of an object; `arrival` replaces its timestamp.

    >>> element_in({"timestamp": 5, "graph": ""}), element_in({"graph": ""}, arrival=7)
    ((5, ()), (7, ()))
    """
    for key in ("timestamp", "graph") if arrival is None else ("graph",):
        if key not in value:
            raise UnfitError(f'the object has no "{key}"')
    try:
        timestamp = from_json(value["timestamp"], unit) if arrival is None else arrival
    except ValueError as error:
        raise UnfitError(f"its time {error}") from None
    graph = value["graph"]
    if not isinstance(graph, str):
        raise UnfitError("its graph is not a string of RDF text")
    try:
        return timestamp, graph_of(graph.encode(), syntax_of(value.get("format", "turtle")))
    except UnicodeEncodeError:
        raise UnfitError("its graph holds half a character: a lone surrogate") from None
    except MalformedRdfError as error:
        raise UnfitError(f"its graph cannot be read: {error}") from None


def syntax_of(name: object) -> ox.RdfFormat:
    """Return the syntax of a graph by its format; raise `UnfitError` if it is not known."""
    if not isinstance(name, str):
        raise UnfitError("its format is not a string")
    syntax = GRAPH_FORMATS.get(name.partition(";")[0].strip().lower())
    if syntax is None:
        raise UnfitError(f"its format {name[:40]!r} is not known; turtle is one that is")
    return syntax
