"""`rsp experiment`, as a user calls it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app
from rsp_engine.model.extras import install_command
from tests.data import PROJECT
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from typer.testing import Result

SUITE = """
title = "Mine"
varied = "budget"
[data]
datasets = 2
windows = 5
[[grid]]
name = "one"
policies = ["WST", "AT-TSM"]
ch = [20]
budget = [1, 7]
k = [5]
n = [10]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RSP_DATA", raising=False)
    (tmp_path / "mine.toml").write_text(SUITE)
    return tmp_path


def rsp(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["experiment", *arguments])


def test_the_suites_are_listed():
    done = rsp("list")
    assert done.exit_code == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names[:5] == ["preliminary", *(f"experiment-{number}" for number in range(1, 5))]
    assert "720 runs" in done.stdout


def test_a_suite_is_run_and_reported(here):
    done = rsp("run", "mine.toml", "--workers", "1")
    assert (done.exit_code, done.stdout) == (0, "results/mine\n")
    assert "4/4" in done.stderr
    again = rsp("run", "mine.toml", "--workers", "1")
    assert (again.exit_code, again.stdout) == (0, "results/mine\n")
    done = rsp("report")
    assert (done.exit_code, done.stdout) == (0, "results/report.html\n")
    assert "Mine" in (here / "results" / "report.html").read_text(encoding="utf-8")


def test_a_report_without_matplotlib_says_in_one_line_how_to_get_figures(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert rsp("run", "mine.toml", "--workers", "1").exit_code == 0
    done = rsp("report")
    assert (done.exit_code, done.stdout) == (0, "results/report.html\n")
    assert done.stderr == (f"the report has no figures; to draw them: {install_command('plots')}\n")
    assert "AT-TSM" in (here / "results" / "report.html").read_text(encoding="utf-8")


@pytest.mark.skipif(TIMES == 1, reason="docs/how-to/experiments.md runs it; make soak")
def test_the_preliminary_experiment_runs_quickly_from_a_fresh_folder(here):
    command = (sys.executable, "-m", "rsp_engine.cli", "experiment")
    for words in (("run", "preliminary", "--quick"), ("report",)):
        done = subprocess.run(  # noqa: S603
            (*command, *words),
            cwd=here,
            env={"PYTHONPATH": str(PROJECT), "PATH": ""},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    text = (here / "results" / "report.html").read_text(encoding="utf-8")
    assert "Figure 11" in text
    assert "Quick runs: preliminary-quick" in text


COMPARED = """
[[comparison]]
name = "the one that fetches nothing"
challengers = ["AT-TSM"]
baselines = ["WST"]
"""


def test_trials_print_a_table_of_the_users_own_data(here):
    """From a folder that has nothing but a suite and two tables."""
    (here / "mine.toml").write_text(SUITE + COMPARED)
    keys = "abcdefgh"
    clicks = [f"{1000 * n},{keys[n * n % 8]}\n" for n in range(1, 400)]
    prices = [f"{7000 * n},{keys[n % 8]},{n * n % 101}\n" for n in range(60)]
    (here / "clicks.csv").write_text("at,what\n" + "".join(clicks))
    (here / "prices.csv").write_text("at,what,price\n" + "".join(prices))
    words = ("trials", "mine.toml", "--mentions", "clicks.csv", "--history", "prices.csv")
    columns = ("--mention-columns", "at,what", "--history-columns", "at,what,price")
    done = rsp(*words, *columns, "--workers", "1", "--full")
    assert done.exit_code == 0, done.stderr
    assert "**AT-TSM against the one that fetches nothing, B >= 3**" in done.stdout
    assert "| own data | 1 |" in done.stdout
    assert (here / "results" / "mine-own" / "manifest.json").exists()
    cells = rsp(*words, *columns, "--workers", "1", "--full", "--table", "csv", "--cells")
    assert len(cells.stdout.splitlines()) == 1 + 2 * 3  # budgets, measures
    done = rsp("report")
    assert done.exit_code == 0
    assert "own" in (here / "results" / "report.html").read_text(encoding="utf-8")


def test_a_suite_without_a_comparison_has_no_trials(here):
    done = rsp("trials", "mine.toml", "--workers", "1")
    assert done.exit_code == 2
    assert "error: nothing is compared" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("trials", "mine.toml", "--table", "html"), "there is no table format html"),
        (("run", "mine.toml", "--mentions", "a.csv"), "own data are two files"),
        (
            ("run", "mine.toml", "--mentions", "a.csv", "--history", "b.csv", "--data", "c"),
            "--data, --replay and --mentions name different data",
        ),
        (
            ("run", "mine.toml", "--mentions", "a.csv", "--history", "b.csv", "--range", "soon"),
            "--range soon",
        ),
        (("run", "mine.toml", "--mentions", "a.csv", "--history", "b.csv"), "a.csv cannot be read"),
        (("run", "mine.toml", "--replay", "none.csv"), "cannot read none.csv"),
        (("run", "experiment-9"), "there is no suite experiment-9"),
        (("run", "none.toml"), "none.toml cannot be read"),
        (("run", "mine.toml", "--seed", "-1"), "--seed must be a whole number from 0 on"),
        (("run", "mine.toml", "--workers", "0"), "--workers must be at least 1"),
        (("run", "mine.toml", "--data", "nowhere"), "the data folder nowhere is not there"),
        (("report",), "results holds no results"),
        (("report", "mine"), "results/mine is not there"),
        (("report", "--data", "nowhere"), "results holds no results"),
    ],
)
def test_what_a_user_gets_wrong_is_told_in_a_line_with_exit_code_2(here, words, message):
    done = rsp(*words)
    assert done.exit_code == 2
    assert f"error: {message}" in done.stderr
    assert not (here / "results").exists()


def test_a_suite_that_is_wrong_is_refused_before_any_is_run(here):
    (here / "bad.toml").write_text(SUITE.replace("AT-TSM", "AT-TMS"))
    done = rsp("run", "mine.toml", "bad.toml")
    assert done.exit_code == 2
    assert "bad.toml: grid 1: policies: there is no policy 'AT-TMS'" in done.stderr
    assert "hint: did you mean AT-TSM?" in done.stderr
    assert not (here / "results").exists()


def test_results_of_another_seed_are_not_overwritten(here):
    assert rsp("run", "mine.toml", "--workers", "1").exit_code == 0
    before = (here / "results" / "mine" / "manifest.json").read_bytes()
    done = rsp("run", "mine.toml", "--workers", "1", "--seed", "4")
    assert done.exit_code == 2
    assert "data.seed was 0, not 4" in done.stderr
    assert (here / "results" / "mine" / "manifest.json").read_bytes() == before


def test_a_run_that_is_stopped_keeps_what_is_done_and_says_so(here, monkeypatch):
    from rsp_engine.experiments.tasks import work

    calls = []

    def stopped(task):
        calls.append(task)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return work(task)

    monkeypatch.setattr("rsp_engine.experiments.results.work", stopped)
    done = rsp("run", "mine.toml", "--workers", "1")
    assert done.exit_code == 3
    assert "mine was stopped; finished runs are kept" in done.stderr
    refused = rsp("report")
    assert refused.exit_code == 2
    assert "results/mine is half-written: parts: 2 are there" in refused.stderr
    assert rsp("run", "mine.toml", "--workers", "1").exit_code == 0
    assert len(calls) == 3 + 2
    assert rsp("report").exit_code == 0


def test_other_words_do_not_wait_for_what_experiments_need():
    """Neither numbers nor drawings are loaded to check a query."""
    program = (
        "import sys; from rsp_engine.cli import app\n"
        "app(['validate', 'queries/influencers.rspql'], standalone_mode=False)\n"
        "heavy = {'numpy', 'matplotlib', 'rich.progress', 'rsp_engine.experiments'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(  # noqa: S603
        (sys.executable, "-c", program),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
