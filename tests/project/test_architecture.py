"""The picture of the imports, and the walk of a query through the files."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree as ET

from tests.data import PROJECT


def run(script: str, *arguments: str) -> str:
    """Run a script of the project and return its output."""
    command = [sys.executable, str(PROJECT / "scripts" / script), *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_picture_of_the_imports_shows_every_room(tmp_path):
    run("architecture.py", str(tmp_path))
    root = ET.parse(tmp_path / "architecture.svg").getroot()  # noqa: S314 - our own text
    shown = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    package = PROJECT / "rsp_engine"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    assert rooms | {"engine", "errors"} <= shown


def test_contributing_tells_the_walk_of_a_query():
    """The files that rank the users of the examples, in the order of their first calls."""
    text = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [walk] = re.findall(r"```text walk\n(.*?)```", text, re.DOTALL)
    assert run("walk.py") == walk, "python scripts/walk.py"
