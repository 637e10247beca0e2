"""Every example runs, and shows what it is there to show."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app
from tests.data import PROJECT
from tests.documents import blocks, page
from tests.notebooks import executed

EXAMPLES = PROJECT / "examples"
FEW_LINES = 25
ARGUMENTS = {
    "inspect_query.py": ["queries/influencers.rspql"],
}
SHOWN = {
    "quickstart.py": "the minute to  80 s: attic 27, hall 25",
    "scoring_function.py": "90 s  1. dog   800 likes    71.6",
    "own_policy.py": "AT-OLD",
    "construct_nquads.py": "_:w20000-b0 <http://example.org/degrees>",
    "chained_queries.py": "60 s   most alerts in the last minute: attic 2, lab 2",
    "several_queries.py": "40 s  jam      a jam",
    "influencers.py": "nDCG",
    "inspect_query.py": "reads http://example.org/S through a window of 540 s",
}
"""Every example, and a line that it prints, or a part of one."""


def run(name: str, *arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs(name):
    assert SHOWN[name] in run(name, *ARGUMENTS.get(name, []))


def test_every_example_is_run_and_listed():
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    assert programs == set(SHOWN)
    listed = re.findall(r"\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    there = {path.name for path in EXAMPLES.iterdir()} - {"README.md", "__pycache__"}
    assert there - set(listed) == set()


def test_the_quickstart_is_short():
    assert len((EXAMPLES / "quickstart.py").read_text().splitlines()) < FEW_LINES


def test_a_policy_of_ones_own_is_judged_beside_others():
    """In this example, looking at old values near the top beats both."""
    lines = [line.split() for line in run("own_policy.py").splitlines()]
    ndcg = {name: float(value) for name, _, value, *_ in lines}
    assert ndcg["WST"] < ndcg["AT-TSM"] < ndcg["AT-OLD"]


def test_constructed_quads_are_written_to_a_file_too(tmp_path):
    path = tmp_path / "alerts.nq"
    assert run("construct_nquads.py", str(path)) == ""
    assert path.read_text() == run("construct_nquads.py")


def test_the_tutorial_ends_in_the_files_of_an_example():
    saved = {
        block.file: block.text for block in blocks(page("ten-minutes.md")) if block.file is not None
    }
    folder = EXAMPLES / "depot"
    files = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert {name: saved[name] for name in files} == files
    assert {"rsp.toml", "ranking.rspql", "alerts.rspql", "depot.case"} < files.keys()
    done = CliRunner().invoke(app, ["test", str(folder)])
    assert (done.exit_code, done.stdout) == (0, f"{folder / 'depot.case'}: ok\n1 case, ok\n")


def test_the_tests_of_queries_pass():
    """Both the tests in Python and the cases; `tests/cli/test_cases.py` runs the cases too."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "testing")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout


def test_the_notebook_shows_what_it_stores(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    cells = json.loads((EXAMPLES / "depot.ipynb").read_text(encoding="utf-8"))["cells"]
    stored = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    assert executed(cells, EXAMPLES) == stored, "python -m tests.notebooks examples/depot.ipynb"
