"""What the documents and the examples show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from rsp_engine.grammar import parse, validate
from rsp_engine.grammar.files import LARGEST
from rsp_engine.grammar.parser import DEEPEST
from tests.data import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


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
    assert done.stdout.startswith("http://example.org/S\n")
    assert done.stdout.endswith("()\n")


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
    done = run(sys.executable, str(example), "queries/influencers.rspql")
    assert done.returncode == 0, done.stderr
    assert done.stdout
