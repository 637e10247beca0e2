"""What is alive without a hand: `rsp demo --web`, and the factory in a browser."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.data import PROJECT
from tests.io.live.servers import needs_mosquitto
from tests.server.console.browser import open_console
from tests.server.served import eventually
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.outside
soak = pytest.mark.skipif(TIMES == 1, reason="takes long: make soak PART=console")


@contextmanager
def running(command: list[str], folder: Path, expected: int) -> Iterator[str]:
    """Run a command that tells an address, and interrupt it at the end."""
    told = folder / "told"
    with told.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, *command], cwd=PROJECT, stdout=output, stderr=output
        )

    def address() -> str | None:
        assert process.poll() is None, told.read_text()
        found = re.search(r"(?:serving on|open) (http://[0-9.:]+)", told.read_text())
        return found and found.group(1)

    try:
        yield str(eventually(address))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == expected, told.read_text()
        assert "Traceback" not in told.read_text()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def test_options_that_the_page_does_not_take_are_refused() -> None:
    for flags in (["--web", "--windows", "3"], ["--web", "--runner", "local"], ["--port", "8000"]):
        command = [sys.executable, "-m", "rsp_engine.cli", "demo", *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603
        assert done.returncode == 2
        assert "--web" in done.stderr


@soak
def test_the_demo_ranks_and_compares_two_policies(browser: Browser, tmp_path: Path) -> None:
    command = ["-m", "rsp_engine.cli", "demo", "--web", "--speed", "240"]
    with (
        running(command, tmp_path, 0) as address,
        open_console(browser, address, "ranking/growingUsers") as console,
    ):
        eventually(lambda: len(console.windows()) >= 3)
        assert len(console.names()) == 5
        assert console.page.locator(".swatch").first.is_visible()
        console.go("budget/growingUsers?with=growingUsers-WSJ-LRU")
        sides = console.page.locator(".side")
        eventually(lambda: sides.count() == 2)
        for side in (sides.nth(0), sides.nth(1)):
            side.locator(".keys tbody tr").nth(6).wait_for()
            first = side.locator("table.figures").first.locator("tbody tr").first
            assert first.locator("td").first.inner_text() == "7"
        console.page.locator(".quality canvas").first.wait_for()


@soak
@needs_mosquitto
def test_the_factory_is_shown_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    command = ["examples/factory/run.py", "--web"]
    with (
        running(command, tmp_path, 0) as address,
        open_console(browser, address, "ranking/ProductsAtRisk") as console,
    ):
        eventually(lambda: len(console.windows()) >= 2)
        assert all(name.startswith(":machine") for name in console.names())
        console.go("streams/vibrations")
        console.page.locator(".messages .payload").first.wait_for()
