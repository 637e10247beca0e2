"""What the documents and the examples show is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from rsp_engine.grammar import parse, validate
from rsp_engine.grammar.files import LARGEST
from rsp_engine.grammar.parser import DEEPEST
from tests.data import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))
SHORT = {"demo.py": ["--windows=3", "--speed=300"]}
"""Examples that take their time unless they are told otherwise."""


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of the README in a language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for written_in, text in found if written_in == language]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        command, cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_query_of_the_readme_is_the_query_of_the_project():
    [text] = blocks("sparql")
    query = (PROJECT / "queries" / "influencers.rspql").read_text(encoding="utf-8")
    assert parse(text) == parse(query)
    assert validate(text).warnings == ()


def test_the_python_of_the_readme_runs():
    [text] = blocks("python")
    done = run(sys.executable, "-W", "ignore::ResourceWarning", "-c", text)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "60000 1 http://example.org/t2 100000.0\n"


def test_the_commands_of_the_readme_show_what_it_says():
    commands = [line for text in blocks("sh") for line in text.splitlines()]
    assert commands[0] == "make setup"
    done = [run(sys.executable, "-m", "rsp_engine.cli", *shlex.split(c)[1:]) for c in commands[1:]]
    assert [d.returncode for d in done] == [0, 0]
    shown = next(block for block in blocks("") if block.startswith("open,close"))
    assert done[0].stdout.startswith(shown.removesuffix("...\n"))
    assert "Physical plan" in done[1].stdout


def test_the_error_of_the_readme_is_what_is_shown(tmp_path):
    shown = next(block for block in blocks("") if block.startswith("slip.rspql"))
    slip = tmp_path / "slip.rspql"
    [text] = blocks("sparql")
    text = re.sub(" +#.*", "", text).replace(
        "ON STREAM :S [RANGE 9m STEP 3m]", "ON :S [RANGE 10 STEP 2m]"
    )
    slip.write_text(text)
    done = run(sys.executable, "-m", "rsp_engine.cli", "validate", str(slip))
    assert done.stderr.replace(f"{tmp_path}/", "") == shown


def test_the_limits_of_the_readme_are_those_of_the_code():
    assert f"at most {LARGEST // 1024**2} MB long" in README
    assert f"nested at most {DEEPEST} deep" in README


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example):
    arguments = SHORT.get(example.name, ["queries/influencers.rspql"])
    done = run(sys.executable, str(example), *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout
