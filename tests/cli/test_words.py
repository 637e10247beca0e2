"""The small subcommands: policies, doctor, demo, and dry runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from rsp_engine.cli import doctor
from rsp_engine.policies.registry import POLICIES
from tests.cli.test_run import here, rsp

__all__ = ["here"]


def test_every_policy_has_a_line_and_a_section():
    lines = rsp("policies").stdout.splitlines()
    assert [line.split()[0] for line in lines[: len(POLICIES)]] == list(POLICIES)
    rows = json.loads(rsp("policies", "--format", "json").stdout)
    assert {row["name"] for row in rows} == set(POLICIES)
    assert all(row["summary"] and row["section"] for row in rows)


def test_the_doctor_tells_what_is_there(here):
    result = rsp("doctor", "--format", "json")
    found = {finding["name"]: finding for finding in json.loads(result.stdout)}
    assert {"Java", "Spark", "Python", "memory", "disk", "rsp-engine"} <= set(found)
    needed = [finding["is_well"] for finding in found.values() if finding["needed"]]
    assert result.exit_code == (0 if all(needed) else 3)


def test_the_doctor_misses_java(here, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(here))
    result = rsp("doctor")
    assert result.exit_code == 3
    assert "MISSING  Java        none; Spark needs 17 or later" in result.stdout
    assert "= hint: install one" in result.stdout


def test_the_doctor_tries_endpoints(here):
    result = rsp("doctor", "--service", "http://example.org/b=http://127.0.0.1:9/sparql")
    assert result.exit_code == 3
    assert "http://127.0.0.1:9/sparql does not answer: refused connection" in result.stdout


def test_the_doctor_reaches_a_server(here, monkeypatch):
    monkeypatch.setattr("rsp_engine.replica.endpoints.probe.Client", _Answering)
    (here / "rsp.toml").write_text('[services]\n"http://example.org/b" = "http://127.0.0.1:9/q"\n')
    assert "http://127.0.0.1:9/q answers in" in rsp("doctor").stdout


class _Answering:
    def __init__(self, *_: object) -> None:
        pass

    def ask(self, query: str, until: float) -> None:
        assert query == "ASK {}"
        assert until > time.monotonic()

    def close(self) -> None:
        pass


def test_what_is_missing_but_not_needed_does_no_harm(monkeypatch):
    finding = doctor.Check("[x]", False, "not there", needed=False)
    monkeypatch.setattr(doctor, "examine", lambda urls: [finding])
    result = rsp("doctor")
    assert result.exit_code == 0
    assert result.stdout == "-        [x]         not there\n"


def test_a_dry_run_reads_and_sends_nothing(here):
    (here / "readings.jsonl").unlink()
    (here / "readings.jsonl").write_text("not read")
    result = rsp("run", "hot.rspql", "--stream", ":readings=readings.jsonl", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.startswith("query http://example.org/hot")
    assert result.stderr == ""


def test_a_dry_run_refuses_what_a_run_refuses(here):
    result = rsp("run", "hot.rspql", "--dry-run")
    assert result.exit_code == 2
    assert "has no source" in result.stderr


@pytest.mark.parametrize("runner", ["local", "spark"])
def test_the_demo_ends_by_itself_and_is_judged(runner, request):
    if runner == "spark":
        request.getfixturevalue("spark")
    result = rsp("demo", "--runner", runner, "--windows", "3", "--speed", "1000")
    assert result.exit_code == 0, result.output
    *_, last = result.stdout.splitlines()
    assert last.startswith("against the oracle: nDCG ")
    assert result.stdout.count("precision ") == 4


@pytest.mark.parametrize("words", [["--help"], ["validate", "--help"], ["policies"]])
def test_words_that_need_neither_spark_nor_java_start_quickly(words):
    """This measures no time: it checks that slow modules are not imported."""
    code = (
        "import sys; from rsp_engine.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "slow = {'pyspark', 'pyarrow', 'rdflib', 'matplotlib', 'pandas'}\n"
        "print(sorted(slow & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
