"""The reference of options is what the declarations say."""

from __future__ import annotations

import runpy

from tests.data import PROJECT
from tests.documents import page as page_of


def test_the_reference_is_written_from_the_declarations():
    page = runpy.run_path(str(PROJECT / "scripts" / "options.py"))["page"]()
    found = page_of("options.md").read_text(encoding="utf-8")
    assert found == page, "python scripts/options.py"
