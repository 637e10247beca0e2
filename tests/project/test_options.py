"""The references of options and of the API are what the code says."""

from __future__ import annotations

import runpy

import pytest

from tests.data import PROJECT
from tests.documents import page as page_of


@pytest.mark.parametrize("name", ["options", "api"])
def test_the_reference_is_written_from_the_code(name):
    page = runpy.run_path(str(PROJECT / "scripts" / f"{name}.py"))["page"]()
    found = page_of(f"{name}.md").read_text(encoding="utf-8")
    assert found == page, f"python scripts/{name}.py"
