"""Scans of count windows, compared with slices of the ordered stream."""

from __future__ import annotations

import json
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Triple

from rsp_engine.model.answers import Interval
from rsp_engine.model.windows import CountFrame, Pane
from rsp_engine.operators.windows.count_windows import CountedScan, CountScan
from rsp_engine.operators.windows.scan import PASSED
from tests.operators.streams import A, B, C, D, Taken, streams

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers

Closed = tuple[Interval, set[Triple]]
sizes = st.integers(1, 5)
frames = st.builds(CountFrame, sizes, sizes, st.sampled_from(("ELEMENTS", "ROWS", "TRIPLES")))


def in_order(frame: CountFrame, taken: list[Taken]) -> list[tuple[int, frozenset[Triple]]]:
    """Return the items in time order, and in term order where times are equal."""
    found = [(e.timestamp, sorted(set(e.triples), key=str)) for e in taken]
    found.sort(key=lambda element: (element[0], [*map(str, element[1])]))
    if frame.unit == "TRIPLES":
        return [(time, frozenset([triple])) for time, triples in found for triple in triples]
    return [(time, frozenset(triples)) for time, triples in found]


def windows(frame: CountFrame, taken: list[Taken], *, is_over: bool) -> list[Closed]:
    """Return the full windows, or at the end of the stream all windows with content."""
    things = in_order(frame, taken)
    cut = [things[start : start + frame.size] for start in range(0, len(things), frame.step)]
    return [
        (Interval(window[0][0], window[-1][0]), {triple for _, part in window for triple in part})
        for window in cut
        if is_over or len(window) == frame.size
    ]


def closed_windows(scan: CountScan) -> list[Closed]:
    """Close what can be closed, one by one."""
    found = []
    while (coming := scan.next(skip_empty=False)) is not None:
        scan.close(coming[0])
        content = {triple for _, part in scan.content() for triple in part}
        assert scan.interval().close == coming[1]
        found.append((scan.interval(), content))
    return found


@given(frames, streams())
def test_windows_are_slices_of_the_stream_and_at_the_end_the_last_may_be_short(frame, taken):
    scan = CountScan(frame)
    found = []
    for element in taken:
        scan.settle(element.watermark)
        found += closed_windows(scan)
        assert scan.take(*element) is None
    scan.settle(inf)
    assert found + closed_windows(scan) == windows(frame, taken, is_over=True)


@given(frames, streams())
def test_beside_other_windows_only_full_ones_are_closed(frame, taken):
    scan = CountScan(frame, closes_partial=False)
    for element in taken:
        scan.take(*element)
    scan.settle(inf)
    assert closed_windows(scan) == windows(frame, taken, is_over=False)


@given(frames, streams(), st.randoms())
def test_the_order_of_reading_does_not_matter(frame, taken, chance):
    one, other = CountScan(frame), CountScan(frame)
    for element in taken:
        one.take(element.timestamp, element.triples, -inf)
    shuffled = list(taken)
    chance.shuffle(shuffled)
    for element in shuffled:
        other.take(element.timestamp, element.triples, -inf)
    one.settle(inf)
    other.settle(inf)
    assert closed_windows(one) == closed_windows(other)


@given(frames, streams(max_delay=3))
def test_an_element_before_the_watermark_is_late(frame, taken):
    scan = CountScan(frame)
    kept = []
    for element in taken:
        refusal = scan.take(*element)
        assert refusal == (PASSED if element.timestamp < element.watermark else None)
        if refusal is None:
            kept.append(element)
        scan.settle(element.watermark)
    scan.settle(inf)
    assert closed_windows(scan) == windows(frame, kept, is_over=True)


@given(frames, streams())
def test_only_elements_of_open_windows_are_kept(frame, taken):
    scan = CountScan(frame)
    for element in taken:
        scan.take(*element)
    scan.settle(inf)
    while (coming := scan.next(skip_empty=False)) is not None:
        scan.close(coming[0])
        assert len(scan._settled) == len(in_order(frame, taken)) - scan.closed * frame.step


@given(frames, streams())
def test_the_last_content_is_where_the_last_window_closes_that_holds_an_element(frame, taken):
    """[ELEMENTS 1 STEP 3]    A . . B .    the last element is in no window: it does not count."""
    scan = CountScan(frame)
    for element in taken:
        scan.take(*element)
    scan.settle(inf)
    found = windows(frame, taken, is_over=True)
    assert scan.last_content() == (found[-1][0].close if found else -inf)


def test_elements_of_one_instant_are_in_term_order_and_wait_until_it_is_over():
    """[ELEMENTS 2]    read at 5: D B A, then C at 6    windows: A B | D C."""
    scan = CountScan(CountFrame(2, 2))
    for triple in (D, B, A):
        scan.take(5, (triple,), 5)
    scan.settle(5)
    assert scan.next(skip_empty=False) is None
    scan.take(6, (C,), 6)
    scan.settle(6)
    assert closed_windows(scan) == [(Interval(5, 5), {A, B})]
    scan.settle(inf)
    assert closed_windows(scan) == [(Interval(5, 6), {D, C})]


def test_a_triple_that_is_written_twice_in_an_element_counts_once():
    scan = CountScan(CountFrame(2, 2, "TRIPLES"))
    scan.take(1, (A, A), 1)
    scan.take(2, (B,), 2)
    scan.settle(inf)
    assert closed_windows(scan) == [(Interval(1, 2), {A, B})]


Seen = list[tuple[Pane, Any]]
"""The panes read so far, with their triples and the numbers of their elements."""


class Looking:
    """A matcher that finds every triple, and the number of its element."""

    def match(self, triples: list[Triple], numbers: Integers, now: int, sizes: list[int]) -> Any:
        assert sizes == list(Counter(numbers.tolist()).values())
        return list(zip(triples, numbers.tolist(), strict=True))


def looked_at(scan: CountedScan, held: Seen) -> list[tuple[Interval, set[Triple], set[int]]]:
    """Close all due windows, read each pane once, and return the contents of the windows."""
    found = []
    while (coming := scan.next(skip_empty=False)) is not None:
        scan.close(coming[0])
        held += scan.fresh(Looking(), 0)  # type: ignore[arg-type]
        assert not [*scan.content()], "what was looked at is forgotten"
        assert all(held[n][0] < held[n + 1][0] for n in range(len(held) - 1)), "panes are in order"
        alive = [seen for pane, seen in held if pane.first <= scan.closed <= pane.last]
        triples = {triple for seen in alive for triple, _ in seen}
        numbers = {number for seen in alive for _, number in seen}
        found.append((scan.interval(), triples, numbers))
    return found


@given(frames, streams())
def test_the_panes_of_a_window_hold_what_the_window_holds(frame, taken):
    scan = CountedScan(frame)
    found, held = [], Seen()
    for element in taken:
        scan.settle(element.watermark)
        found += looked_at(scan, held)
        scan.take(*element)
        scan.restore(json.loads(json.dumps(scan.state())))
    scan.settle(inf)
    found += looked_at(scan, held)
    assert [window[:2] for window in found] == windows(frame, taken, is_over=True)
    for index, (_, _, numbers) in enumerate(found):
        assert numbers <= {*range(index * frame.step, index * frame.step + frame.size)}


@given(frames, streams())
def test_of_panes_that_were_read_only_the_edges_of_windows_are_kept(frame, taken):
    scan = CountedScan(frame)
    for element in taken:
        scan.take(*element)
    scan.settle(inf)
    looked_at(scan, [])
    assert len(scan._edges) <= 2 * (-(-frame.size // frame.step) + 1) + 1


@given(frames, streams(max_delay=3))
def test_a_window_is_news_no_later_than_it_can_be_closed(frame, taken):
    """Without news, no watermark before the end of the stream closes a window."""
    scan = CountScan(frame)
    for element in taken:
        scan.take(*element)
        if not scan.has_news:
            again = CountScan(frame)
            again.restore(scan.state())
            again.settle(1_000)
            assert again.next(skip_empty=False) is None
        else:
            scan.has_news = False
            scan.settle(element.watermark)
            closed_windows(scan)
