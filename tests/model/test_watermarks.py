"""Watermarks: they follow the largest timestamp, wait for the slowest stream, and never fall."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.watermarks import Watermarks

STREAMS = ("a", "b", "c")
timestamps = st.integers(-50, 50)
sightings = st.lists(st.tuples(st.sampled_from(STREAMS), timestamps), max_size=20)


@given(st.lists(timestamps, min_size=1), st.integers(0, 9))
def test_the_watermark_of_a_stream_is_its_largest_timestamp_less_the_delay(seen, max_delay):
    marks = Watermarks(["a"], max_delay)
    for timestamp in seen:
        marks.see("a", timestamp)
    assert marks.of(["a"]) == max(seen) - max_delay


@given(sightings, st.integers(0, 9))
def test_a_query_has_the_least_watermark_of_its_streams(seen, max_delay):
    marks = Watermarks(STREAMS, max_delay)
    for stream, timestamp in seen:
        marks.see(stream, timestamp)
    each = {s: max((t - max_delay for x, t in seen if x == s), default=-inf) for s in STREAMS}
    assert marks.of(["a", "b"]) == min(each["a"], each["b"])
    assert marks.of(STREAMS) == min(each.values())


@given(sightings)
def test_seeing_an_element_returns_whether_the_watermark_of_its_stream_rises(seen):
    marks = Watermarks(STREAMS)
    for stream, timestamp in seen:
        before = marks.of([stream])
        assert marks.see(stream, timestamp) == (marks.of([stream]) > before)


@given(st.lists(st.tuples(st.sampled_from(STREAMS), timestamps, st.booleans())))
def test_a_watermark_never_falls(events):
    marks = Watermarks(STREAMS, max_delay=3)
    for stream, timestamp, is_element in events:
        before = {s: marks.of([s]) for s in STREAMS}, marks.of(STREAMS)
        if is_element:
            marks.see(stream, timestamp)
        else:
            marks.raise_to(stream, timestamp)
        assert all(marks.of([s]) >= before[0][s] for s in STREAMS)
        assert marks.of(STREAMS) >= before[1]


def test_a_stream_without_elements_has_no_watermark():
    marks = Watermarks(STREAMS)
    marks.see("a", 10)
    assert marks.of(["a"]) == 10
    assert marks.of(["b"]) == -inf
    assert marks.of(["a", "b"]) == -inf


def test_a_stream_that_has_ended_does_not_hold_back_the_watermark():
    """a   1 --- 5 |
    b   2 ------------ 9    once a has ended, the watermark is that of b
    """
    marks = Watermarks(["a", "b"])
    marks.see("a", 5)
    marks.see("b", 2)
    assert marks.of(["a", "b"]) == 2
    marks.end("a")
    marks.see("b", 9)
    assert marks.of(["a", "b"]) == 9
    marks.end("b")
    assert marks.of(["a", "b"]) == inf


def test_a_watermark_can_be_set_and_only_rises():
    marks = Watermarks(["a"], max_delay=5)
    marks.raise_to("a", 20)
    marks.raise_to("a", 10)
    marks.see("a", 22)
    assert marks.of(["a"]) == 20
    marks.see("a", 26)
    assert marks.of(["a"]) == 21


def test_an_idle_stream_does_not_hold_back_the_watermark():
    """now       0     10    20    30
    a         5     6           90
    b         5     .     .     .      b is idle from 10 on (idle_timeout 10)
    """
    marks = Watermarks(["a", "b"], idle_timeout=10)
    marks.see("a", 5, now=0)
    marks.see("b", 5, now=0)
    marks.see("a", 6, now=10)
    assert marks.of(["a", "b"], now=10) == 5
    assert marks.of(["a", "b"], now=11) == 6
    marks.see("a", 90, now=30)
    assert marks.of(["a", "b"], now=30) == 90


def test_if_all_streams_are_idle_the_largest_watermark_counts():
    marks = Watermarks(["a", "b"], idle_timeout=10)
    marks.see("a", 5, now=0)
    marks.see("b", 8, now=0)
    assert marks.of(["a", "b"], now=10) == 5
    assert marks.of(["a", "b"], now=100) == 8


def test_a_stream_that_is_active_again_is_waited_for_again():
    marks = Watermarks(["a", "b"], idle_timeout=10)
    marks.see("a", 50, now=0)
    marks.see("b", 5, now=0)
    assert marks.of(["a", "b"], now=20) == 50
    marks.see("a", 60, now=20)
    marks.see("b", 55, now=20)
    assert marks.of(["a", "b"], now=20) == 55


def test_without_an_idle_timeout_every_stream_is_waited_for():
    marks = Watermarks(["a", "b"])
    marks.see("a", 50, now=1_000_000)
    marks.see("b", 5, now=0)
    assert marks.of(["a", "b"], now=1_000_000) == 5


def test_the_watermark_of_a_query_does_not_fall_when_an_idle_stream_is_active_again():
    """now   0     20    21
    a     50
    b     5           6     at 20 b is idle, and windows up to 50 are closed: there is no way back
    """
    marks = Watermarks(["a", "b"], idle_timeout=10)
    marks.see("a", 50, now=15)
    marks.see("b", 5, now=0)
    assert marks.of(["a", "b"], now=20) == 50
    marks.see("b", 6, now=21)
    assert marks.of(["a", "b"], now=21) == 50


def test_an_ended_stream_does_not_close_all_windows_while_another_is_only_idle():
    marks = Watermarks(["a", "b"], idle_timeout=10)
    marks.see("a", 50, now=0)
    marks.see("b", 5, now=0)
    marks.end("a")
    assert marks.of(["a", "b"], now=100) == 5


def test_a_stream_is_not_idle_before_its_first_timeout():
    marks = Watermarks(["a", "b"], idle_timeout=10)
    assert marks.of(["a", "b"], now=0) == -inf
    marks.see("a", 50, now=1)
    assert marks.of(["a", "b"], now=1) == -inf
    assert marks.of(["a", "b"], now=11) == 50


def test_a_negative_delay_is_refused():
    with pytest.raises(ValueError, match="must not be negative"):
        Watermarks(["a"], max_delay=-1)
