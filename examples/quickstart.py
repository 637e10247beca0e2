"""The two warmest rooms of the last minute, told every twenty seconds."""

from rsp_engine import Engine
from rsp_engine.model.answers import Solutions

engine = Engine()
engine.register("""
    PREFIX : <http://example.org/>
    REGISTER RSTREAM :warmest AS
    SELECT ?room ?degrees
    FROM NAMED WINDOW :w ON STREAM :readings [RANGE 1m STEP 20s]
    WHERE { WINDOW :w { ?room :temperature ?degrees } }
    ORDER BY DESC(?degrees) LIMIT 2""")
# A stream is pairs of a time in milliseconds and Turtle; a file, a URL or "-" would do as well.
readings = [(5, "hall", 19), (12, "lab", 24), (31, "attic", 27), (48, "lab", 22), (77, "hall", 25)]
triple = "<http://example.org/{}> <http://example.org/temperature> {} ."
engine.bind(
    "http://example.org/readings", [(s * 1000, triple.format(r, t)) for s, r, t in readings]
)

for answer in engine.run():
    rows = answer.content.rows if isinstance(answer.content, Solutions) else ()
    best = ", ".join(f"{row.bindings['room'].value[19:]} {row.score:g}" for row in rows)
    print(f"the minute to {answer.window.close // 1000:3} s: {best}")
