"""The package away from its project: what a wheel holds is enough to run the command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.data import PROJECT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what the wheel holds, and nothing else; `make soak PART=wheel` builds the wheel."""
    folder = tmp_path_factory.mktemp("installation")
    built = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = built["targets"]["wheel"]
    sources = {name: name for name in wheel["packages"]} | wheel["force-include"]
    for source, target in sources.items():
        shutil.copytree(PROJECT / source, folder / target)
    return folder


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("demo --runner local --windows 2 --speed 1000", "The budget bought "),
        ("experiment list", "preliminary"),
        ("policies", "AT-TSM"),
    ],
)
def test_the_command_runs_in_an_empty_folder(installation, tmp_path, words, shown):
    code = (
        "import sys, rsp_engine; from rsp_engine.cli import main\n"
        "print(rsp_engine.__file__, file=sys.stderr)\n"
        "main()"
    )
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", code, *words.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installation), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(str(installation))
    assert shown in done.stdout
    assert list(tmp_path.iterdir()) == []
