"""A hook of mkdocs: links to files of the project that are no pages lead to the repository."""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

__all__ = ["on_page_markdown"]

LINK = re.compile(r"(\]\()(\.\.?/[^)\s]+)(\))")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:  # noqa: ANN401 - mkdocs says so
    """Return the text of a page with its links out of the folder of the documents replaced."""
    folder = PurePosixPath("docs", page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        target = os.path.normpath(folder / link[2])
        if target.startswith("docs/") or not config.extra.get("repository"):
            return link[0]
        return f"{link[1]}{config.extra['repository']}/blob/main/{target}{link[3]}"

    return LINK.sub(replaced, markdown)
