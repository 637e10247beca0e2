"""Several queries over one stream, which is read once: a ranking, an average, and an alarm.

Each has windows of its own. Answers come as windows close, and say by `query` whose they are.
"""

from __future__ import annotations

from rsp_engine import Engine
from rsp_engine.model.answers import Boolean, Solutions

engine = Engine()
engine.register("""
    PREFIX : <http://example.org/>
    REGISTER RSTREAM :fastest AS SELECT ?car ?speed
    FROM NAMED WINDOW :w ON STREAM :passages [RANGE 30s STEP 30s]
    WHERE { WINDOW :w { ?car :speed ?speed } }
    ORDER BY DESC(?speed) LIMIT 2
""")
engine.register("""
    PREFIX : <http://example.org/>
    REGISTER RSTREAM :usual AS SELECT (AVG(?speed) AS ?mean) (COUNT(?car) AS ?cars)
    FROM NAMED WINDOW :w ON STREAM :passages [RANGE 1m STEP 1m]
    WHERE { WINDOW :w { ?car :speed ?speed } }
""")
engine.register("""
    PREFIX : <http://example.org/>
    REGISTER ISTREAM :jam AS ASK
    FROM NAMED WINDOW :w ON STREAM :passages [ELEMENTS 5]
    WHERE { { SELECT (MAX(?speed) AS ?most) WHERE { WINDOW :w { ?car :speed ?speed } } }
            FILTER (?most < 40) }
""")
speeds = [55, 61, 48, 52, 70, 38, 22, 31, 12, 35, 8, 11, 20, 15, 9, 44, 50, 58, 63, 57]
engine.bind(
    "http://example.org/passages",
    [
        (4_000 * n, f"<http://example.org/car{n}> <http://example.org/speed> {speed} .")
        for n, speed in enumerate(speeds, start=1)
    ],
)
for answer in engine.run():
    name, close = answer.query.split("/")[-1], f"{answer.window.close // 1000:3} s"
    match answer.content:
        case Solutions(_, rows):
            terms = (term.value.split("/")[-1] for row in rows for term in row.bindings.values())
            print(f"{close}  {name:8}", *terms)
        case Boolean(bool(is_jam)):  # an ISTREAM tells what is new
            print(f"{close}  {name:8}", "a jam" if is_jam else "no jam")
