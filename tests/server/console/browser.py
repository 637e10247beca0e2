"""A page of the console in a real Chromium, which notes what a page must not do."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

__all__ = ["CONSOLE", "ConsolePage", "chromium", "open_console", "packages"]

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
).split()
WIDE, NARROW = 1280, 390
CONSOLE = Path(__file__).parents[3] / "rsp_engine" / "server" / "console"


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Run a browser with a profile of its own; skip the test where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    environment: dict[str, str | float | bool] = {"HOME": str(profile)}
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS, env=environment)
        try:
            yield browser
        finally:
            browser.close()


class ConsolePage:
    """A page of the console, with what it has said and asked for."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.expects_trouble = False
        """Whether the server is away, so that requests fail."""
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._requested)
        page.on("dialog", lambda dialog: self.errors.append(f"a dialog: {dialog.message}"))

    def _note(self, message: ConsoleMessage) -> None:
        is_fetch = "Failed to load resource" in message.text
        if message.type in {"error", "warning"} and not (self.expects_trouble and is_fetch):
            self.errors.append(f"{message.text} ({message.location})")

    def _requested(self, request: Request) -> None:
        own = urlsplit(self.url)
        other = urlsplit(request.url)
        if (other.scheme, other.netloc) != (own.scheme, own.netloc):
            self.foreign.append(request.url)

    def go(self, path: str) -> None:
        """Open a view."""
        self.page.goto(f"{self.url}/#/{path}")

    def write(self, text: str) -> None:
        """Put a text into the editor, as a person pastes it."""
        self.page.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def names(self) -> list[str]:
        """Return the names of the ranked objects, best first."""
        return self.page.locator(".ranking .title").all_inner_texts()

    def windows(self) -> list[tuple[int, int]]:
        """Return the ids and the closes of the windows that have been seen."""
        script = "marks => marks.map(m => [Number(m.dataset.id), Number(m.dataset.close)])"
        found: list[list[int]] = self.page.locator(".windows li").evaluate_all(script)
        return [(number, close) for number, close in found]

    def check(self) -> None:
        """Check that no error was reported, and nobody else was asked."""
        assert not self.errors, self.errors
        assert not self.foreign, self.foreign


@contextmanager
def open_console(
    browser: Browser, url: str, path: str = "queries", *, width: int = WIDE, **more: Any
) -> Iterator[ConsolePage]:
    """Open the console at a path; check at the end that it has done nothing wrong."""
    height = 844 if width < 600 else 860
    context = browser.new_context(viewport={"width": width, "height": height}, **more)
    try:
        opened = ConsolePage(context.new_page(), url)
        opened.page.set_default_timeout(60_000)
        opened.go(path)
        yield opened
        opened.check()
    finally:
        context.close()


@cache
def packages(folder: Path) -> Path:
    """Return the sources of the console with the packages that they need; skip without node."""
    if shutil.which("node") is None or (npm := shutil.which("npm")) is None:
        pytest.skip("needs node and npm")
    lock = (CONSOLE / "package-lock.json").read_bytes()
    kept = CONSOLE / "node_modules" / ".rsp-lock"
    if kept.is_file() and kept.read_bytes() == lock:
        return CONSOLE
    sources = folder / "console"
    ignored = shutil.ignore_patterns("node_modules", "bundle")
    shutil.copytree(CONSOLE, sources, ignore=ignored)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=sources, capture_output=True, check=False, timeout=300)  # noqa: S603
    if done.returncode:
        pytest.skip("the packages of package-lock.json cannot be installed here: npm ci")
    return sources
