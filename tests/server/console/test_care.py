"""The console in all themes and sizes: for everybody, by the keyboard, and without a stutter."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import requests

from rsp_engine.experiments.demonstration import server as sparql_server
from tests.server.console.browser import NARROW, WIDE, open_console, packages
from tests.server.served import EX, eventually, served
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from rsp_engine import Client
    from tests.server.console.browser import ConsolePage
    from tests.server.served import Served

pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(TIMES == 1, reason="takes long: make soak PART=console"),
]
VIEWS = ["queries", "editor", "ranking/top", "budget/joined", "streams/readings"]
TOP = f"""PREFIX : <{EX}>
REGISTER RSTREAM :top AS SELECT ?room ?t
FROM NAMED WINDOW :w ON :readings [RANGE 10s STEP 5s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} }} ORDER BY DESC(?t) LIMIT 50
"""
JOINED = f"""PREFIX : <{EX}>
REGISTER RSTREAM :joined AS SELECT ?room ?t ?n (?t + ?n AS ?score)
FROM NAMED WINDOW :w ON :readings [RANGE 10s STEP 5s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} SERVICE :people {{ ?room :people ?n }} }}
ORDER BY DESC(?score) LIMIT 5
"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return (
        packages(tmp_path_factory.getbasetemp()) / "node_modules" / "axe-core" / "axe.min.js"
    ).read_text()


@pytest.fixture(scope="module")
def remote() -> Iterator[str]:
    """A SPARQL server that knows how many people are in each room."""
    with sparql_server() as url:
        people = " ".join(f"<{EX}room/{n}> <{EX}people> {n} ." for n in range(9))
        update = {"update": f"INSERT DATA {{ {people} }}"}
        requests.post(f"{url}/update", data=update, timeout=60).raise_for_status()
        yield url


@pytest.fixture(scope="module")
def alive(tmp_path_factory: pytest.TempPathFactory, remote: str) -> Iterator[Served]:
    """A server with queries of each kind, for all tests of this file."""
    folder = tmp_path_factory.mktemp("alive")
    with served(folder, "--allow", remote) as server, server.client() as client:
        client.declare("readings", f"{EX}readings")
        client.submit(TOP, start="earliest")
        options = {"policy": "AT-TSM", "budget": 2, "oracle": True, "elected": True}
        services = {f"{EX}people": f"{remote}/query"}
        client.submit(JOINED, start="earliest", options=options, services=services)
        push(client, range(1, 60))
        yield server


def push(client: Client, times: range) -> None:
    readings = [
        (1000 * n, f"<{EX}room/{n * 7 % 9}> <{EX}temperature> {20 + n * n * 13 % 17} .")
        for n in times
    ]
    client.push("readings", readings)


def settled(console: ConsolePage, view: str) -> None:
    """Wait until a view shows what it has."""
    marks = {
        "queries": "tr[data-query]",
        "editor": ".verdict.good, .verdict.warn",
        "ranking/top": ".ranking .line",
        "budget/joined": ".keys tbody tr",
        "streams/readings": ".messages .payload",
    }
    console.page.locator(marks[view]).first.wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_axe_finds_no_serious_fault(
    browser: Browser, alive: Served, axe: str, theme: Any, width: int
) -> None:
    found = []
    with open_console(
        browser, alive.url, width=width, color_scheme=theme, reduced_motion="reduce"
    ) as console:
        for view in VIEWS:
            console.go(view)
            settled(console, view)
            if view == "ranking/top":
                console.page.locator(".summary").first.click()
                console.page.locator(".history canvas").first.wait_for()
            if view == "editor":
                console.write(TOP.replace("SELECT", "SELCT"))
                console.page.locator(".problems .error").wait_for()
            console.page.evaluate(axe)
            result = console.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            found += [
                (view, each["id"], each["impact"], node["html"][:200], node["failureSummary"])
                for each in result["violations"]
                if each["impact"] in {"serious", "critical"}
                for node in each["nodes"]
            ]
    assert found == []


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_view_is_wider_than_the_page(browser: Browser, alive: Served, width: int) -> None:
    with open_console(browser, alive.url, width=width) as console:
        for view in VIEWS:
            console.go(view)
            settled(console, view)
            wide = console.page.evaluate("document.documentElement.scrollWidth")
            assert (view, wide) == (view, width)


def test_the_theme_is_chosen_and_kept(browser: Browser, alive: Served) -> None:
    with open_console(browser, alive.url, color_scheme="light") as console:
        page = console.page
        colour = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(colour)
        page.get_by_label("Theme").select_option("dark")
        dark = page.evaluate(colour)
        assert dark != light
        page.reload()
        page.locator("tr[data-query]").first.wait_for()
        assert page.evaluate(colour) == dark


def test_everything_is_reached_by_the_keyboard(browser: Browser, alive: Served) -> None:
    focused = (
        "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
    )
    with open_console(browser, alive.url, "queries") as console:
        page = console.page
        page.locator("tr[data-query]").first.wait_for()
        seen = []
        for _ in range(24):
            page.keyboard.press("Tab")
            seen.append(str(page.evaluate(focused)).strip())
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            if page.evaluate("document.activeElement !== document.body"):
                assert outline != "none", seen[-1]
        for wanted in ("Skip to the content", "Ranking", "Theme", "New query", "top", "Pause top"):
            assert wanted in seen
        console.go("ranking/top")
        settled(console, "ranking/top")
        page.locator(".summary").first.focus()
        page.keyboard.press("Enter")
        page.locator(".history canvas").first.wait_for()
        page.keyboard.press("Enter")
        page.locator(".history").wait_for(state="detached")


def test_words_prefixes_streams_and_windows_are_completed(browser: Browser, alive: Served) -> None:
    start = "PREFIX : <http://example.org/>\nSELECT ?room FROM NAMED WINDOW :w ON "
    rest = ":readings [RANGE 10s STEP 5s]\nWHERE { WINDOW "
    with open_console(browser, alive.url, "editor") as console:
        page = console.page
        settled(console, "editor")

        def offers(text: str, typed: str, wanted: str) -> None:
            console.write(text)
            page.keyboard.type(typed)
            if not typed:
                page.keyboard.press("Control+Space")
            page.locator(".cm-tooltip-autocomplete").get_by_text(wanted, exact=True).wait_for()
            page.keyboard.press("Escape")

        offers("", "SEL", "SELECT")
        offers("PREFIX ", "sch", "schema:")
        offers(start, "", ":readings")
        offers(start + rest, "", ":w")
        offers(start + rest + ":w { ", "?ro", "?room")
        page.get_by_label("Add an option").select_option("policy")
        assert page.get_by_label("policy").locator("option[value='AT-TSM']").count() == 1


def test_each_example_can_be_started(browser: Browser, alive: Served, remote: str) -> None:
    with open_console(browser, alive.url, "editor") as console:
        page = console.page
        settled(console, "editor")
        examples = page.get_by_label("Start from")
        for number in range(examples.locator("option").count() - 1):
            console.write("SELECT")
            page.locator(".verdict.bad").wait_for()
            examples.select_option(str(number))
            if "remote" in str(examples.locator("option").nth(number + 1).text_content()):
                page.locator(".problems .error").get_by_text("SERVICE needs").wait_for()
                page.get_by_label("SERVICE").fill(f"{remote}/query")
                page.keyboard.press("Tab")
            page.locator(".verdict.good, .verdict.warn").wait_for()
            page.locator(".box-operator").wait_for()


def test_a_token_is_asked_for_once(browser: Browser, tmp_path: Path) -> None:
    token = "a-token-of-this-test"  # noqa: S105 - of a test
    environment = {"RSP_SERVE_TOKEN": token}
    with (
        served(tmp_path, environment=environment) as server,
        server.client(token) as client,
        open_console(browser, server.url) as console,
    ):
        console.expects_trouble = True
        client.declare("readings", f"{EX}readings")
        page = console.page
        secret = page.get_by_label("Token", exact=True).last
        secret.fill("wrong")
        page.get_by_role("button", name="Enter").click()
        page.get_by_text("The token is wrong.").wait_for()
        secret.fill(token)
        page.get_by_role("button", name="Enter").click()
        page.get_by_text("No query is registered.").wait_for()
        console.expects_trouble = False
        page.reload()
        page.get_by_text("No query is registered.").wait_for()
        assert page.locator("dialog").count() == 0
        assert token not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")


CHANGES, EVERY_S = 40, 0.2


def test_fifty_rows_that_change_five_times_a_second_take_no_long_task(
    browser: Browser, alive: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    def window(client: Client, number: int) -> None:
        at = 100_000 + 5_000 * number
        rows = "\n".join(
            f"<{EX}room/{room}> <{EX}temperature> {1000 + (room * 37 + number * 91) % 101} ."
            for room in range(50)
        )
        client.push("readings", [(at, rows)])

    with (
        alive.client() as client,
        open_console(browser, alive.url, "ranking/top") as console,
    ):
        page = console.page
        window(client, 0)
        window(client, 1)
        eventually(lambda: page.locator(".ranking .line").count() == 50)
        session = page.context.new_cdp_session(page)
        tasks: list[dict[str, Any]] = []
        session.on("Tracing.dataCollected", lambda data: tasks.extend(data["value"]))
        done = threading.Event()
        session.on("Tracing.tracingComplete", lambda _: done.set())
        categories = "devtools.timeline,disabled-by-default-devtools.timeline"
        session.send("Tracing.start", {"categories": categories, "transferMode": "ReportEvents"})
        before = console.windows()[-1]
        for number in range(2, 2 + CHANGES):
            begun = time.monotonic()
            window(client, number)
            page.wait_for_timeout(max(0, 1000 * (begun + EVERY_S - time.monotonic())))
        # All windows but the last, which is open, were shown while the trace was taken.
        eventually(lambda: console.windows()[-1][0] >= before[0] + CHANGES - 2)
        session.send("Tracing.end")
        while not done.is_set():
            page.wait_for_timeout(20)
        renderer = {
            (each["pid"], each["tid"])
            for each in tasks
            if each["name"] == "FunctionCall" and alive.url in json.dumps(each.get("args", {}))
        }
        assert renderer, "the trace has the scripts of the page"
        # CPU time: on a busy computer, a task may wait in the middle.
        own = [
            each
            for each in tasks
            if each["name"] == "RunTask" and (each["pid"], each["tid"]) in renderer
        ]
        times = [each.get("tdur", each.get("dur", 0)) / 1000 for each in own]
        longest = max(each.get("dur", 0) / 1000 for each in own)
        with capsys.disabled():
            print(  # noqa: T201
                f"\nthe longest of {len(times)} tasks: {max(times):.1f} ms of CPU time,"
                f" {longest:.1f} ms in all"
            )
        assert max(times) < 50
