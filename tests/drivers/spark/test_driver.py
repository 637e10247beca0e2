"""The Spark driver: local == Spark, byte for byte."""

from __future__ import annotations

import gzip
from random import Random
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest

from rsp_engine.engine import Engine
from rsp_engine.errors import DriverError
from tests.drivers.cut import texts
from tests.evaluators import test_csrbench as csrbench
from tests.evaluators.test_semantics import CASES
from tests.evaluators.test_semantics import check as check_case
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from pathlib import Path

    from rsp_engine.model.answers import Answer

pytestmark = pytest.mark.usefixtures("spark")

SOME_CASES = CASES if TIMES > 1 else CASES[::12]
"""A Spark query takes seconds to start: a usual run takes every sixth case."""


@pytest.mark.parametrize("path", SOME_CASES, ids=lambda path: path.stem)
def test_a_case_of_the_semantics_holds_on_spark(path, tmp_path, monkeypatch):
    monkeypatch.setenv("RSP_RUNNER", "spark")
    check_case(path, tmp_path)


EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = f"PREFIX : <{EX}> REGISTER RSTREAM :q AS "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 2s]"
KINDS = {
    "the best": f"""SELECT ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}
        ORDER BY DESC(?v) LIMIT 5""",
    "filtered": f"""SELECT ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v FILTER (?v < 300) }} }}
        ORDER BY ?v LIMIT 3""",
    "groups": f"""SELECT ?s (SUM(?v) AS ?x) {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}
        GROUP BY ?s ORDER BY DESC(?x) LIMIT 3""",
    "joined": f"""SELECT ?s (?v + ?f AS ?x) {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }}
        SERVICE :BKG {{ ?s :f ?f }} }} ORDER BY DESC(?x) LIMIT 3""",
    "joined groups": f"""SELECT ?s (COUNT(*) + ?f AS ?x) {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }}
        SERVICE :BKG {{ ?s :f ?f }} }} GROUP BY ?s ?f ORDER BY DESC(?x) LIMIT 3""",
    "all rows": f"SELECT ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}",
    "general": f"""SELECT ?s (MAX(?v) AS ?m) {WINDOW}
        WHERE {{ WINDOW :w {{ ?s :p ?v . ?s :q ?w }} }} GROUP BY ?s""",
    "served": f"""SELECT ?s ?f {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v . ?s :q ?w }}
        SERVICE :BKG {{ ?s :f ?f }} }}""",
    "counted": """SELECT ?s ?v FROM NAMED WINDOW :w ON :s [ELEMENTS 50 STEP 20]
        WHERE { WINDOW :w { ?s :p ?v } }""",
    "the best counted": """SELECT ?s ?v FROM NAMED WINDOW :w ON :s [ELEMENTS 50 STEP 20]
        WHERE { WINDOW :w { ?s :p ?v } } ORDER BY DESC(?v) LIMIT 5""",
}


def lines(seed: int, *, late: bool) -> list[str]:
    """Return a stream of N-Quads in which time goes on, and some are late."""
    chance, found = Random(seed), []  # noqa: S311 - a story
    for number in range(2_000):
        time = 1_000 + 25 * number - (chance.randrange(4_000) if late else 0)
        value = f'"{chance.randrange(1_000)}"^^<{XSD}integer>'
        predicate = "pppq"[chance.randrange(4)]
        subject = f"<{EX}s{chance.randrange(30)}>"
        found.append(f"{subject} <{EX}{predicate}> {value} <{EX}g/{max(time, 1)}> .\n")
    return found


def engine(
    kind: str, source: str, runner: str, split_bytes: int = 20_000, checkpoint: Path | None = None
) -> Engine:
    remote = ox.Store()
    for number in range(30):
        subject, value = ox.NamedNode(f"{EX}s{number}"), ox.Literal(37 * number % 100)
        remote.add(ox.Quad(subject, ox.NamedNode(f"{EX}f"), value))
    options: dict[str, Any] = {"runner": runner, "split_bytes": split_bytes}
    options["checkpoint"] = checkpoint
    made = Engine(max_delay=1_000, budget=3, n=2, **options)
    if "SERVICE" in KINDS[kind]:
        made.service(f"{EX}BKG", remote)
    made.register(HEAD + KINDS[kind])
    made.bind(f"{EX}s", source)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_query_gives_the_same_bytes_on_spark(kind, tmp_path):
    path = tmp_path / "stream.nq"
    path.write_text("".join(lines(1, late=True)), encoding="utf-8")
    local, spark = engine(kind, str(path), "local"), engine(kind, str(path), "spark")
    expected = texts(local)
    assert len(expected) > 10
    assert texts(spark) == expected
    assert spark.counts == local.counts


def test_what_executors_cannot_read_the_driver_reads(tmp_path):
    path = tmp_path / "stream.nq.gz"
    path.write_bytes(gzip.compress("".join(lines(2, late=False)).encode()))
    source = f"{path}?format=nquads"
    assert texts(engine("the best", source, "spark")) == texts(engine("the best", source, "local"))


def test_several_queries_share_one_reading(tmp_path):
    path = tmp_path / "stream.nq"
    path.write_text("".join(lines(3, late=False)), encoding="utf-8")
    runs = []
    for runner in ("local", "spark"):
        made = engine("the best", str(path), runner)
        for number, kind in enumerate(("groups", "general")):
            made.register(HEAD.replace(":q", f":q{number}") + KINDS[kind])
        found: dict[str, list[Answer]] = {}
        for answer in made.run():
            found.setdefault(answer.query, []).append(answer)
        runs.append(found)
    assert len(runs[0]) == 3
    assert runs[1] == runs[0]


def test_csrbench_is_answered_on_spark(tmp_path, monkeypatch):
    monkeypatch.setenv("RSP_RUNNER", "spark")
    csrbench.test_q1_tumbles_over_ten_seconds(tmp_path)
    csrbench.test_q2_tumbles_over_a_second(tmp_path)
    csrbench.test_q5_slides_over_five_seconds(tmp_path)


def test_a_file_that_is_gone_for_the_executors_ends_the_run(tmp_path):
    path = tmp_path / "stream.nq"
    path.write_text("".join(lines(1, late=False)), encoding="utf-8")
    made = engine("the best", str(path), "spark")
    answers = made.run()
    path.unlink()
    with pytest.raises((DriverError, OSError)):
        list(answers)
