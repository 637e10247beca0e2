"""The shape of the project: its links, its extras, its checks, the size of its files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST = 400
MACHINE_PATH = re.compile(rb"(^|[^A-Za-z0-9_.])/(" + b"|".join((b"work", b"farm", b"root")) + b")/")


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Every file that git keeps, links aside."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    listing = subprocess.run(  # noqa: S603 - the arguments are fixed
        [git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    if listing.returncode != 0 or not paths:
        pytest.skip("the project is not a git checkout")
    return [path for path in paths if path.is_file() and not path.is_symlink()]


@pytest.mark.parametrize("room", ["grammar", "policies", "replica"])
def test_a_room_named_at_the_top_is_a_relative_link_into_the_package(room: str) -> None:
    link = ROOT / room
    assert link.is_symlink()
    assert link.readlink() == Path("rsp_engine", room)
    assert link.is_dir()


def test_the_extras_are_the_agreed_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    agreed = {"mqtt", "ws", "jelly", "plots", "metrics", "fast", "dev"}
    assert set(project["optional-dependencies"]) == agreed


def test_continuous_integration_runs_the_checks_and_the_tests_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    _, *lines = script.read_text().splitlines()
    assert lines == ["set -eu", 'cd "$(dirname "$0")/.."', "make check", "make test"]


def test_no_file_names_a_path_of_one_machine(tracked: list[Path]) -> None:
    naming = [path for path in tracked if MACHINE_PATH.search(path.read_bytes())]
    assert naming == []


def test_no_python_file_is_longer_than_a_room_should_be(tracked: list[Path]) -> None:
    lengths = {
        path: len(path.read_text(encoding="utf-8").splitlines())
        for path in tracked
        if path.suffix == ".py"
    }
    assert {path: length for path, length in lengths.items() if length >= LONGEST} == {}
