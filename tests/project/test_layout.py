"""The shape of the project: its links, its extras, its checks, the size of its rooms."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
    if (ROOT / "PKG-INFO").exists():
        pytest.skip("a source archive has no links")
    assert link.is_symlink()
    assert link.readlink() == Path("rsp_engine", room)
    assert link.is_dir()


def test_the_extras_are_the_agreed_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    agreed = {"demo", "pandas", "mqtt", "ws", "kafka", "jelly", "plots", "metrics", "serve", "docs"}
    assert set(project["optional-dependencies"]) == agreed | {"dev"}


def test_continuous_integration_runs_the_checks_and_the_tests_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    _, *lines = script.read_text().splitlines()
    assert lines == ["set -eu", 'cd "$(dirname "$0")/.."', "make check", "make test"]


def test_no_file_names_a_path_of_one_machine(tracked: list[Path]) -> None:
    naming = [path for path in tracked if MACHINE_PATH.search(path.read_bytes())]
    assert naming == []


def modules() -> dict[str, Path]:
    """Return the modules of the package by their names."""
    files = (ROOT / "rsp_engine").rglob("*.py")
    found = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files}
    return {name.removesuffix(".__init__"): path for name, path in found.items()}


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules of the package that a file imports when it is imported itself."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module in known:
            names = (f"{node.module}.{each.name}" for each in node.names)
            found |= {name if name in known else str(node.module) for name in names}
    return found


def test_no_files_import_each_other_in_a_circle() -> None:
    known = modules()
    graph = {name: imported(path, known) - {name} for name, path in known.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(known)


def test_no_room_is_crowded() -> None:
    """The command has a file for each of its words, and policies one for each policy."""
    rooms = {path.parent for path in modules().values()}
    counts = {room: len(list(room.glob("*.py"))) - 1 for room in rooms}
    crowded = {room.name for room, count in counts.items() if count > 15}
    assert crowded <= {"cli", "policies"}


MEANINGS = {
    "Graph": "the answer of a CONSTRUCT, and GRAPH in SPARQL's algebra",
}
"""Public names with several meanings, and why they keep them."""


def public_names(path: Path) -> list[str]:
    """Return the names in `__all__` of a file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def test_a_public_name_means_one_thing() -> None:
    """Packages export names of their files again, so they are left out."""
    files = [path for path in modules().values() if path.name != "__init__.py"]
    homes: dict[str, list[str]] = {}
    for path in files:
        for name in public_names(path):
            homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {
        name: found for name, found in homes.items() if len(found) > 1
    }.keys() == MEANINGS.keys()
