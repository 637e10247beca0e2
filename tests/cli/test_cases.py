"""`rsp test`: cases are run, compared and counted; one that cannot be read is refused."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app
from tests.data import PROJECT

EXAMPLES = PROJECT / "examples" / "testing"
QUERY = """--- query
PREFIX : <http://example.org/>
SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s] WHERE { WINDOW :w { ?s :p ?v } }
"""
STREAM = "--- stream :s\n1s  :a :p 1 .\n"
GOOD = f"A title.\n\n{QUERY}{STREAM}--- table\nclose  ?s\n10s  :a\n"


def run(*arguments: str):
    return CliRunner().invoke(app, ["test", *arguments])


def written(folder, text, name="a.case"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_cases_of_a_folder_are_run():
    done = run(str(EXAMPLES))
    assert done.stdout.splitlines() == [
        f"{EXAMPLES / 'influencers.case'}: ok",
        f"{EXAMPLES / 'warmest-rooms.case'}: ok",
        "2 cases, ok",
    ]
    assert done.exit_code == 0


def test_a_case_that_is_different_is_shown(tmp_path):
    good = written(tmp_path, GOOD, "good.case")
    other = written(tmp_path, GOOD.replace("10s  :a", "10s  :b"), "other.case")
    done = run(good, other)
    assert done.stdout == (
        f"{good}: ok\n{other}: different\n"
        "answers: - expected, + found\n"
        "  close  ?s\n- 10000  :b\n?         ^\n+ 10000  :a\n?         ^\n"
        "2 cases, 1 different\n"
    )
    assert done.exit_code == 1


def test_answers_may_be_lines_and_a_case_may_expect_an_error(tmp_path):
    lines = GOOD.partition("--- table")[0].replace(
        "--- stream", "--- run\n--format csv\n--- stream"
    )
    assert (
        run(
            written(tmp_path, f"{lines}--- answers\nopen,close,s\n0,10000,http://example.org/a\n")
        ).exit_code
        == 0
    )
    wrong = GOOD.replace("[RANGE", "[ROUND").partition("--- table")[0]
    assert run(written(tmp_path, f"{wrong}--- error 2\n")).stdout.count("standard error") == 1
    done = run(written(tmp_path, GOOD.replace("[RANGE", "[ROUND")))
    assert "exit code: - expected, + found\n- 0\n+ 2\n" in done.stdout
    assert "error: " in done.stdout, "the reason is shown though the case does not mind it"


def test_a_query_a_file_and_a_stream_may_be_files_of_their_own(tmp_path):
    query = QUERY.partition("\n")[2].replace("FROM", "FROM <people.ttl> FROM", 1)
    written(tmp_path, query.replace("} }", "} ?s :knows ?x }"), "q.rspql")
    written(tmp_path, "<http://example.org/a> <http://example.org/knows> 1 .", "p.ttl")
    written(
        tmp_path,
        '{"timestamp": 1000, "graph": "<http://example.org/a> <http://example.org/p> 1 ."}',
        "s.jsonl",
    )
    case = "x\n--- query from q.rspql\n--- file people.ttl from p.ttl\n--- stream :s from s.jsonl\n"
    assert run(written(tmp_path, f"{case}--- table\n?s\n:a\n")).stdout.endswith("1 case, ok\n")


def test_other_formats_have_no_table(tmp_path):
    done = run(written(tmp_path, GOOD.replace("--- stream", "--- run\n--format csv\n--- stream")))
    assert done.exit_code == 2
    assert "a table needs answers in jsonl" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("--- table", "--- tabel"), "there is no section `--- tabel`"),
        (GOOD.partition("--- table")[0], "it expects nothing"),
        (f"x\n{STREAM}--- table\n?s\n", "it has no query"),
        (f"{GOOD}--- answers\n", "it expects a table and answers"),
        (f"{GOOD}--- table\n?s\n", "several sections `--- table`"),
        (GOOD.replace("1s  :a", "one  :a"), "does not begin with a time"),
        (GOOD.replace("10s  :a", "10s"), "has 1 cells, the header has 2"),
        (
            GOOD.replace("--- query", "--- query from no.rspql\n--- query b"),
            "no.rspql cannot be read",
        ),
        (GOOD.replace("--- query", "--- query from a.case\nSELECT"), "has a text of its own"),
        (GOOD.replace("--- stream", "--- file ../x\n--- stream"), "not within the folder"),
        (f"{GOOD}--- error soon\n", "has no exit code"),
    ],
)
def test_a_case_that_cannot_be_read_is_refused(text, message, tmp_path):
    done = run(written(tmp_path, text))
    assert message in done.stderr
    assert done.exit_code == 2
    assert done.stdout == ""


def test_a_folder_without_cases_is_refused(tmp_path):
    done = run(str(tmp_path))
    assert "has no case files" in done.stderr
    assert run(str(tmp_path / "nothing.case")).exit_code == 2
