"""The report: at which instants a query is evaluated."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.windows import CountFrame, TimeFrame
from rsp_engine.operators.windows.count_windows import CountScan
from rsp_engine.operators.windows.report import Report
from rsp_engine.operators.windows.time_windows import TimeScan
from tests.operators.streams import BOUNDS, A, Taken, streams

kinds = st.sampled_from(("nonempty", "every"))
r2s = st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM"))
bounds = st.sampled_from(BOUNDS)
sizes = st.integers(1, 8)
FAR = 60


@st.composite
def frames(draw: st.DrawFn, most: int = 2) -> list[TimeFrame]:
    t0, edges = draw(st.integers(-5, 5)), draw(bounds)
    found = draw(st.lists(st.tuples(sizes, sizes), min_size=1, max_size=most))
    return [TimeFrame(width, step, t0, edges) for width, step in found]


def reported(
    report: Report, scans: list[TimeScan], taken: list[Taken], *, ask_first: bool
) -> list[int]:
    """Return the instants of evaluation over a stream that ends."""
    instants: list[int] = []
    for element in taken:
        if not ask_first or report.may_be_due(element.watermark):
            instants += report.due(element.watermark)
        for scan in scans:
            scan.take(*element)
    if not ask_first or report.may_be_due(inf):
        instants += report.due(inf)
    return instants


def made(windows: list[TimeFrame], kind: str, stream: str) -> tuple[Report, list[TimeScan]]:
    scans = [TimeScan(frame) for frame in windows]
    return Report(scans, kind, stream, windows[0].bounds), scans  # type: ignore[arg-type]


def expected(windows: list[TimeFrame], kind: str, stream: str, taken: list[Taken]) -> list[int]:
    """List all instants at which a window closes, and keep those that count."""
    closes = {(frame, i): frame.interval(i).close for frame in windows for i in range(FAR)}
    full = {
        key
        for key in closes
        if any((p := key[0].pane(e.timestamp)) and p.first <= key[1] <= p.last for e in taken)
    }
    last = max((closes[key] for key in full), default=-inf)
    watermark = max((e.watermark for e in taken), default=-inf)
    shift = 0 if windows[0].bounds == "(]" else 1
    found, before, started = [], False, False
    for instant in sorted(set(closes.values())):
        if instant > last and (kind == "every" or not watermark + shift > instant):
            break
        latest = [
            max((i for i in range(FAR) if closes[f, i] <= instant), default=-1) for f in windows
        ]
        is_full = any((f, i) in full for f, i in zip(windows, latest, strict=True))
        ends = (stream != "RSTREAM" and before) or (kind == "every" and started)
        if min(latest) >= 0 and (is_full or ends):
            found.append(instant)
            before, started = is_full, True
    return found


@given(frames(), kinds, r2s, streams())
def test_instants_are_those_at_which_a_window_closes_that_counts(windows, kind, stream, taken):
    report, scans = made(windows, kind, stream)
    instants = reported(report, scans, taken, ask_first=False)
    assert instants == expected(windows, kind, stream, taken)


@given(frames(), kinds, r2s, streams())
def test_the_quick_check_misses_no_due_instant(windows, kind, stream, taken):
    one, other = made(windows, kind, stream), made(windows, kind, stream)
    asked = reported(*one, taken, ask_first=True)
    assert asked == reported(*other, taken, ask_first=False)


@given(frames(), kinds, r2s, streams())
def test_no_instant_is_reported_before_the_one_that_is_waited_for(windows, kind, stream, taken):
    report, scans = made(windows, kind, stream)
    promised = -inf
    for watermark, element in [*((e.watermark, e) for e in taken), (inf, None)]:
        if report.may_be_due(watermark):
            assert all(instant >= promised for instant in report.due(watermark))
        promised = report.waits_for(watermark)
        for scan in scans:
            if element is not None:
                scan.take(*element)
    assert promised == inf


def test_nothing_is_waited_for_when_a_stream_has_ended():
    """0  1  2  3  4    [RANGE 1 STEP 2]
    (A ]  (  ]  A    the second element is in no window, so (2,3] is not known to be in between
    """
    report, [scan] = made([TimeFrame(1, 2)], "every", "RSTREAM")
    scan.take(1, (A,), 1)
    assert list(report.due(4)) == [1]
    assert report.waits_for(4) == 3
    assert not report.may_be_due(inf) or list(report.due(inf)) == []
    assert report.waits_for(inf) == inf


@given(frames(most=3), kinds, r2s, streams())
def test_instants_are_ascending(windows, kind, stream, taken):
    report, scans = made(windows, kind, stream)
    instants = reported(report, scans, taken, ask_first=False)
    assert instants == sorted(set(instants))


@pytest.mark.parametrize(
    ("kind", "stream", "instants"),
    [
        ("nonempty", "RSTREAM", [5, 20]),
        ("nonempty", "ISTREAM", [5, 10, 20]),
        ("nonempty", "DSTREAM", [5, 10, 20]),
        ("every", "RSTREAM", [5, 10, 15, 20]),
        ("every", "DSTREAM", [5, 10, 15, 20]),
    ],
)
def test_empty_windows_are_reported_on_every_or_where_rows_end(kind, stream, instants):
    """0    5    10   15   20   25     [RANGE 5 STEP 5]
    (  A ](    ](    ](  A ](
    """
    report, scans = made([TimeFrame(5, 5)], kind, stream)
    taken = [Taken(3, (A,), 3), Taken(18, (A,), 18)]
    assert reported(report, scans, taken, ask_first=False) == instants


def test_no_instant_is_reported_before_each_window_has_closed_once():
    """0    5    10   15   20
    (  A ](    ](    ](    ]
    (       A      ]           the first evaluation is at 15, over both
    """
    report, scans = made([TimeFrame(5, 5), TimeFrame(15, 15)], "nonempty", "RSTREAM")
    taken = [Taken(3, (A,), 3), Taken(23, (A,), 23)]
    assert reported(report, scans, taken, ask_first=False) == [15, 20, 25, 30]


def test_an_instant_is_evaluated_once_though_two_windows_close_then():
    report, scans = made([TimeFrame(5, 5), TimeFrame(10, 5)], "nonempty", "RSTREAM")
    taken = [Taken(3, (A,), 3), Taken(8, (A,), 8)]
    assert reported(report, scans, taken, ask_first=False) == [10, 15]


def test_the_content_is_that_of_the_instant_until_the_next_is_requested():
    report, [scan] = made([TimeFrame(5, 5)], "nonempty", "RSTREAM")
    scan.take(3, (A,), 3)
    scan.take(8, (A,), 8)
    for instant in report.due(inf):
        assert scan.interval().close == instant
        assert not scan.is_empty()


def test_a_waiting_instant_is_due_once_the_watermark_has_passed_it_however_often_it_was_checked():
    scan = CountScan(CountFrame(1, 1))
    report = Report([scan], "nonempty", "RSTREAM", "(]", counts=True)
    scan.take(5, [A], 5)
    assert list(report.due(5)) == []
    assert report.may_be_due(6)
    assert list(report.due(6)) == [5]
