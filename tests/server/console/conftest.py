"""A browser for the tests of a file, and a server for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.server.console.browser import chromium
from tests.server.served import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.server.served import Served


@pytest.fixture(scope="module")  # its loop would be in the way of tests that run one
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running
