"""`rsp.toml`, variables and flags: which of them overrides which."""

from __future__ import annotations

import json

import pytest
import typer

from rsp_engine.cli import app
from tests.cli.test_run import here, rsp

__all__ = ["here"]

TOML = """
[run]
queries = ["hot.rspql"]
format = "csv"
max-delay = "2s"

[streams]
":readings" = "readings.jsonl"
"""


@pytest.fixture
def configured(here):
    (here / "rsp.toml").write_text(TOML)
    return here


def test_a_configuration_in_this_folder_is_all_that_a_run_needs(configured):
    result = rsp("run")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "open,close,rank,score,room,t"


def test_a_flag_wins_over_a_variable_and_that_over_the_file(configured, monkeypatch):
    monkeypatch.setenv("RSP_FORMAT", "tsv")
    assert rsp("run").stdout.startswith("?open\t")
    assert rsp("run", "--format", "jsonl").stdout.startswith('{"query"')
    monkeypatch.delenv("RSP_FORMAT")
    assert rsp("run").stdout.startswith("open,")


def test_a_wrong_value_is_shown_as_it_was_written(configured, monkeypatch):
    reason = "it is not of the form PT9M, 9m or 540000"
    (configured / "rsp.toml").write_text(TOML.replace('"2s"', '"soon"'))
    assert f"error: rsp.toml: max-delay = 'soon': {reason}" in rsp("run").stderr
    monkeypatch.setenv("RSP_MAX_DELAY", "late")
    assert f"error: RSP_MAX_DELAY=late: {reason}" in rsp("run").stderr
    assert f"error: --max-delay never: {reason}" in rsp("run", "--max-delay", "never").stderr


def test_variables_need_no_file(here, monkeypatch):
    monkeypatch.setenv("RSP_STREAM", ":readings=readings.jsonl")
    assert rsp("run", "hot.rspql").exit_code == 0


def test_paths_are_seen_from_the_folder_of_the_file(configured, monkeypatch, tmp_path):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    assert rsp("run", "--config", "../rsp.toml").exit_code == 0


def test_several_sources_of_a_stream_are_a_list(configured):
    listed = '":readings" = ["readings.jsonl", "readings.jsonl"]'
    text = TOML.replace('":readings" = "readings.jsonl"', listed)
    (configured / "rsp.toml").write_text(text)
    assert rsp("run").exit_code == 0


def test_explain_takes_what_it_knows_from_the_same_file(configured):
    assert rsp("explain").stdout.startswith("query http://example.org/hot")
    assert json.loads(rsp("explain", "--format", "json").stdout)


def test_every_flag_can_be_set_in_the_file(configured):
    words = typer.main.get_command(app)
    params = [p for p in words.commands["run"].params if p.name not in ("files", "config")]  # type: ignore[attr-defined]
    tables = ("stream", "graph", "function", "service", "changes", "conf")  # each has its own table
    for param in params:
        flag = param.opts[0].removeprefix("--")
        if flag in tables:
            continue
        (configured / "rsp.toml").write_text(f"[run]\n{flag} = {{ }}\n")
        message = rsp("run").stderr
        assert f"rsp.toml: {flag} must be" in message or f"rsp.toml: {flag} = " in message, message


WRONG = {
    '[run]\nn = "x"': "n = 'x'",
    '[run]\nbudget = "x"': "budget = 'x': it is neither a number nor a duration such as 80ms",
    '[run]\npolcy = "AT-TSM"': "error: rsp.toml: there is no polcy in [run]\n"
    "  = hint: did you mean policy?",
    '[run]\nrunner = "sprk"': "runner = 'sprk'",
    '[run]\nqueries = "hot.rspql"': 'error: rsp.toml: queries must be a list: queries = ["query',
    '[run]\nreport = ["every"]': "error: rsp.toml: report must be one value",
    "[run]\nsplit-bytes = -3": "split-bytes = -3",
    '[stream]\na = "b"': "error: rsp.toml: there is no [stream]\n  = hint: did you mean streams?",
    "[services]\na = 3": "error: rsp.toml: what a is bound to must be text",
    "run = 3": "error: rsp.toml: run must be a table\n  = hint: write [run] above it",
    "x = [": "error: rsp.toml is not TOML: ",
    "[spark]\nexecutor.memory = []": "error: rsp.toml: spark.executor.memory in [spark] must",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_in_the_file_is_told(here, text):
    (here / "rsp.toml").write_text(text)
    result = rsp("run")
    assert result.exit_code == 2
    assert WRONG[text] in result.stderr
    assert "Traceback" not in result.stderr


def test_settings_of_spark_are_taken_only_from_a_file_that_is_named(configured):
    text = '[spark]\nexecutor.memory = "4g"\n"spark.speculation" = true\n'
    (configured / "rsp.toml").write_text(TOML + text)
    refused = rsp("run")
    assert refused.exit_code == 2
    assert "so [spark] is not read by default\n  = hint: allow it" in refused.stderr
    assert rsp("run", "--config", "rsp.toml", "--runner", "local").exit_code == 0


@pytest.mark.parametrize("setting", ["executor.memory=4g", "spark.executor.memory", "spark=1"])
def test_a_setting_of_spark_has_a_key_and_a_value(configured, setting):
    refused = rsp("run", "--conf", setting)
    assert refused.exit_code == 2
    assert "it must be KEY=VALUE, and the key must begin with spark." in refused.stderr


def test_a_server_that_is_not_allowed_is_not_asked(here):
    (here / "q.rspql").write_text(
        "PREFIX : <http://example.org/> SELECT ?s ?f FROM NAMED WINDOW :w ON :readings [RANGE 10s]"
        " WHERE { WINDOW :w { ?s :temperature ?t } SERVICE :b { ?s :f ?f } }"
    )
    bound = ["--service", ":b=http://127.0.0.1:9/sparql", "--stream", ":readings=readings.jsonl"]
    refused = rsp("run", "q.rspql", *bound, "--allow", "http://127.0.0.1:10")
    assert refused.exit_code == 2
    assert "the origin http://127.0.0.1:9 is not allowed" in refused.stderr
    allowed = rsp("run", "q.rspql", *bound, "--allow", "http://127.0.0.1:9/", "--dry-run")
    assert allowed.exit_code == 0, allowed.stderr
    assert "VALUES" in allowed.stdout, "the request that would be sent"


WRITTEN = {"output": "a.csv", "dead-letters": "d.jsonl", "manifest": "m.json", "checkpoint": "c"}


def written(folder, key, value):
    (folder / "rsp.toml").write_text(TOML.replace("[run]", f'[run]\n{key} = "{value}"'))


def run_in(folder, monkeypatch, *flags):
    inner = folder / "inner"
    inner.mkdir(exist_ok=True)
    for name in ("hot.rspql", "readings.jsonl"):
        (inner / name).write_text((folder / name).read_text())
    monkeypatch.chdir(inner)
    return inner, lambda: rsp("run", "--runner", "local", *flags)


@pytest.mark.parametrize("key", WRITTEN)
@pytest.mark.parametrize("kind", ["absolute", "up", "link", "folder", "dangling"])
def test_a_file_that_nobody_named_writes_nothing_outside_its_folder(here, monkeypatch, key, kind):
    outer = here / "outer"
    outer.mkdir()
    inner, run = run_in(here, monkeypatch)
    name = WRITTEN[key]
    (inner / "folder").symlink_to(outer)
    (inner / "dangling").symlink_to(outer / name)
    if key != "checkpoint":
        (outer / "there").write_text("kept")
    else:
        (outer / "there").mkdir()
    (inner / "link").symlink_to(outer / "there")
    paths = {"absolute": outer / name, "up": f"../outer/{name}", "link": "link"}
    paths |= {"folder": f"folder/{name}", "dangling": "dangling"}
    written(inner, key, paths[kind])
    before = sorted(outer.rglob("*"))
    result = run()
    assert result.exit_code == 2, result.output
    assert f"error: rsp.toml: {key} = " in result.stderr
    assert "outside its folder" in result.stderr
    assert f"hint: allow it explicitly: --{key} " in result.stderr
    assert sorted(outer.rglob("*")) == before
    flag = rsp("run", "--runner", "local", f"--{key}", str(outer / name))
    assert flag.exit_code == 0, flag.output
    assert (outer / name).exists()


def test_a_link_in_a_checkpoint_that_came_with_the_folder_is_refused(here, monkeypatch):
    inner, run = run_in(here, monkeypatch)
    (here / "outer").mkdir()
    (inner / "c").mkdir()
    (inner / "c" / "state").symlink_to(here / "outer")
    written(inner, "checkpoint", "c")
    result = run()
    assert result.exit_code == 2
    assert "outside its folder" in result.stderr


@pytest.mark.parametrize("key", WRITTEN)
def test_what_is_within_the_folder_is_written_and_so_is_what_a_named_file_says(
    here, monkeypatch, key
):
    inner, run = run_in(here, monkeypatch)
    (inner / "sub").mkdir()
    written(inner, key, f"sub/../sub/{WRITTEN[key]}")
    assert run().exit_code == 0
    assert (inner / "sub" / WRITTEN[key]).exists()
    written(inner, key, f"../{WRITTEN[key]}")
    named = rsp("run", "--runner", "local", "--config", "rsp.toml")
    assert named.exit_code == 0, named.output
    assert (here / WRITTEN[key]).exists()
