"""A run that uses every kind of state: its queries, its streams and its remote data."""

from __future__ import annotations

import sys
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["QUERIES", "REMOTE", "SECONDS", "command", "write"]

EX = "http://example.org/"
SECONDS = 900
USERS = 60
XSD = "http://www.w3.org/2001/XMLSchema#"
QUERIES = {
    "ranked-service": """SELECT ?user (?n + ?f AS ?score)
        FROM NAMED WINDOW :w ON STREAM :s [RANGE 9s STEP 3s]
        WHERE { WINDOW :w { ?user :mentions ?n } SERVICE :users { ?user :followers ?f } }
        ORDER BY DESC(?score) LIMIT 3""",
    "grouped": """SELECT ?user (SUM(?n) AS ?sum)
        FROM NAMED WINDOW :w ON STREAM :s [RANGE 30s STEP 10s]
        WHERE { WINDOW :w { ?user :mentions ?n } } GROUP BY ?user ORDER BY DESC(?sum) LIMIT 5""",
    "pairs": """SELECT ?a ?b (ABS(?x - ?y) AS ?apart)
        FROM NAMED WINDOW :w ON STREAM :s [RANGE 6s STEP 3s]
        WHERE { WINDOW :w { ?a :mentions ?x . ?b :mentions ?y . FILTER (STR(?a) < STR(?b)) } }
        ORDER BY ?apart LIMIT 4""",
    "counted": """SELECT ?user ?n FROM NAMED WINDOW :w ON STREAM :s [ELEMENTS 40 STEP 15]
        WHERE { WINDOW :w { ?user :mentions ?n } } ORDER BY DESC(?n) LIMIT 3""",
    "incomplete": """SELECT ?user (SUM(?v) AS ?sum)
        FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 5s]
        FROM NAMED WINDOW :w2 ON STREAM :t [RANGE 10s STEP 5s]
        WHERE { { WINDOW :w { ?user :mentions ?v } } UNION { WINDOW :w2 { ?user :likes ?v } } }
        GROUP BY ?user ORDER BY DESC(?sum) LIMIT 3""",
    "general": """SELECT ?user (COUNT(*) AS ?both)
        FROM NAMED WINDOW :w ON STREAM :s [RANGE 20s STEP 10s]
        FROM NAMED WINDOW :w2 ON STREAM :t [RANGE 20s STEP 10s]
        WHERE { WINDOW :w { ?user :mentions ?n } WINDOW :w2 { ?user :likes ?l } FILTER (?l < ?n) }
        GROUP BY ?user HAVING (COUNT(*) > 1)""",
    "hot": """CONSTRUCT { ?user :heat ?n } FROM NAMED WINDOW :w ON STREAM :s [RANGE 4s STEP 2s]
        WHERE { WINDOW :w { ?user :mentions ?n FILTER (?n > 30) } }""",
    "chained": """SELECT ?user ?h FROM NAMED WINDOW :w ON STREAM :hot [RANGE 12s STEP 6s]
        WHERE { WINDOW :w { ?user :heat ?h } } ORDER BY DESC(?h) LIMIT 2""",
}
REMOTE = "".join(
    f"<{EX}u{number}> <{EX}followers> {(37 * number) % 101} .\n" for number in range(USERS)
)


def write(folder: Path) -> None:
    """Write the queries and the streams; some elements are late, and some lines are malformed."""
    for name, body in QUERIES.items():
        register = "STREAM" if body.startswith("CONSTRUCT") else "RSTREAM"
        text = f"PREFIX : <{EX}>\nREGISTER {register} :{name} AS\n{body}\n"
        (folder / f"{name}.rspql").write_text(text, encoding="utf-8")
    for stream, verb, rate in (("s", "mentions", 12), ("t", "likes", 5)):
        (folder / f"{stream}.nq").write_text(_stream(verb, rate), encoding="utf-8")


def _stream(verb: str, rate: int) -> str:
    chance, lines = Random(verb), []  # noqa: S311 - a story
    for second in range(SECONDS):
        for _ in range(rate):
            time = 1000 * second + chance.randrange(1500) - 500 * (chance.random() < 0.02)
            value = f'"{chance.randrange(50)}"^^<{XSD}integer>'
            user = f"<{EX}u{chance.randrange(USERS)}>"
            lines.append(f"{user} <{EX}{verb}> {value} <{EX}g/{max(time, 1)}> .\n")
        if chance.random() < 0.05:
            lines.append(f"{user} <{EX}{verb} broken .\n")
    return "".join(lines)


def command(service: str, *more: str) -> list[str]:
    """Return the command that runs all queries of the story, in the folder of its files."""
    queries = [f"{name}.rspql" for name in QUERIES]
    streams = [f"--stream={EX}{name}={name}.nq" for name in "st"]
    remote = [f"--service={EX}users={service}", "--policy=AT-TSM", "--budget=4"]
    cache = ["--replica=cache", "--capacity=20", "--max-delay=1s", "--split-bytes=20000"]
    return [
        sys.executable,
        "-m",
        "rsp_engine.cli",
        "run",
        *queries,
        *streams,
        *remote,
        *cache,
        "--output=answers.jsonl",
        "--dead-letters=letters.jsonl",
        "--manifest=manifest.json",
        *more,
    ]
