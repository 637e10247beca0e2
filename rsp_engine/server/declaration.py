"""Declarations: a stream with its source, its options and its retention, as a request states it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rsp_engine.grammar.iris import absolute, full_iri
from rsp_engine.io.sources.live.log.declaration import PUSHED, StreamDeclaration
from rsp_engine.model.option import milliseconds
from rsp_engine.model.quantities import parse_duration
from rsp_engine.server.refusals import ConflictError, MalformedError
from rsp_engine.server.registration import checked_name, fields_of

if TYPE_CHECKING:
    from rsp_engine.server.access import Access
    from rsp_engine.server.catalog import Catalog
    from rsp_engine.server.options import ServeOptions

__all__ = ["check_is_new", "read_stream"]

_MEMBERS = ("name", "iri", "source", "options", "template", "keep")


def read_stream(
    body: object, access: Access, options: ServeOptions, created: int
) -> StreamDeclaration:
    """Return the declaration that a request states; refuse what is malformed or not allowed."""
    data = fields_of(body, _MEMBERS, ("name", "iri"))
    name = checked_name(data["name"], "the name of a stream")
    iri, source, template = data["iri"], data.get("source", PUSHED), data.get("template")
    if not isinstance(iri, str) or not isinstance(source, str):
        raise MalformedError("iri and source must be texts")
    if template is not None and not isinstance(template, str):
        raise MalformedError("template must be text of Turtle")
    full = full_iri(iri, {}) if iri else None
    if full is None:
        raise MalformedError(f"{iri[:80]!r} is no IRI", "http://example.org/readings")
    if source != PUSHED:
        source = access.check_source(source)
    kept = _kept(data.get("keep", {}), options)
    of_source = _of_source(data.get("options", {}))
    return StreamDeclaration(name, absolute(full), source, of_source, template, *kept, created)


def _of_source(value: object) -> dict[str, str]:
    """Return the options of a source; the template and the retention are members of their own."""
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise MalformedError("options must be an object whose values are texts")
    for option, hint in (
        ("template", 'the template is a member of its own: "template": TEXT'),
        ("room", "use keep"),
    ):
        if option in value:
            raise MalformedError(f"a stream has no option {option}", hint)
    return value


def _kept(value: object, options: ServeOptions) -> tuple[int, int]:
    """Return how much of a stream is kept: bytes, and milliseconds."""
    data = fields_of(value, ("bytes", "time"), ())
    most = data.get("bytes", options.keep_bytes)
    text = data.get("time", milliseconds(options.keep_time))
    try:
        longest = parse_duration(text) if isinstance(text, str) else text
    except ValueError as error:
        raise MalformedError(f"keep.time: {error}") from None
    for given, least in ((most, 4096), (longest, 1000)):
        if type(given) is not int or not least <= given < 1 << 53:
            raise MalformedError(
                "keep must be bytes, from 4096 on, and a time, from 1s on",
                '{"bytes": 1073741824, "time": "7d"}',
            )
    return most, longest


def check_is_new(declaration: StreamDeclaration, catalog: Catalog) -> bool:
    """Return whether a stream is not declared yet; refuse one that clashes with another."""
    known = catalog.streams.get(declaration.name)
    if known is not None:
        if replace(known.declaration, created=declaration.created) == declaration:
            return False
        hint = "choose another name, or delete that stream first"
        raise ConflictError(f"there is another stream {declaration.name}", hint)
    if declaration.name in catalog.queries:
        raise ConflictError(f"there is a query {declaration.name}", "choose another name")
    other = catalog.logs().get(declaration.iri)
    if other is not None:
        message = f"the stream <{declaration.iri}> is declared as {other.name}"
        raise ConflictError(message, "use that one, or choose another IRI")
    return True
