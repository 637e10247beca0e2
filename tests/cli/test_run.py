"""`rsp run` and `rsp explain`, as a user calls them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app

if TYPE_CHECKING:
    from typer.testing import Result

QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :hot AS
SELECT ?room ?t
FROM NAMED WINDOW :w ON STREAM :readings [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t } }
ORDER BY DESC(?t)
LIMIT 1
"""
CONSTRUCT = """PREFIX : <http://example.org/>
REGISTER RSTREAM :alarms AS
CONSTRUCT { ?room :alarm ?t }
FROM NAMED WINDOW :w ON STREAM :readings [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t FILTER (?t > 20) } }
"""
COUNTING = """PREFIX : <http://example.org/>
REGISTER RSTREAM :count AS
SELECT (COUNT(*) AS ?n)
FROM NAMED WINDOW :w ON STREAM :alarms [RANGE 20s STEP 20s]
WHERE { WINDOW :w { ?room :alarm ?t } }
"""
LINES = [
    {"timestamp": 1000, "graph": "<http://example.org/a> <http://example.org/temperature> 20 ."},
    {"timestamp": 2000, "graph": "<http://example.org/b> <http://example.org/temperature> 25 ."},
    {"timestamp": 12000, "graph": "<http://example.org/a> <http://example.org/temperature> 30 ."},
]

RUN = ("run", "hot.rspql", "--stream", ":readings=readings.jsonl")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a query and a stream, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hot.rspql").write_text(QUERY)
    (tmp_path / "alarms.rspql").write_text(CONSTRUCT)
    (tmp_path / "count.rspql").write_text(COUNTING)
    (tmp_path / "readings.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in LINES))
    return tmp_path


def rsp(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, arguments, env=env)


def test_answers_go_to_standard_output_and_nothing_else_does(here):
    done = rsp(*RUN)
    assert done.exit_code == 0, done.output
    first, second = map(json.loads, done.stdout.splitlines())
    assert list(first) == ["query", "window", "rows", "stats"]
    assert first["query"] == "http://example.org/hot"
    assert first["window"] == {"open": 0, "close": 10000}
    assert [(r["rank"], r["score"]) for r in first["rows"]] == [(1, 25.0)]
    assert second["rows"][0]["bindings"]["room"]["value"] == "http://example.org/a"
    assert done.stderr == "3 elements, 2 windows, 2 rows\n"
    assert rsp(*RUN, "--quiet").stderr == ""
    assert rsp(*RUN, "--quiet").stdout == done.stdout


@pytest.mark.parametrize(
    "name", [":readings", "http://example.org/readings", "<http://example.org/readings>"]
)
def test_a_stream_is_named_as_in_the_query_or_in_full(here, name):
    done = rsp("run", "hot.rspql", "--stream", f"{name}=readings.jsonl")
    assert done.exit_code == 0, done.output


def test_the_same_stream_in_several_files_gives_the_same_bytes(here):
    whole = rsp("run", "hot.rspql", "--stream", ":readings=readings.jsonl").stdout
    for place, line in enumerate(LINES):
        (here / f"part{place}.jsonl").write_text(json.dumps(line))
    with gzip.open(here / "part0.jsonl.gz", "wt") as file:
        file.write(json.dumps(LINES[0]))
    parts = ["part2.jsonl", "part0.jsonl.gz", "part1.jsonl"]
    flags = [flag for part in parts for flag in ("--stream", f":readings={part}")]
    assert rsp("run", "hot.rspql", *flags).stdout == whole


def test_standard_input_is_a_stream(here):
    command = [sys.executable, "-m", "rsp_engine.cli", "run", "hot.rspql"]
    done = subprocess.run(  # noqa: S603
        [*command, "--stream", ":readings=-?format=jsonl"],
        input=(here / "readings.jsonl").read_bytes(),
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert (
        done.stdout.decode()
        == rsp("run", "hot.rspql", "--stream", ":readings=readings.jsonl").stdout
    )


def test_a_registered_construct_feeds_another_query(here):
    flags = ["--stream", ":readings=readings.jsonl"]
    done = rsp("run", "alarms.rspql", "count.rspql", *flags)
    assert done.exit_code == 0, done.output
    by_query = [
        (line["query"].rpartition("/")[2], line)
        for line in map(json.loads, done.stdout.splitlines())
    ]
    assert [name for name, _ in by_query] == ["alarms", "alarms", "count"]
    counted = by_query[2][1]
    assert counted["window"] == {"open": 0, "close": 20000}
    assert counted["rows"][0]["bindings"]["n"]["value"] == "2"


def test_what_was_set_aside_is_kept_and_counted(here):
    lines = [json.dumps(LINES[2]), "{not json", json.dumps(LINES[0])]
    (here / "late.jsonl").write_text("\n".join(lines))
    flags = ["--stream", ":readings=late.jsonl", "--dead-letters", "dead.jsonl"]
    done = rsp("run", "hot.rspql", *flags)
    assert done.exit_code == 0, done.output
    dead = [json.loads(line) for line in (here / "dead.jsonl").read_text().splitlines()]
    assert [(d["source"], d["position"], d["raw"]) for d in dead] == [
        ("late.jsonl", 2, lines[1] + "\n"),
        ("late.jsonl", 3, lines[2]),
    ]
    assert dead[1]["reason"].startswith("late:")
    assert done.stderr.splitlines() == [
        "2 elements, 1 window, 1 row",
        "1 element set aside: late; --max-delay DURATION waits for late elements",
        "1 element set aside: malformed; the first is late.jsonl, line 2: the line is not JSON:"
        " Expecting property name enclosed in double quotes, column 2",
        "dead.jsonl has what was set aside",
    ]


def test_a_late_element_is_in_time_with_max_delay(here):
    lines = [json.dumps(LINES[2]), json.dumps(LINES[0])]
    (here / "late.jsonl").write_text("\n".join(lines))
    done = rsp("run", "hot.rspql", "--stream", ":readings=late.jsonl", "--max-delay", "11s")
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == "2 elements, 2 windows, 2 rows\n"


REFUSED = {
    "a stream without a source": (["hot.rspql"], "<http://example.org/readings> has no source"),
    "a source without a use": (
        ["hot.rspql", "--stream", ":readings=readings.jsonl", "--stream", ":other=readings.jsonl"],
        "no query reads stream <http://example.org/other>",
    ),
    "a missing file": (["hot.rspql", "--stream", ":readings=nothing.jsonl"], "nothing.jsonl"),
    "an unknown format": (["hot.rspql", "--stream", ":readings=hot.rspql"], "hot.rspql"),
    "an unknown option": (
        ["hot.rspql", "--stream", ":readings=readings.jsonl?formt=jsonl"], "formt"
    ),
    "no equals sign": (["hot.rspql", "--stream", "readings"], "not of the form IRI=VALUE"),
    "a negative delay": (
        ["hot.rspql", "--stream", ":readings=readings.jsonl", "--max-delay=-5s"], "negative"
    ),
    "no duration": (
        ["hot.rspql", "--stream", ":readings=readings.jsonl", "--max-delay", "P1M"], "months"
    ),
    "an unknown output format": (
        ["hot.rspql", "--stream", ":readings=readings.jsonl", "--format", "pdf"], "pdf"
    ),
    "a graph as a table": (
        ["alarms.rspql", "--stream", ":readings=readings.jsonl", "--format", "csv"], "CONSTRUCT"
    ),
    "two queries in one table": (
        ["hot.rspql", "count.rspql", "--format", "csv"], "csv holds the answers of one query"
    ),
    "an output that cannot be written": (
        ["hot.rspql", "--stream", ":readings=readings.jsonl", "--output", "no/such/folder/x"],
        "no/such/folder",
    ),
    "dead letters that cannot be written": (
        ["hot.rspql", "--stream", ":readings=readings.jsonl", "--dead-letters", "no/such/folder/x"],
        "no/such/folder",
    ),
    "the same query twice": (["hot.rspql", "hot.rspql"], "two queries are called"),
    "a missing query": (["nothing.rspql"], "there is no such file"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_call_is_refused_before_anything_runs(here, arguments, message):
    done = rsp("run", *arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_service_needs_a_service_binding(here):
    text = QUERY.replace("WHERE {", "WHERE { SERVICE :remote { ?room :floor ?floor }")
    (here / "service.rspql").write_text(text)
    done = rsp("run", "service.rspql", "--stream", ":readings=readings.jsonl")
    assert done.exit_code == 2
    assert "needs a service binding" in done.stderr


def test_explain_prints_both_plans_and_why(here):
    done = rsp("explain", "hot.rspql")
    assert done.exit_code == 0, done.output
    for part in (
        "Logical plan",
        "OrderBy DESC(?t)",
        "Physical plan",
        "MinTopk",
        "why",
        "RANGE 10s",
    ):
        assert part in done.stdout
    data = json.loads(rsp("explain", "hot.rspql", "--format", "json").stdout)
    assert data["query"] == "http://example.org/hot"
    assert data["logical"]["operator"] == "Stream"
    assert data["physical"]["windows"][0]["stream"] == "http://example.org/readings"


def test_a_command_line_of_run_is_one_of_explain(here):
    line = ["hot.rspql", "alarms.rspql", "--stream", ":readings=mqtt://nowhere/x", "--speed", "2"]
    line += ["--format", "jsonl", "--output", "a.jsonl", "--no-live", "--bounds", "[)"]
    done = rsp("explain", *line)
    assert done.exit_code == 0, done.output
    assert done.stdout.count("\nquery ") + done.stdout.startswith("query ") == 2
    assert "[open, close)" in done.stdout
    assert not (here / "a.jsonl").exists()


def test_explain_gives_several_plans_as_an_array_and_draws_one(here):
    files = ["hot.rspql", "alarms.rspql"]
    assert len(json.loads(rsp("explain", *files, "--format", "json").stdout)) == 2
    refused = rsp("explain", *files, "--format", "svg")
    assert refused.exit_code == 2
    assert refused.stderr == "error: svg draws the plan of one query\n  = hint: name one file\n"
    unknown = rsp("explain", *files, "--format", "xls")
    assert unknown.exit_code == 2
    assert "there is no format `xls`\n  = hint: the formats of plans are text" in unknown.stderr


def test_explain_reads_nothing_and_refuses_what_a_run_refuses(here):
    missing = rsp("explain", "hot.rspql", "--stream", ":readings=gone.nq")
    assert missing.exit_code == 0, missing.output
    unread = rsp("explain", "hot.rspql", "--graph", ":people=people.ttl")
    assert "no query reads graph <http://example.org/people>" in unread.stderr
