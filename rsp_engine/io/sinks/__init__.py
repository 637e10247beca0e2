"""Sinks: the output of answers and dead letters.

A format serializes an answer, and a destination stores the bytes. Each format has a module of its
own. Equal answers give equal bytes. A file is truncated when it is opened, written in place, and
flushed after every answer, so that `tail -f` follows a run.

    jsonl         one line per window: rows with rank and score, a graph, or a boolean
    csv, tsv      SPARQL 1.1 tables, preceded by columns for the window, the rank and the score
    sparql-json   SPARQL 1.1 result documents, one per window: one after the other,
    sparql-xml        or each in a file of its own if the output is a folder
    nquads        graphs, each named after its query and the close of its window
    jelly         the same graphs, in binary frames

If the reader of standard output exits (`rsp run ... | head`), the `BrokenPipeError` is not caught,
so that the run stops; standard output is redirected to the null device, so that Python exits
without a message. Every other failure is a `SinkError` that names the output.
"""

from rsp_engine.io.sinks.dead_letters import DeadLetterFile
from rsp_engine.io.sinks.format import DEFAULT_FORMAT, FORMATS, Callback, Sink, open_sink

__all__ = [
    "DEFAULT_FORMAT",
    "FORMATS",
    "Callback",
    "DeadLetterFile",
    "Sink",
    "open_sink",
]
