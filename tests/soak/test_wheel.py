"""The wheel: installed in an empty environment, it runs in an empty folder.

    RSP_THOROUGH=1 pytest tests/soak/test_wheel.py

Every Python of this computer that the project supports is tried. pip needs an index.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.data import PROJECT
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(TIMES == 1, reason="installs Spark: make soak PART=wheel")

VERSIONS = ("3.11", "3.12", "3.13")
FRAME = """from rsp_engine import Engine
with Engine(match="element") as engine:
    engine.register('''PREFIX : <http://example.org/> REGISTER RSTREAM :all AS SELECT ?s ?v
        FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s] WHERE { WINDOW :w { ?s :p ?v } }
        ORDER BY DESC(?v) LIMIT 1''')
    engine.bind("http://example.org/s", [(1000, "@prefix : <http://example.org/> . :a :p 7 .")])
    print([list(answer.to_pandas()["v"]) for answer in engine.run()])
"""


def run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source archive, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("archives")
    tools = folder / "venv"
    assert run(sys.executable, "-m", "venv", str(tools), cwd=folder).returncode == 0
    assert run(str(tools / "bin" / "pip"), "install", "-q", "build", cwd=folder).returncode == 0
    build = (str(tools / "bin" / "python"), "-m", "build", "-o", str(folder / "dist"))
    built = run(*build, str(PROJECT), cwd=folder)
    assert built.returncode == 0, built.stderr
    [source], [wheel] = (list((folder / "dist").glob(name)) for name in ("*.tar.gz", "*.whl"))
    return source, wheel


@pytest.fixture(scope="module")
def wheel(archives: tuple[Path, Path]) -> Path:
    return archives[1]


def test_a_source_archive_has_tests_and_documents_and_they_can_be_used(archives, tmp_path):
    source, wheel = archives
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    [project] = tmp_path.iterdir()
    for name in ("tests/test_examples.py", "docs/README.md", "mkdocs.yml", "Makefile"):
        assert (project / name).is_file(), name
    assert run(sys.executable, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path).returncode == 0
    programs = tmp_path / "venv" / "bin"
    needed = ("pytest", "hypothesis", str(wheel))
    assert run(str(programs / "pip"), "install", "-q", *needed, cwd=tmp_path).returncode == 0
    done = run(str(programs / "rsp"), "test", "examples", "tests/cases/semantics", cwd=project)
    assert done.returncode == 0, done.stdout
    tests = ("tests/testing", "tests/grammar/test_tokens.py", "examples/testing")
    done = run(str(programs / "python"), "-m", "pytest", "-q", *tests, cwd=project)
    assert done.returncode == 0, done.stdout


def interpreter(version: str, folder: Path) -> str:
    """Return the path of a Python, which may be one of pyenv; skip the test if there is none."""
    code = "import sys; print(sys.executable)"
    known = {"PYENV_VERSION": ":".join(VERSIONS)}  # ignored where there is no pyenv
    try:
        found = run(f"python{version}", "-c", code, cwd=folder, **known)
    except FileNotFoundError:
        pytest.skip(f"Python {version} is not installed")
    if found.returncode != 0:
        pytest.skip(f"Python {version} is not installed")
    return found.stdout.strip()


def hinted(text: str) -> list[str]:
    """Return the command that a hint names."""
    found = re.search(r"install it: (.*)$", text, re.MULTILINE)
    assert found is not None, text
    return shlex.split(found[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wheel_runs_in_an_empty_folder_and_its_hints_can_be_followed(version, wheel, tmp_path):
    python, empty = interpreter(version, tmp_path), tmp_path / "empty"
    empty.mkdir()
    made = run(python, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    programs = tmp_path / "venv" / "bin"
    installed = run(str(programs / "pip"), "install", "-q", str(wheel), cwd=empty)
    assert installed.returncode == 0, installed.stderr
    rsp = str(programs / "rsp")

    demo = (rsp, "demo", "--windows", "3")
    refused = run(*demo, "--runner", "local", cwd=empty)
    assert refused.returncode == 3
    assert run(*hinted(refused.stderr), cwd=empty).returncode == 0
    for runner in ("local", "spark"):
        done = run(*demo, "--runner", runner, cwd=empty)
        assert done.returncode == 0, done.stderr
        assert "The budget bought " in done.stdout

    frame = (str(programs / "python"), "-c", FRAME)
    refused = run(*frame, cwd=empty)
    assert refused.returncode == 1
    assert run(*hinted(refused.stderr), cwd=empty).returncode == 0
    assert run(*frame, cwd=empty).stdout == "[[7]]\n"

    assert "preliminary" in run(rsp, "experiment", "list", cwd=empty).stdout
    assert list(empty.iterdir()) == []
