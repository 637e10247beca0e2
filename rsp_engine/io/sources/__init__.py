"""Sources: iterators of elements and dead letters, opened from a specification such as `a.nq`.

    spec            a source specification: a place and options
    inputs          the bytes of a file, of standard input or of a URL, decompressed
    splits          splits: parts of a source that can be read independently
    batch           the elements of a block, column by column
    files           recorded streams, one module per format
    columns         vectorised readers of plain N-Quads and JSON lines
    live            messages of brokers and servers, spooled to disk
    formats         the formats by name, and `open_source`

A source that cannot be opened raises `SourceError`. A source that can be opened is read to its end:
a malformed piece becomes a dead letter with its position, its bytes and the reason, and the rest is
read on. An input that breaks off (damaged gzip, a lost connection) ends with a dead letter, too.
"""

from __future__ import annotations

from rsp_engine.io.sources.formats import SOURCE_FORMATS, open_source
from rsp_engine.io.sources.source import BlankNodeScope, ElementSource

__all__ = ["SOURCE_FORMATS", "BlankNodeScope", "ElementSource", "open_source"]
