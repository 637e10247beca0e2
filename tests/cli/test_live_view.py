"""The live view: frames on a terminal, none off it, and a terminal that is as it was."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from io import StringIO

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store
from rich.console import Console

from rsp_engine import Engine
from rsp_engine.cli.live_view import FRAMES, LiveView
from rsp_engine.cli.view_frame import Moment, frame, moves
from rsp_engine.model.answers import Answer, Interval, Row, Solutions
from rsp_engine.monitor.run_monitor import RunMonitor
from tests.cli.terminals import ESCAPE, HIDE, SHOW, on_a_terminal

HOT = """PREFIX : <http://example.org/>
REGISTER RSTREAM :hot AS
SELECT ?room ?t
FROM NAMED WINDOW :w ON STREAM :readings [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t } }
ORDER BY DESC(?t)
LIMIT 3
"""
SERVED = """PREFIX : <http://example.org/>
REGISTER RSTREAM :served AS
SELECT ?room ?floor (?t + ?floor AS ?score)
FROM NAMED WINDOW :w ON STREAM :readings [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t } SERVICE :plan { ?room :floor ?floor } }
ORDER BY DESC(?score)
LIMIT 3
"""
ALARMS = """PREFIX : <http://example.org/>
REGISTER RSTREAM :alarms AS CONSTRUCT { ?room :alarm ?t }
FROM NAMED WINDOW :w ON STREAM :readings [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t FILTER (?t > 24) } }
"""
ANY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :any AS ASK
FROM NAMED WINDOW :w ON STREAM :readings [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t } }
"""
#   0 s      10 s      20 s
#   | a20 b25 | a30 b26 | c1 and one that comes too late
ELEMENTS = [
    (1_000, "a", 20), (2_000, "b", 25), (11_000, "a", 30), (12_000, "b", 26), (21_000, "c", 1),
    (3_000, "d", 9),
]  # fmt: skip


def turtle(room: str, t: int) -> str:
    return f"<http://example.org/{room}> <http://example.org/temperature> {t} ."


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a query and a stream."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hot.rspql").write_text(HOT)
    lines = [json.dumps({"timestamp": at, "graph": turtle(r, t)}) for at, r, t in ELEMENTS]
    (tmp_path / "readings.jsonl").write_text("\n".join(lines))
    return tmp_path


RUN = ["run", "hot.rspql", "--stream", ":readings=readings.jsonl"]


def off_a_terminal(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "rsp_engine.cli", *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=120)  # noqa: S603


def plain(seen: bytes) -> str:
    """Return what was written, without colours and moves."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


def test_on_a_terminal_the_answers_are_a_table_that_changes_in_place(here):
    done = on_a_terminal(*RUN)
    assert done.code == 0
    assert done.seen.count(HIDE) == done.seen.count(SHOW) == 1
    assert done.seen.index(HIDE) < done.seen.index(SHOW)
    shown = plain(done.seen)
    assert ":hot  20 s – 30 s" in shown
    assert "late 1" in shown
    assert "100 %" in shown
    assert '"query"' not in shown
    assert "6 elements, 3 windows, " in shown


def test_off_a_terminal_there_are_no_frames_and_no_colour(here):
    done = off_a_terminal(*RUN)
    assert done.returncode == 0
    assert ESCAPE not in done.stdout + done.stderr
    assert [json.loads(line)["query"] for line in done.stdout.splitlines()] == [
        "http://example.org/hot"
    ] * 3


@pytest.mark.parametrize(
    "flags", [["--no-live"], ["--format", "csv"], ["--output", "answers.jsonl"]], ids=" ".join
)
def test_who_says_where_answers_go_gets_them_there_and_no_frames(here, flags):
    done = on_a_terminal(*RUN, *flags)
    assert done.code == 0
    assert ESCAPE not in done.seen
    assert ("http://example.org/a" in done.seen.decode()) == (flags[0] != "--output")


def test_a_dumb_terminal_gets_no_frames(here):
    done = on_a_terminal(*RUN, environment={"TERM": "dumb"})
    assert done.code == 0
    assert ESCAPE not in done.seen


def test_answers_that_are_piped_are_the_same_with_a_view_on_the_terminal(here):
    done = on_a_terminal(*RUN, "--live", is_piped=True)
    assert done.code == 0
    assert HIDE in done.seen
    assert ESCAPE not in done.piped
    assert done.piped == off_a_terminal(*RUN).stdout


def test_a_view_without_a_terminal_is_refused(here):
    done = off_a_terminal(*RUN, "--live")
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "error: --live needs a terminal on standard error\n  = hint: remove it\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_the_terminal_as_it_was(here, number):
    done = on_a_terminal(*RUN, "--speed", "0.01", until=b"elements", signal=number)
    assert done.code == 128 + number
    assert done.seen.index(HIDE) < done.seen.rindex(SHOW)
    assert "Traceback" not in done.seen.decode()


def test_an_error_is_told_below_the_last_frame_and_the_cursor_is_back(here):
    done = on_a_terminal(*RUN, "--live", "--output", "/dev/full")
    assert done.code == 3
    before, after = done.seen.split(SHOW)
    assert HIDE in before
    assert "error: /dev/full cannot be written" in after.decode()


def watched(*queries: str, service: Store | None = None) -> RunMonitor:
    """Return a watch that has seen a whole run."""
    engine, watch = Engine(policy=None if service is None else "EXACT"), RunMonitor()
    engine.watched_by(watch)
    if service is not None:
        engine.service("http://example.org/plan", service)
    for query in queries:
        engine.register(query)
    pairs = [(at, turtle(room, t)) for at, room, t in ELEMENTS]
    engine.bind("http://example.org/readings", pairs)
    for _ in engine.run():
        pass
    return watch


def drawn(watch: RunMonitor, height: int = 60, *, ascii_only: bool = False) -> str:
    console = Console(file=StringIO(), width=100, force_terminal=False)
    console.print(frame(watch, Moment(65.0, 1234.4, height, ascii_only)))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_ranks_that_moved_are_marked():
    #   close 10:  b a        close 20:  a b
    engine, watch = Engine(), RunMonitor()
    engine.watched_by(watch)
    engine.register(HOT)
    engine.bind("http://example.org/readings", [(t, turtle(r, x)) for t, r, x in ELEMENTS])
    shown = [drawn(watch) for _ in engine.run()]
    assert re.search(r"1 +:b +25", shown[0])
    assert "▲" not in shown[0]
    assert "new" not in shown[0]
    assert re.search(r"1 +▲1 +:a +30", shown[1])
    assert re.search(r"2 +▼1 +:b +26", shown[1])
    assert re.search(r"1 +new +:c +1 ", shown[2])


def test_an_object_is_the_same_whatever_its_numbers_are():
    def answer(*rows: tuple[str, int]) -> Answer:
        found = [
            Row({"room": NamedNode(f"http://e/{room}"), "t": Literal(t)}, place)
            for place, (room, t) in enumerate(rows, 1)
        ]
        return Answer("q", Interval(0, 1), Solutions(("room", "t"), tuple(found), True), {})

    before = answer(("a", 9), ("b", 8), ("c", 7))
    assert moves(answer(("c", 30), ("a", 20), ("d", 10)), before) == [2, -1, None]
    twice = answer(("a", 9), ("a", 8))
    assert moves(answer(("a", 8), ("a", 5)), twice) == [1, None]


def test_remote_values_have_an_age_and_the_budget_is_told():
    store = Store()
    for place, room in enumerate("abc"):
        node, floor = NamedNode(f"http://example.org/{room}"), NamedNode("http://example.org/floor")
        store.add(Quad(node, floor, Literal(place)))
    shown = drawn(watched(SERVED, service=store))
    assert re.search(r"room +floor +score +age", shown)
    assert re.search(r"1 +new +:c +2 +3 +fresh", shown)
    assert "EXACT  budget 1, no limit  in all 5" in shown
    assert "exact" in shown


def test_every_query_has_a_panel_and_the_input_a_line():
    shown = drawn(watched(HOT, ALARMS, ANY))
    assert [name for name in (":hot", ":alarms", ":any") if name in shown] == [
        ":hot",
        ":alarms",
        ":any",
    ]
    assert "true" in shown
    assert shown.count("watermark the end · 3 windows") == 3
    line = "elements 6  a second 1,234  triples 6  late 1  dead letters 0  time 1:05"
    assert line in shown


def test_a_small_terminal_gets_fewer_rows():
    watch = RunMonitor()
    engine = Engine()
    engine.watched_by(watch)
    engine.register(HOT)
    engine.bind("http://example.org/readings", [(1, turtle(r, 1)) for r in "abc"])
    list(engine.run())
    assert "more rows" not in drawn(watch)
    assert "and 1 more rows" in drawn(watch, height=13)


def test_where_letters_are_ascii_the_frame_is():
    assert drawn(watched(HOT, ANY), ascii_only=True).isascii()


def test_what_a_stream_holds_cannot_move_the_cursor():
    engine, watch = Engine(), RunMonitor()
    engine.watched_by(watch)
    engine.register(HOT)
    evil = '<http://example.org/a> <http://example.org/temperature> "\\u001B[2J\\u0007\\u202E" .'
    engine.bind("http://example.org/readings", [(1, evil)])
    list(engine.run())
    shown = drawn(watch)
    assert "�[2J��" in shown
    assert not [c for c in shown if c in "\x1b\x07\u202e"]


def test_there_are_no_more_frames_than_promised():
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=30)
    begun = time.monotonic()
    with LiveView(watched(HOT), console):
        time.sleep(0.8)
        while file.getvalue().count("watermark") < 2:  # a busy machine draws late
            assert time.monotonic() < begun + 60
            time.sleep(0.05)
    passed = time.monotonic() - begun
    frames = file.getvalue().count("watermark")
    assert 3 <= frames <= passed * FRAMES + 2  # the first and the last are drawn at once


def test_a_frame_that_cannot_be_drawn_does_not_break_the_run():
    class Broken(RunMonitor):
        @property
        def elements(self) -> int:
            return 7

        @property
        def dead(self) -> dict[str, int]:
            raise RuntimeError("a slip")

    file, watch = StringIO(), Broken()
    watch.queries = watched(HOT).queries
    with LiveView(watch, Console(file=file, force_terminal=True, width=80)):
        pass
    assert "the live view cannot be drawn: RuntimeError: a slip" in file.getvalue()
