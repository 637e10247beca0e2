"""The site of the documents: built without a warning, and complete without a network."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.data import PROJECT
from tests.documents import DOCUMENTS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(find_spec("material") is None, reason="make docs installs what builds it"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-d", str(folder)],
        cwd=PROJECT,
        env={"PATH": "", "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


def test_every_document_is_a_page(site):
    docs = PROJECT / "docs"
    for document in DOCUMENTS:
        if document.is_relative_to(docs):
            name = str(document.relative_to(docs)).replace("README.md", "index.md")
            assert (site / name).with_suffix(".html").is_file(), name


def test_no_page_asks_another_computer_for_anything(site):
    """Links lead elsewhere, but nothing is loaded from there."""
    loads = re.compile(
        r"<(?:script|img|iframe)[^>]*\bsrc=\"(https?:[^\"]*)|<link[^>]*\bhref=\"(https?:[^\"]*)"
    )
    for page in site.rglob("*.html"):
        found = [a or b for a, b in loads.findall(page.read_text(encoding="utf-8"))]
        assert found == [], page.name


def test_links_to_files_of_the_project_lead_to_files(site):
    base = re.search(r"repository: (\S+)", (PROJECT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert base is not None
    link = re.compile(re.escape(base[1]) + r"/blob/main/([^\"#]+)")
    linked = {
        name
        for page in site.rglob("*.html")
        for name in link.findall(page.read_text(encoding="utf-8"))
    }
    assert "CONTRIBUTING.md" in linked
    assert [name for name in linked if not (PROJECT / name).exists()] == []
