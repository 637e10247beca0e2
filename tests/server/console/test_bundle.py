"""The bundle of the console: that of its sources, small, with the licences of what it holds."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.server.console.browser import CONSOLE, packages

if TYPE_CHECKING:
    from pathlib import Path

BUNDLE = CONSOLE / "bundle"
LARGEST = 400_000


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packages(tmp_path_factory.getbasetemp())


@pytest.mark.outside
def test_the_bundle_is_that_of_its_sources(sources: Path, tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node is not None
    subprocess.run(  # noqa: S603 - our own
        [node, "build.mjs", str(tmp_path / "built")], cwd=sources, check=True, timeout=120
    )
    built = {path.name: path.read_bytes() for path in (tmp_path / "built").iterdir()}
    kept = {path.name: path.read_bytes() for path in BUNDLE.iterdir()}
    assert sorted(built) == sorted(kept)
    other = [name for name in built if built[name] != kept[name]]
    assert other == [], "build it again: npm ci && node build.mjs bundle"


@pytest.mark.outside
def test_the_types_of_the_sources_are_right(sources: Path) -> None:
    node = shutil.which("node")
    assert node is not None
    subprocess.run(  # noqa: S603 - our own
        [node, "node_modules/typescript/bin/tsc", "--noEmit"], cwd=sources, check=True, timeout=120
    )


def test_the_bundle_is_small(capsys: pytest.CaptureFixture[str]) -> None:
    size = sum(len(gzip.compress(path.read_bytes(), 9, mtime=0)) for path in BUNDLE.iterdir())
    with capsys.disabled():
        print(f"\nthe console has {size} bytes, gzipped")  # noqa: T201 - it is to be seen
    assert size < LARGEST


def test_the_page_loads_its_own_files_only() -> None:
    page = (BUNDLE / "index.html").read_text()
    named = [
        each.split('"')[0] for part in ("src=", "href=") for each in page.split(f'{part}"')[1:]
    ]
    assert sorted(named) == ["console.css", "console.js", "icon.svg"]
    assert "style=" not in page
    assert "<style" not in page


def test_each_package_has_its_licence_in_the_bundle() -> None:
    wanted = json.loads((CONSOLE / "package.json").read_text())["dependencies"]
    texts = (BUNDLE / "licences.txt").read_text()
    assert [
        name for name, version in wanted.items() if f"{name} {version} (MIT)" not in texts
    ] == []


def test_the_lock_file_names_no_server() -> None:
    lock = (CONSOLE / "package-lock.json").read_text()
    assert "://" not in lock
    assert all("integrity" in each for each in list(json.loads(lock)["packages"].values())[1:])


def test_nothing_of_the_sources_is_served() -> None:
    assert {path.suffix for path in BUNDLE.iterdir()} == {".html", ".js", ".css", ".svg", ".txt"}
    assert not os.path.lexists(BUNDLE / "package.json")
