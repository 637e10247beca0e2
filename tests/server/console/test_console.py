"""The console as a person uses it, in a real Chromium.

A usual run has the first test only; `make soak PART=console` has all.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.server.console.browser import NARROW, WIDE, open_console
from tests.server.served import EX, eventually
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from rsp_engine import Client
    from tests.server.console.browser import ConsolePage
    from tests.server.served import Served

pytestmark = pytest.mark.outside
soak = pytest.mark.skipif(TIMES == 1, reason="takes long: make soak PART=console")

STEP = 5_000
WARMEST = f"""PREFIX : <{EX}>
REGISTER RSTREAM :warmest AS
SELECT ?room ?t
FROM NAMED WINDOW :w ON :readings [RANGE 5s STEP 5s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} }}
ORDER BY DESC(?t) LIMIT 5
"""


def declare(client: Client) -> None:
    client.declare("readings", f"{EX}readings")


def push(client: Client, window: int, values: dict[str, float]) -> None:
    """Push the readings of a window; it closes when those of the next one come."""
    at = window * STEP + 1_000
    readings = "\n".join(f"<{EX}{room}> <{EX}temperature> {t} ." for room, t in values.items())
    client.push("readings", [(at, readings)])


def eventually_shows(page: ConsolePage, names: list[str]) -> None:
    eventually(lambda: page.names() == names)


def test_a_query_is_mended_started_and_its_ranking_moves(browser: Browser, server: Served) -> None:
    with server.client() as client, open_console(browser, server.url, "editor") as console:
        page = console.page
        page.locator(".verdict.good, .verdict.warn").wait_for()

        # A slip is underlined at its place; its hint and its remedy are at hand.
        console.write(WARMEST.replace("SELECT", "SELCT"))
        slip = page.locator(".cm-lintRange-error")
        slip.wait_for()
        assert slip.inner_text() == "SELCT"
        slip.hover()
        page.locator(".cm-tooltip-lint").get_by_text("did you mean SELECT?").wait_for()
        page.get_by_role("button", name="Write SELECT").last.click()
        page.locator(".problems .warning").get_by_text("is not declared").wait_for()
        slip.wait_for(state="detached")

        # The stream is declared from the editor, the plan is drawn, the query is started.
        page.get_by_role("button", name="Declare it").click()
        page.locator(".verdict.good").wait_for()
        page.locator(".box-operator strong").get_by_text("MinTopk").wait_for()
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_text("No window has closed yet").wait_for()

        push(client, 0, {"hall": 20, "attic": 25, "cellar": 12})
        push(client, 1, {"hall": 30, "attic": 25, "cellar": 12})
        eventually_shows(console, [":attic", ":hall", ":cellar"])
        assert page.locator(".badge.exact").is_visible()
        push(client, 2, {"hall": 10})
        eventually_shows(console, [":hall", ":attic", ":cellar"])
        assert page.locator(".line").first.locator(".move").inner_text() == "▲1"
        page.locator(".line").first.locator(".summary").click()
        page.locator(".history canvas").first.wait_for()


@soak
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_query_is_paused_resumed_and_deleted(
    browser: Browser, server: Served, width: int
) -> None:
    with server.client() as client, open_console(browser, server.url, width=width) as console:
        declare(client)
        client.submit(WARMEST, start="earliest")
        page = console.page
        row = page.locator('tr[data-query="warmest"]')
        row.locator(".state-running").wait_for()
        page.get_by_role("button", name="Pause warmest").click()
        row.locator(".state-paused").wait_for()
        for window in range(3):
            push(client, window, {"hall": window})
        page.get_by_role("button", name="Resume warmest").click()
        row.locator(".state-running").wait_for()
        row.get_by_role("link", name="warmest").click()
        eventually(lambda: [close for _, close in console.windows()] == [STEP, 2 * STEP])
        console.go("queries")
        page.get_by_role("button", name="Delete warmest").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.get_by_text("No query is registered.").wait_for()
        assert client.queries() == []


@soak
def test_no_window_is_missing_after_the_server_was_killed(browser: Browser, server: Served) -> None:
    with server.client() as client:
        declare(client)
        client.submit(WARMEST, start="earliest")
        with open_console(browser, server.url, "ranking/warmest") as console:
            for window in range(4):
                push(client, window, {"hall": window, "attic": 2})
            eventually(lambda: len(console.windows()) == 3)
            console.expects_trouble = True
            server.kill()
            console.page.locator(".connection.down").wait_for()
            server.start()
            with server.client() as again:
                for window in range(4, 9):
                    push(again, window, {"hall": window, "attic": 2})
            eventually(lambda: len(console.windows()) == 8)
            assert console.windows() == [(n, n * STEP) for n in range(1, 9)]
            console.page.locator(".connection.up").wait_for()
            console.expects_trouble = False


HOSTILE = [
    "<script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\"'`><svg onload=alert(1)>",
    "javascript:alert(1)",
    "\u202egnp.exe \u2066 {{7*7}} ${7*7}",
    "x" * 100_000,
]


@soak
def test_hostile_terms_are_text(browser: Browser, server: Served) -> None:
    query = f"""PREFIX : <{EX}>
REGISTER RSTREAM :hostile AS
SELECT ?name ?thing ?t
FROM NAMED WINDOW :w ON :readings [RANGE 5s STEP 5s]
WHERE {{ WINDOW :w {{ ?thing :name ?name ; :temperature ?t }} }}
ORDER BY DESC(?t) LIMIT 10
"""
    with server.client() as client:
        declare(client)
        client.submit(query, start="earliest")
        things = [f"javascript:alert({n})//%3Cscript%3E" for n in range(len(HOSTILE))]
        graph = "\n".join(
            f"<{thing}> <{EX}name> {json.dumps(name)} ; <{EX}temperature> {100 - n} ."
            for n, (thing, name) in enumerate(zip(things, HOSTILE, strict=True))
        )
        client.push("readings", [(1_000, graph), (7_000, graph)])
        client._request(
            "POST",
            "/streams/readings/elements?malformed=keep",
            data=json.dumps({"timestamp": 1, "graph": HOSTILE[0]}).encode(),
            headers={"Content-Type": "application/x-ndjson"},
        )
        with open_console(browser, server.url, "ranking/hostile") as console:
            page = console.page
            eventually(lambda: len(console.names()) == len(HOSTILE))
            shown = page.locator(".ranking .title").evaluate_all(
                "all => all.map(e => e.textContent)"
            )
            cut = [name if len(name) <= 120 else f"{name[:119]}…" for name in HOSTILE]
            assert shown == cut
            for n, name in enumerate(HOSTILE):
                line = page.locator(".line").nth(n)
                line.locator(".summary").click()
                if len(name) > 300:
                    line.get_by_role("button", name=re.compile("Show all")).click()
                first = line.locator(".values .text").first
                assert json.loads(str(first.text_content())) == name
                links = line.locator("a[href]")
                assert links.count() == 0
            console.go("streams/readings")
            page.locator(".messages .reason").first.wait_for()
            assert page.locator(".messages script, .messages img").count() == 0
            assert page.title() == "Streams – RSP console"
            assert page.evaluate("document.scripts.length") == 1
