"""A hook of mkdocs, for what its Markdown reads in another way than that of the repository.

Links to files of the project that are no pages lead to the repository, and an escaped bar in the
code of a table is a bar.
"""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

__all__ = ["on_page_markdown"]

BARRED = re.compile(r"`([^`]*\\\|[^`]*)`")
LINK = re.compile(r"(\]\()(\.\.?/[^)\s]+)(\))")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:  # noqa: ANN401 - mkdocs says so
    """Return the text of a page with its links out of the folder of the documents replaced."""
    folder = PurePosixPath("docs", page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        target = os.path.normpath(folder / link[2])
        if target.startswith("docs/") or not config.extra.get("repository"):
            return link[0]
        return f"{link[1]}{config.extra['repository']}/blob/main/{target}{link[3]}"

    return "\n".join(
        BARRED.sub(_as_html, line) if line.startswith("|") else line
        for line in LINK.sub(replaced, markdown).split("\n")
    )


def _as_html(code: re.Match[str]) -> str:
    """Return code with escaped bars as HTML, in which a bar divides no cells."""
    return f"<code>{escape(code[1].replace(chr(92) + '|', '|')).replace('|', '&#124;')}</code>"
