"""The registry of stream formats: file extensions, options, and how to open each."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.inputs import local_path
from rsp_engine.io.sources.spec import STANDARD_INPUT, Spec, nearest, need, read_spec
from rsp_engine.lazy_registry import importer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.io.sources.source import ElementSource

__all__ = ["SOURCE_FORMATS", "SourceFormat", "open_source"]


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """A format: a line of help, an opener, file extensions, and options with their help."""

    help: str
    open: Callable[[Spec], ElementSource]
    extensions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


_UNIT = {"unit": "ms, s, us or ns: what a time that is a number counts"}
_TIMES = {
    "time": "iri or prov: take the time of a graph only from its name, or from PROV",
    **_UNIT,
}
_TABLE = {
    "template": "a Turtle file with {column} where the value of a column goes",
    "time": "the column of the time; timestamp unless given",
    "delimiter": "the character between fields, or the word tab",
    "columns": "the names of the columns, joined by commas, if the first row is data",
    **_UNIT,
}
_FIELDS = {
    "template": "a Turtle file with {path.to.field} where the value of a field goes",
    "time": "the field of the time; timestamp unless given",
    **_UNIT,
}


def _opener(module: str, name: str) -> Callable[[Spec], ElementSource]:
    """Return a function that imports the reader of a format when a source is opened."""
    find = importer(f"rsp_engine.io.sources.files.{module}", name)
    return lambda spec: cast("ElementSource", find()(spec))


def _open_jelly(spec: Spec) -> ElementSource:
    need(spec.name, "jelly", "pyjelly")  # pyjelly is an optional extra
    return _opener("jelly", "open_jelly")(spec)


SOURCE_FORMATS: Mapping[str, SourceFormat] = {
    "jsonl": SourceFormat(
        "one JSON object per line, with a timestamp and a graph as RDF text",
        _opener("jsonl", "open_jsonl"),
        (".jsonl", ".ndjson"),
        _UNIT,
    ),
    "nquads": SourceFormat(
        "N-Quads; neighbouring quads of one graph are an element",
        _opener("nquads", "open_nquads"),
        (".nq", ".nquads"),
        _TIMES,
    ),
    "trig": SourceFormat(
        "TriG; a graph block is an element", _opener("trig", "open_trig"), (".trig",), _TIMES
    ),
    "turtle-files": SourceFormat(
        "a folder; each file is one graph, with its time in the file's name",
        _opener("turtle_files", "open_turtle_files"),
        options=_UNIT,
    ),
    "csv": SourceFormat(
        "a table; a template turns rows into triples",
        _opener("csv_table", "open_csv"),
        (".csv",),
        _TABLE,
    ),
    "tsv": SourceFormat(
        "the same, with tabs between the fields",
        _opener("csv_table", "open_tsv"),
        (".tsv",),
        _TABLE,
    ),
    "json": SourceFormat(
        "one plain JSON object per line; a template turns it into triples",
        _opener("jsonl", "open_json"),
        (".json",),
        _FIELDS,
    ),
    "parquet": SourceFormat(
        "a table of Parquet; a template turns rows into triples",
        _opener("parquet", "open_parquet"),
        (".parquet",),
        _FIELDS,
    ),
    "jelly": SourceFormat(
        "Jelly; neighbouring quads of one graph are an element, or a frame of triples",
        _open_jelly,
        (".jelly",),
        _TIMES,
    ),
}
"""All stream formats, by name."""


def open_source(spec: str) -> ElementSource:
    """Open a source by its specification; raise `SourceError` if it is invalid or unreadable.

    >>> open_source("-?format=jsnol")
    Traceback (most recent call last):
    rsp_engine.errors.SourceError: -: there is no format jsnol
      hint: did you mean jsonl?
    """
    parsed = read_spec(spec)
    if "://" in parsed.place:
        # Most sources are files.
        from rsp_engine.io.sources.live.schemes import is_live_url, open_live

        if is_live_url(parsed.place):
            return open_live(parsed)
    chosen = SOURCE_FORMATS[_format_name(parsed)]
    for option in parsed.options:
        if option != "format" and option not in chosen.options:
            raise _unknown_option(parsed, option, ["format", *chosen.options])
    return chosen.open(parsed)


def _format_name(spec: Spec) -> str:
    explicit = spec.options.get("format")
    if explicit is not None:
        return _canonical_name(spec, explicit.lower())
    if spec.place == STANDARD_INPUT:
        message = "the standard input has no name that shows its format"
        raise SourceError(message, _choose("-"))
    path = local_path(spec.place)
    if path is not None and not path.exists():
        raise SourceError(f"{spec.name}: there is no such file or folder", "check the path")
    if path is not None and path.is_dir():
        return "turtle-files"
    extension = _extension(urlsplit(spec.place).path if path is None else path.name)
    for name, candidate in SOURCE_FORMATS.items():
        if extension in candidate.extensions:
            return name
    what = f"the extension {extension}" if extension else "the name"
    raise SourceError(f"{spec.name}: {what} does not show the format", _choose(spec.name))


def _canonical_name(spec: Spec, written: str) -> str:
    """Return the name of a format that is written as its name or as one of its extensions."""
    for name, candidate in SOURCE_FORMATS.items():
        if written == name or f".{written}" in candidate.extensions:
            return name
    hint = nearest(written, SOURCE_FORMATS) or f"the formats are: {', '.join(SOURCE_FORMATS)}"
    raise SourceError(f"{spec.name}: there is no format {written}", hint)


def _extension(name: str) -> str:
    return PurePath(name.lower().removesuffix(".gz")).suffix


def _choose(place: str) -> str:
    return f"write {place}?format=NAME, with one of: {', '.join(SOURCE_FORMATS)}"


def _unknown_option(spec: Spec, option: str, known: list[str]) -> SourceError:
    hint = nearest(option, known) or f"the options are: {', '.join(known)}"
    if spec.place.startswith(("http:", "https:")):
        hint += "; a URL with a query of its own ends in a question mark"
    return SourceError(f"{spec.name}: there is no option {option}", hint)
