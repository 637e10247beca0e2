"""The extras: the table is that of pyproject.toml, and its commands suit the Python that runs."""

from __future__ import annotations

import re
import sys
import tomllib
from typing import TYPE_CHECKING

from rsp_engine.model.extras import EXTRAS, install_command
from tests.data import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_table_is_that_of_the_project():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]
    packages = {
        extra: [re.split("[<>=]", each)[0] for each in needed]
        for extra, needed in declared.items()
        if extra not in ("dev", "docs")  # tools of the project itself
    }
    assert packages == {extra: package.split() for extra, package in EXTRAS.items()}
    tried = {each for extra in EXTRAS if extra != "pandas" for each in declared[extra]}
    assert tried <= {*declared["dev"]}, "all tests run, but for those that need pandas"


def make_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of programs with a pip, which belongs to the Python that runs."""
    programs = folder / "my env" / "bin"
    programs.mkdir(parents=True)
    (programs / "pip").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    return programs


def test_in_an_active_environment_pip_is_named_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(make_environment(tmp_path, monkeypatch)))
    assert install_command("demo") == "pip install oxigraph"


def test_a_pip_of_another_python_is_not_named(tmp_path, monkeypatch):
    programs = make_environment(tmp_path, monkeypatch)
    other = tmp_path / "other"
    other.mkdir()
    (other / "pip").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(other))
    assert install_command("ws") == f"'{programs}/python' -m pip install websockets"
    monkeypatch.chdir(tmp_path)
    assert install_command("ws") == "'my env/bin/python' -m pip install websockets"


def test_without_pip_the_command_is_that_of_uv(tmp_path, monkeypatch):
    make_environment(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path / "my env")
    monkeypatch.setattr("rsp_engine.model.extras.find_spec", lambda _: None)
    assert install_command("jelly") == "uv pip install --python bin/python pyjelly"


def test_no_message_names_packages_in_another_way():
    messages = {
        str(path.relative_to(PROJECT)): path.read_text(encoding="utf-8")
        for path in (PROJECT / "rsp_engine").rglob("*.py")
    }
    naming = {
        path for path, text in messages.items() if re.search(r"pip install|rsp-engine\[", text)
    }
    assert naming == {"rsp_engine/model/extras.py"}
