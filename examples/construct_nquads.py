"""Answers as RDF: a CONSTRUCT whose graphs are written as N-Quads, which can be read as a stream.

Each window is a graph, and its name ends in the instant at which the window closes.
"""

from __future__ import annotations

import sys
from contextlib import closing

from rsp_engine import Engine
from rsp_engine.io.sinks import open_sink

engine = Engine()
engine.register("""
    PREFIX : <http://example.org/>
    REGISTER ISTREAM :alerts AS
    CONSTRUCT { ?room :alert [ a :Overheating ; :degrees ?degrees ] }
    FROM NAMED WINDOW :w ON STREAM :readings [RANGE 20s STEP 10s]
    WHERE { WINDOW :w { ?room :temperature ?degrees } FILTER (?degrees > 26) }
""")
triple = "<http://example.org/{}> <http://example.org/temperature> {} ."
readings = [(3_000, "hall", 22), (8_000, "lab", 28), (14_000, "attic", 31), (25_000, "lab", 25)]
engine.bind("http://example.org/readings", [(t, triple.format(r, d)) for t, r, d in readings])

path = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1].endswith(".nq") else None
with closing(open_sink("nquads", path, "CONSTRUCT")) as sink:  # without a path, standard output
    for answer in engine.run():
        sink.write(answer)
