"""The room of the sources: what a user names becomes an iterator of elements and dead letters.

    spec            what the user wrote: a place, and options
    inputs, web     the bytes of a file, of the standard input, of a URL; gzip undone
    blocks          bytes into blocks of whole lines
    batch           the elements of a block, side by side
    jsonl, nquads, trig, turtle_files, csv_table    one format each
    live            messages of brokers, by way of a spool on disk
    formats         the formats by name, and `open_source`

What cannot be opened is refused with `SourceError`. What can be opened is read to its end: a
piece that is malformed becomes a dead letter with its place, its bytes and the reason, and its
neighbours are kept. So does the place where an input breaks off: a damaged gzip file, a lost
connection.
"""

from __future__ import annotations

from rsp_engine.io.sources.formats import SOURCE_FORMATS, SourceFormat, open_source
from rsp_engine.io.sources.source import BlankNodeScope, ElementSource

__all__ = ["SOURCE_FORMATS", "BlankNodeScope", "ElementSource", "SourceFormat", "open_source"]
