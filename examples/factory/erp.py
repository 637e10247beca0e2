"""The ERP: a SPARQL server that knows which instrument is where, and when it was maintained."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import requests
from plant import FACTORY, MACHINES, Maintenance, product

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def install(url: str) -> None:
    """Tell the server what is mounted where, and what is made with it."""
    lines = (
        f"f:machine{m} f:carries f:instrument{m} . f:instrument{m} f:makes f:{product(m)} ."
        for m in range(MACHINES)
    )
    update(url, f"PREFIX f: <{FACTORY}> INSERT DATA {{ {' '.join(lines)} }}")


def maintain(url: str, maintenances: Sequence[Maintenance]) -> None:
    """Tell the server that instruments were maintained."""
    today = datetime.now(UTC).date()
    parts = [
        f"DELETE WHERE {{ f:instrument{m.machine} f:lastMaintenance ?d ; f:daysAgo ?n }} ;"
        f' INSERT DATA {{ f:instrument{m.machine} f:lastMaintenance "{m.date(today)}"^^xsd:date ;'
        f" f:daysAgo {m.days_ago} }}"
        for m in maintenances
    ]
    prefixes = f"PREFIX f: <{FACTORY}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    update(url, prefixes + " ; ".join(parts))


def update(url: str, text: str) -> None:
    """Send an update to the server."""
    requests.post(f"{url}/update", data={"update": text}, timeout=60).raise_for_status()


@contextmanager
def evolving(url: str, history: Sequence[Maintenance]) -> Iterator[None]:
    """Let maintenances happen, each in its second, until the end."""
    maintain(url, [each for each in history if each.second == 0])
    is_over = threading.Event()

    def act() -> None:
        begun = time.monotonic()
        for each in history:
            if each.second == 0:
                continue
            if is_over.wait(max(0, begun + each.second - time.monotonic())):
                return
            maintain(url, [each])

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
