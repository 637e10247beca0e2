"""Takes the screenshots of the console for the documents, in both themes.

    python scripts/screenshots.py [FOLDER]

What is shown is `rsp demo --web` after some windows. Without chromium, nothing is done.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROJECT = Path(__file__).parents[1]
DEMO = [sys.executable, "-m", "rsp_engine.cli", "demo", "--web", "--speed", "120", "--budget", "3"]
WINDOWS = 40
"""So many windows have been answered when the pictures are taken."""
SLIP = """PREFIX : <http://example.org/>
REGISTER RSTREAM :warmest AS
SELECT ?room ?t
FROM NAMED WINDOW :w ON :posts [RANGE 10s STEP 5s]
WERE { WINDOW :w { ?room :temperature ?t } }
ORDER BY DESC(?t) LIMIT 5
"""
NARROW = {"width": 390, "height": 760}


def show_ranking(page: Page, address: str) -> None:
    """Show a ranking, and the history of a row."""
    page.goto(f"{address}/#/ranking/growingUsers")
    page.locator(f".windows li:nth-child({WINDOWS})").wait_for(timeout=120_000)
    page.locator(".summary").first.click()
    page.locator(".history canvas").first.wait_for()


def show_phone(page: Page, address: str) -> None:
    """Show a ranking on a small screen."""
    page.goto(f"{address}/#/ranking/growingUsers")
    page.locator(".line").first.wait_for()


def show_editor(page: Page, address: str) -> None:
    """Show a query and its plan."""
    page.goto(f"{address}/#/editor/growingUsers")
    page.locator(".box-operator").wait_for()


def show_slip(page: Page, address: str) -> None:
    """Show a slip with its hint."""
    page.goto(f"{address}/#/editor")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(SLIP)
    page.locator(".cm-lintRange-error").hover()
    page.locator(".cm-tooltip-lint").wait_for()


def show_budget(page: Page, address: str) -> None:
    """Compare two policies."""
    page.goto(f"{address}/#/budget/growingUsers?with=growingUsers-WSJ-LRU")
    page.locator(".keys tbody tr").nth(3).wait_for()
    page.locator(".quality canvas").first.wait_for()


VIEWS = {
    "ranking": (show_ranking, {"width": 1280, "height": 800}),
    "phone": (show_phone, NARROW),
    "editor": (show_editor, {"width": 1280, "height": 760}),
    "slip": (show_slip, {"width": 1280, "height": 760}),
    "budget": (show_budget, {"width": 1280, "height": 1000}),
}


def take(browser: Browser, address: str, folder: Path) -> None:
    """Take all screenshots in both themes."""
    for theme in ("light", "dark"):
        for name, (show, size) in VIEWS.items():
            context = browser.new_context(
                viewport=size, color_scheme=theme, reduced_motion="reduce"
            )
            page = context.new_page()
            show(page, address)
            page.screenshot(path=folder / f"console-{name}-{theme}.png", caret="initial")
            context.close()


def main() -> None:
    """Run the demo, and take the screenshots into a folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PROJECT / "docs" / "pictures"
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.stderr.write("chromium is not installed: the screenshots stay as they are\n")
        return
    with (
        subprocess.Popen(DEMO, stderr=subprocess.PIPE, text=True) as demo,  # noqa: S603 - our own
        sync_playwright() as driver,
    ):
        address = next(line for line in demo.stderr or () if "http://" in line).split()[2]
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            take(browser, address, folder)
        finally:
            browser.close()
            demo.terminate()


if __name__ == "__main__":
    main()
