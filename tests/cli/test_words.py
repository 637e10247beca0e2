"""The small subcommands: policies, doctor, demo, and dry runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rsp_engine.cli import doctor
from rsp_engine.model.extras import install_command
from rsp_engine.policies.registry import POLICIES
from tests.cli.terminals import on_a_terminal
from tests.cli.test_run import here, rsp
from tests.io.delivery.receivers import WebhookServer

__all__ = ["here"]

RANKED = """PREFIX : <http://example.org/>
REGISTER RSTREAM :best AS
SELECT ?user (?n + ?f AS ?score)
FROM NAMED WINDOW :w ON STREAM :s [RANGE 9s STEP 3s]
WHERE { WINDOW :w { ?user :mentions ?n } SERVICE :people { ?user :followers ?f } }
ORDER BY DESC(?score) LIMIT 3
"""


def test_every_policy_has_a_line_and_a_section():
    lines = rsp("policies").stdout.splitlines()
    assert [line.split()[0] for line in lines[: len(POLICIES)]] == list(POLICIES)
    rows = json.loads(rsp("policies", "--format", "json").stdout)
    assert {row["name"] for row in rows} == set(POLICIES)
    assert all(row["summary"] and row["section"] for row in rows)


def test_a_new_policy_runs_as_it_is_and_is_never_overwritten(here):
    begun = rsp("policies", "new", "mine.py")
    assert begun.exit_code == 0, begun.stderr
    assert "--policy mine.py:MY_POLICY" in begun.stdout
    (here / "best.rspql").write_text(RANKED)
    explain = ("explain", "best.rspql", "--service", ":people=http://localhost:1/", "--policy")
    told = rsp(*explain, "mine.py:MY_POLICY")
    assert "policy   AT-MINE: old values near the top" in told.stdout
    Path("mine.py").write_text("mine")
    again = rsp("policies", "new", "mine.py")
    assert (again.exit_code, Path("mine.py").read_text()) == (2, "mine")
    assert "mine.py exists already, and is left as it is" in again.stderr
    told = rsp(*explain, "mine.py:MY_POLICY")
    assert told.exit_code == 2
    assert "mine.py, line 1: the file cannot be imported: NameError" in told.stderr


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("mine", "mine is not a Python file"),
        ("none/mine.py", "none/mine.py cannot be written: No such file or directory"),
    ],
)
def test_a_policy_that_cannot_be_written_is_refused(here, file, reason):
    refused = rsp("policies", "new", file)
    assert refused.exit_code == 2
    assert reason in refused.stderr


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


def test_the_doctor_reaches_the_sinks_of_the_file(here):
    with WebhookServer() as server:
        text = f'[[sink]]\nto = "{server.url}?key=hush?"\n[[sink]]\nto = "answers.csv"\n'
        (here / "rsp.toml").write_text(text)
        result = rsp("doctor")
        assert f"ok       sink        {server.url}?key=*** can be reached" in result.stdout
        assert server.requests == 0, "it is sent nothing"
    result = rsp("doctor", "--sink", "mqtt://127.0.0.1:9/warm")
    assert result.exit_code == 3
    assert "mqtt://127.0.0.1:9/warm cannot be reached: Connection refused" in result.stdout


def test_the_doctor_reaches_a_server(here, monkeypatch):
    monkeypatch.setattr("rsp_engine.replica.endpoints.probe.HttpClient", _Answering)
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
    monkeypatch.setattr(doctor, "examine", lambda *_: [finding])
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
    lines = result.stdout.splitlines()
    heads = "window   7 fetches a window       right  no refresh               right  all fetched"
    first = lines.index(f" {heads}: exact") + 1
    windows = [line.split() for line in lines[first : first + 3]]
    assert [words[0] for words in windows] == ["100", "160", "220"]
    answers = [[*words[2:7], *words[8:13], *words[14:]] for words in windows]
    assert all(len(users) == 15 and not re.search(r"\*", "".join(users[10:])) for users in answers)
    assert answers[0] == answers[0][:5] * 3, "nothing has changed yet"
    assert any("*" in user for users in answers for user in users[5:10]), "no refresh is not enough"
    assert lines[first + 3] == ""
    assert re.search(r"^  no refresh .* 0 users fetched$", result.stdout, re.MULTILINE)
    assert re.fullmatch(r"The budget bought .* of the fetches that exact answers need\.", lines[-1])


def test_the_demo_says_what_it_is_about_before_anything_slow(monkeypatch):
    monkeypatch.setitem(sys.modules, "rsp_engine.experiments.demonstration", None)
    result = rsp("demo")
    assert isinstance(result.exception, ModuleNotFoundError)
    assert result.stdout.startswith("Which 5 users should we contact right now?\n")


def test_without_its_server_the_demo_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("rsp_engine.experiments.demonstration.shutil.which", lambda *_, **__: None)
    result = rsp("demo", "--runner", "local")
    assert result.exit_code == 3
    assert result.stderr.endswith(f"  = hint: install it: {install_command('demo')}\n")


@pytest.mark.parametrize(("columns", "is_shown"), [(100, True), (80, False)])
def test_on_a_terminal_the_demo_fits_its_width_and_shows_its_progress(columns, is_shown):
    width = {"COLUMNS": str(columns)}
    done = on_a_terminal("demo", "--windows", "2", "--speed", "1000", environment=width)
    assert done.code == 0
    shown = done.seen.decode()
    assert "starting a SPARQL server" in shown
    shown = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", shown).replace("\r", "")
    assert "  started a SPARQL server" in shown
    table = shown[shown.index("\n window ") :]
    assert ("all fetched: exact" in table) is is_shown
    assert max(map(len, table.splitlines())) <= columns


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
