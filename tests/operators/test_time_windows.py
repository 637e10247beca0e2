"""Scans over event time against the definition: a window holds the elements between its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.answers import Interval
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.windows.scan import BEFORE_T0, BETWEEN_WINDOWS, LATE
from rsp_engine.operators.windows.time_windows import TimeScan
from tests.operators.streams import A, B, C, Taken, held_up, streams

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pyoxigraph import Triple

frames = st.builds(
    TimeFrame,
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(-5, 5),
    st.sampled_from(("(]", "[)")),
)
FAR = 60


def holds(frame: TimeFrame, index: int, timestamp: int) -> bool:
    start = frame.t0 + index * frame.step
    shift = 0 if frame.bounds == "(]" else 1
    return start < timestamp + shift <= start + frame.range


def is_over(frame: TimeFrame, index: int, watermark: float) -> bool:
    close = frame.t0 + index * frame.step + frame.range
    return watermark > close if frame.bounds == "(]" else watermark >= close


def content(scan: TimeScan) -> set[Triple]:
    return {triple for _, part in scan.content() for triple in part}


def parts(scan: TimeScan) -> dict[Hashable, list[Triple]]:
    return {key: list(part) for key, part in scan.content()}


@given(frames, streams(max_delay=0) | streams(max_delay=4) | held_up())
def test_a_closed_window_holds_the_elements_between_its_edges_that_came_in_time(frame, taken):
    scan = TimeScan(frame)
    for element in taken:
        scan.take(*element)
    for index in range(FAR):
        scan.close(index)
        inside = [
            e
            for e in taken
            if holds(frame, index, e.timestamp) and not is_over(frame, index, e.watermark)
        ]
        assert content(scan) == {triple for e in inside for triple in e.triples}
        assert scan.is_empty() == (not inside)
        assert scan.interval() == frame.interval(index)


@given(frames, streams(max_delay=0) | streams(max_delay=4) | held_up())
def test_windows_are_the_same_when_each_closes_as_soon_as_it_can(frame, taken):
    """The content of a window does not depend on when it is read, once it is over."""
    at_the_end, at_once = TimeScan(frame), TimeScan(frame)
    found = {}
    for element in taken:
        at_the_end.take(*element)
        while is_over(frame, at_once.closed + 1, element.watermark):
            at_once.close(at_once.closed + 1)
            found[at_once.closed] = content(at_once)
        at_once.take(*element)
    for index in range(at_once.closed + 1):
        at_the_end.close(index)
        assert content(at_the_end) == found[index]


@given(frames, streams(max_delay=3) | held_up())
def test_an_element_is_refused_if_all_its_windows_are_over_and_for_no_other_reason(frame, taken):
    scan = TimeScan(frame)
    for element in taken:
        windows = [i for i in range(FAR) if holds(frame, i, element.timestamp)]
        refusal = scan.take(*element)
        if windows:
            late = all(is_over(frame, i, element.watermark) for i in windows)
            assert refusal == (LATE if late else None)
        else:
            assert refusal in (BEFORE_T0, BETWEEN_WINDOWS)


@given(frames, streams() | held_up())
def test_a_part_that_was_seen_before_is_as_it_was_then(frame, taken):
    scan = TimeScan(frame)
    seen: dict[Hashable, list[Triple]] = {}
    for element in taken:
        while is_over(frame, scan.closed + 1, element.watermark):
            scan.close(scan.closed + 1)
            now = parts(scan)
            assert all(now[key] == seen[key] for key in now.keys() & seen.keys())
            seen |= now
        scan.take(*element)


@given(frames, streams(max_delay=2), st.integers(0, 10))
def test_only_panes_of_open_windows_are_kept(frame, taken, index):
    scan = TimeScan(frame)
    for element in taken:
        scan.take(*element)
    scan.close(index)
    assert all(pane.last >= index for pane in scan._panes)


@given(frames, streams(), st.integers(-5, 60))
def test_closing_until_an_instant_closes_what_closes_then_or_before(frame, taken, instant):
    scan = TimeScan(frame)
    for element in taken:
        scan.take(*element)
    scan.close_until(instant)
    closes = [frame.interval(i).close for i in range(FAR)]
    assert max(scan.closed, -1) == max((i for i in range(FAR) if closes[i] <= instant), default=-1)


@given(frames, streams(), st.integers(-1, 10))
def test_the_next_window_is_the_one_after_or_the_next_with_content(frame, taken, closed):
    scan = TimeScan(frame)
    for element in taken:
        scan.take(*element)
    if closed >= 0:
        scan.close(closed)
    after = scan.closed + 1
    assert scan.next(skip_empty=False) == (after, frame.interval(after).close)
    full = [
        i for i in range(after, FAR) if any(holds(frame, i, e.timestamp) for e in taken)
    ]  # in the order of time, all come in time
    expected = (full[0], frame.interval(full[0]).close) if full else None
    assert scan.next(skip_empty=True) == expected


@given(frames, streams())
def test_the_last_content_is_where_the_last_window_closes_that_holds_an_element(frame, taken):
    scan = TimeScan(frame)
    for element in taken:
        scan.take(*element)
    full = [i for i in range(FAR) if any(holds(frame, i, e.timestamp) for e in taken)]
    expected = frame.interval(full[-1]).close if full else float("-inf")
    assert scan.last_content() == expected


def test_an_element_that_is_late_for_one_window_is_taken_by_the_next():
    """0     3     6     9          [RANGE 6 STEP 3]
    (-----------]                   closed when the watermark is 7
          (-----------]             C comes late, and is in this one alone
             A  C  B
    """
    scan = TimeScan(TimeFrame(6, 3))
    assert scan.take(4, (A,), 4) is None
    assert scan.take(7, (B,), 7) is None
    scan.close(0)
    assert content(scan) == {A}
    assert scan.take(5, (C,), 7) is None
    assert content(scan) == {A}
    scan.close(1)
    assert content(scan) == {A, B, C}
    assert scan.interval() == Interval(3, 9)


def test_between_two_windows_is_no_fault_and_before_t0_is_one():
    """0  1  2  3  4  5             [RANGE 1 STEP 3]
    (--]     (--]
    """
    scan = TimeScan(TimeFrame(1, 3))
    assert scan.take(*Taken(0, (A,), 0)) == BEFORE_T0
    assert scan.take(*Taken(2, (A,), 2)) == BETWEEN_WINDOWS
    assert BEFORE_T0.is_fault
    assert LATE.is_fault
    assert not BETWEEN_WINDOWS.is_fault
