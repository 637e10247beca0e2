"""One query feeds another: hot readings become alerts, and the alerts of a while are counted.

The first query is a CONSTRUCT that is registered as a stream; the second one reads that stream by
its name, as if it came from elsewhere. Each answer is an element whose time is the close of its
window. Only :readings needs a source.
"""

from __future__ import annotations

from rsp_engine import Engine
from rsp_engine.model.answers import Graph, Solutions

engine = Engine()
engine.register("""
    PREFIX : <http://example.org/>
    REGISTER ISTREAM :alerts AS
    CONSTRUCT { ?room :alert ?degrees }
    FROM NAMED WINDOW :now ON STREAM :readings [RANGE 10s TUMBLING]
    WHERE { WINDOW :now { ?room :temperature ?degrees } FILTER (?degrees > 26) }
""")
engine.register("""
    PREFIX : <http://example.org/>
    REGISTER RSTREAM :trouble AS
    SELECT ?room (COUNT(?degrees) AS ?alerts)
    FROM NAMED WINDOW :while ON STREAM :alerts [RANGE 1m STEP 30s]
    WHERE { WINDOW :while { ?room :alert ?degrees } }
    GROUP BY ?room
    ORDER BY DESC(?alerts) LIMIT 2
""")
triple = "<http://example.org/{}> <http://example.org/temperature> {} ."
rooms = ("lab", "attic", "hall")
engine.bind(
    "http://example.org/readings",
    [(s * 1000, triple.format(rooms[s % 3], 20 + s * 7 % 11)) for s in range(2, 62, 4)],
)
for answer in engine.run():
    at = f"{answer.window.close // 1000:3} s"
    match answer.content:
        case Graph(triples) if triples:
            print(at, "  alert:", *(str(t.subject)[20:-1] for t in triples))
        case Solutions(_, rows):
            told = ", ".join(f"{row.bindings['room'].value[19:]} {row.score:g}" for row in rows)
            print(at, f"  most alerts in the last minute: {told}")
