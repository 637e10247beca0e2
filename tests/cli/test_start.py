"""A command imports only what it needs. This measures no time: `bench_start.py` does."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

EX = "http://example.org/"
FRAME = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]"
QUERIES = {
    "top-k": f"SELECT ?s ?v {FRAME} {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 2",
    "general": f"SELECT ?s ?o {FRAME} {{ WINDOW :w {{ ?s :p ?v OPTIONAL {{ ?s :q ?o }} }} }}",
    "groups": f"SELECT ?s (SUM(?v) AS ?n) {FRAME} {{ WINDOW :w {{ ?s :p ?v }} }} GROUP BY ?s"
    " ORDER BY DESC(?n) LIMIT 2",
}
PROGRAM = """
import json, sys
from rsp_engine.cli import main
try: main(sys.argv[1:])
except SystemExit as end: assert not end.code, end.code
print(json.dumps(sorted(sys.modules)))
"""
NEVER = {
    "SPARQLWrapper", "matplotlib", "paho", "pandas", "py4j", "pyarrow", "pydantic",
    "pyjelly", "pyspark", "rdflib", "requests", "rich", "rich.console", "ssl", "urllib3",
    "websockets", "zipfile",
    "rsp_engine.cli.demo", "rsp_engine.cli.doctor", "rsp_engine.cli.experiment",
    "rsp_engine.cli.explain", "rsp_engine.cli.live_view", "rsp_engine.drivers.checkpoint.store",
    "rsp_engine.evaluators.acquatop.evaluator", "rsp_engine.evaluators.incomplete.evaluator",
    "rsp_engine.evaluators.pairs.evaluator", "rsp_engine.evaluators.service.evaluator",
    "rsp_engine.evaluators.service.refresh", "rsp_engine.experiments",
    "rsp_engine.io.sinks.sparql_xml", "rsp_engine.io.sources.files.csv_table",
    "rsp_engine.io.sources.live.payloads", "rsp_engine.operators.incomplete.eaa",
    "rsp_engine.operators.sap.sap", "rsp_engine.plan.explain.text",
}  # fmt: skip


LATER_SHAPES = {
    "rsp_engine.evaluators.column_join", "rsp_engine.operators.pairs.skyband",
    "rsp_engine.plan.shapes.column_join", "rsp_engine.plan.shapes.pairs",
    "rsp_engine.plan.shapes.ranking_refusal",
}  # fmt: skip
"""What the planner does not try for a ranking of groups, which is the first of its shapes."""


def imported(*words: str) -> set[str]:
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("kind", QUERIES)
def test_a_local_run_imports_nothing_that_it_does_not_need(kind, tmp_path):
    (tmp_path / "q.rspql").write_text(f"PREFIX : <{EX}> {QUERIES[kind]}")
    line = f'<{EX}a> <{EX}p> "{{}}"^^<http://www.w3.org/2001/XMLSchema#integer> <{EX}g/{{}}> .\n'
    (tmp_path / "s.nq").write_text("".join(line.format(n, 1000 * n) for n in range(1, 30)))
    words = ["run", str(tmp_path / "q.rspql"), "--stream", f":s={tmp_path / 's.nq'}"]
    found = imported(*words, "--runner", "local", "--max-delay", "1s", "--t0", "0", "--quiet")
    assert {"numpy", "lark", "rsp_engine.evaluators.step"} <= found
    assert found & NEVER == set()
    assert kind != "groups" or found & LATER_SHAPES == set()


def test_a_validation_imports_no_engine(tmp_path):
    (tmp_path / "q.rspql").write_text(f"PREFIX : <{EX}> {QUERIES['top-k']}")
    found = imported("validate", str(tmp_path / "q.rspql"))
    assert "lark" in found
    assert found & (NEVER | {"numpy", "rsp_engine.engine", "rsp_engine.cli.run"}) == set()
