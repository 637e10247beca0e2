"""Windows and panes against their definition: window i is (t0 + i*b, t0 + i*b + w]."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.answers import Interval
from rsp_engine.model.windows import CountFrame, Pane, TimeFrame

FAR = 60
"""An index beyond all windows that contain one of the tested instants."""

bounds = st.sampled_from(("(]", "[)"))
frames = st.builds(TimeFrame, st.integers(1, 9), st.integers(1, 9), st.integers(-9, 9), bounds)
instants = st.integers(-20, 40)


def holds(frame: TimeFrame, index: int, instant: int) -> bool:
    start = frame.t0 + index * frame.step
    if frame.bounds == "(]":
        return start < instant <= start + frame.range
    return start <= instant < start + frame.range


def windows_of(frame: TimeFrame, instant: int) -> list[int]:
    return [index for index in range(FAR) if holds(frame, index, instant)]


def listed(pane: Pane | None) -> list[int]:
    return [] if pane is None else [*range(pane.first, pane.last + 1)]


@given(frames, instants)
def test_the_pane_of_an_instant_names_exactly_the_windows_that_hold_it(frame, instant):
    assert listed(frame.pane(instant)) == windows_of(frame, instant)


@given(frames, st.integers(0, FAR))
def test_a_window_starts_at_a_step_and_lasts_its_range(frame, index):
    interval = frame.interval(index)
    assert interval.open == frame.t0 + index * frame.step
    assert interval.close - interval.open == frame.range


@given(frames, instants)
def test_an_instant_in_no_window_is_before_t0_or_between_two_windows(frame, instant):
    """[RANGE 2 STEP 5]    t0 (----] . . . (----] . . .    the dots are between two windows."""
    first_ever = frame.t0 + 1 if frame.bounds == "(]" else frame.t0
    assert frame.is_before_t0(instant) == (instant < first_ever)
    if frame.range >= frame.step:
        assert (frame.pane(instant) is None) == frame.is_before_t0(instant)


@given(frames, instants)
def test_a_pane_is_what_lies_between_two_neighbouring_edges(frame, instant):
    """All its instants are in the same windows, and its neighbours are not.

    [RANGE 5 STEP 3]   0     3     6     9
                       (---------]
                             (---------]
                                   (---------]
    panes                    | 4 5 |6|7 8|9|
    """
    pane = frame.pane(instant)
    if pane is None:
        return
    edges = frame.edges(pane)
    shift = 0 if frame.bounds == "(]" else -1
    inside = range(edges.open + 1 + shift, edges.close + 1 + shift)
    assert instant in inside
    assert {frame.pane(other) for other in inside} == {pane}
    assert pane not in (frame.pane(inside[0] - 1), frame.pane(inside[-1] + 1))


@given(frames, instants, instants)
def test_panes_are_ordered_as_their_instants_are(frame, one, other):
    earlier, later = frame.pane(min(one, other)), frame.pane(max(one, other))
    if earlier is not None and later is not None:
        assert earlier <= later


@given(frames, instants)
def test_a_window_is_closed_when_the_watermark_is_past_its_last_instant(frame, watermark):
    """`(o, c]` when the watermark is more than c, `[o, c)` when it is at least c."""
    closed = [
        index
        for index in range(FAR)
        if (close := frame.t0 + index * frame.step + frame.range) < watermark
        or (close == watermark and frame.bounds == "[)")
    ]
    assert max(frame.last_closed(watermark), -1) == max(closed, default=-1)


@given(frames, instants)
def test_no_window_is_closed_that_holds_an_instant_at_the_watermark(frame, instant):
    pane = frame.pane(instant)
    if pane is not None:
        assert frame.last_closed(instant) < pane.first


@given(frames)
def test_nothing_is_closed_before_anything_and_all_is_closed_at_the_end(frame):
    assert frame.last_closed(-inf) == -inf
    assert frame.last_closed(inf) == inf


def test_windows_are_open_on_the_left_and_closed_on_the_right_by_default():
    """t0 = 1    1     4     7     10    13
    (-----------------]
          (-----------------]        10 is in both with `(]`,
    [-----------------)
          [-----------------)        and in the second alone with `[)`
    """
    assert TimeFrame(9, 3, t0=1).pane(10) == Pane(0, 2)
    assert TimeFrame(9, 3, t0=1, bounds="[)").pane(10) == Pane(1, 3)
    assert TimeFrame(9, 3, t0=1).interval(1) == Interval(4, 13)


@pytest.mark.parametrize(("size", "step"), [(0, 1), (1, 0), (-1, 1), (1, -1)])
def test_a_window_that_never_holds_or_never_moves_is_refused(size, step):
    for kind in (TimeFrame, CountFrame):
        with pytest.raises(ValueError, match="more than zero"):
            kind(size, step)
