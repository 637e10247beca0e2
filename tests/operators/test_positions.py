"""Positions are in the order of time and then of text, whatever the batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.operators.scoring.positions import LatestPositions, Positions, instants
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.arrays import Integers

Arrival = tuple[int, str]


class Known:
    """All arrivals so far, with their positions."""

    def __init__(self) -> None:
        self.positions = Positions()
        self.of: dict[Arrival, int] = {}

    def take(self, *batch: Arrival) -> Integers:
        arrivals = sorted(batch)
        times = np.array([time for time, _ in arrivals], dtype=np.int64)
        found = self.positions.of(times, lambda place: arrivals[place][1], self._at)
        self.of.update(zip(arrivals, found.tolist(), strict=True))
        return found

    def _at(self, times: Integers) -> Iterator[tuple[str, int]]:
        wanted = set(times.tolist())
        return ((text, at) for (time, text), at in self.of.items() if time in wanted)

    def in_order(self) -> list[Arrival]:
        return sorted(self.of, key=lambda arrival: self.of[arrival])


arrivals = st.tuples(st.integers(-3, 3), st.text("abc", max_size=3))


@examples(100)
@given(st.lists(st.lists(arrivals, max_size=8), max_size=8))
def test_positions_are_in_the_order_of_time_and_text_in_whatever_batches(batches):
    known = Known()
    for batch in batches:
        known.take(*batch)
        assert not known.positions.is_crowded
    assert known.in_order() == sorted(known.of)
    assert len(set(known.of.values())) == len(known.of)
    for (time, _), position in known.of.items():
        assert instants(np.array([position])).tolist() == [time]


@pytest.mark.parametrize("step", [1, -1])
def test_there_is_room_for_many_late_arrivals_of_one_instant(step):
    known = Known()
    known.take((5, "m0500"), (6, "a"))
    for number in range(500 + step, 500 + 400 * step, step):
        known.take((5, f"m{number:04}"))
        assert not known.positions.is_crowded
    assert known.in_order() == sorted(known.of)


def test_an_instant_without_free_slots_is_reported_and_keeps_the_others_in_order():
    known = Known()
    known.take((5, "a"), (5, "z"), (6, "a"))
    text = "b"
    while not known.positions.is_crowded:
        known.take((5, text))
        text += "b"  # each comes after the last, and before z
    assert len(text) > 15
    assert known.of[5, "a"] < known.of[5, text[:-2]] <= known.of[5, "z"] < known.of[6, "a"]
    known.take((7, "a"))
    assert not known.positions.is_crowded


def test_more_arrivals_than_an_instant_has_slots_stay_in_order():
    times = np.full((1 << 20) + 5, -4)
    positions = Positions()
    found = positions.of(times, str, lambda _: ())
    assert positions.is_crowded
    assert (np.diff(found) >= 0).all()
    assert set(instants(found).tolist()) == {-4}
    assert positions.of(np.array([-3]), str, lambda _: ())[0] > found[-1]


def test_times_that_are_too_far_from_1970_are_reported_as_crowded():
    positions = Positions()
    found = positions.of(np.array([-(1 << 50), 0, 1 << 50]), str, lambda _: ())
    assert positions.is_crowded
    assert (np.diff(found) > 0).all()


def test_peers_from_before_a_state_are_requested_after_it_is_restored():
    known, latest = Known(), LatestPositions()
    found = known.take((5, "a"), (5, "c"))
    latest.note([1, 2], found.tolist())
    again, known.positions = known.positions.state(), Positions()
    known.positions.restore(again)
    restored = LatestPositions()
    restored.restore(latest.state())
    assert list(restored.at(np.array([5]))) == list(latest.at(np.array([5])))
    known.take((5, "b"))
    assert known.in_order() == [(5, "a"), (5, "b"), (5, "c")]
