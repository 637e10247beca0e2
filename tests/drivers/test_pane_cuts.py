"""The cuts of a split into panes, against the pane of each instant by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.drivers.splits.pushdown import Pushdown
from rsp_engine.drivers.splits.split_reducer import PaneCuts
from rsp_engine.model.windows import TimeFrame
from tests.thoroughness import examples


@st.composite
def frames(draw: st.DrawFn) -> list[TimeFrame]:
    """Draw windows of two steps at most, so that many cut a stream at some of the same instants."""
    steps = st.sampled_from(draw(st.lists(st.integers(1, 6), min_size=1, max_size=2)))
    bounds = st.sampled_from(("(]", "[)"))
    each = st.builds(TimeFrame, st.integers(1, 12), steps, st.sampled_from((0, 2)), bounds)
    return draw(st.lists(each, min_size=1, max_size=4))


@examples(200)
@given(
    frames(),
    st.lists(st.integers(3, 40), min_size=1, max_size=20),
    st.data(),
)
def test_every_instant_is_in_the_panes_of_its_windows(
    framed: list[TimeFrame], times: list[int], data: st.DataObject
) -> None:
    inner = data.draw(st.sets(st.integers(1, len(times))))
    edges = sorted({0, *inner, len(times)})
    cuts = PaneCuts(np.array(times), edges)
    readers = [Pushdown(number, 0, frame, None) for number, frame in enumerate(framed)]
    found = {
        (reader.step, index): pane
        for segment, indices, shared in cuts.shared(readers)
        for reader, pane in shared
        for index in indices.tolist()
        if edges[segment] <= index < edges[segment + 1]
    }
    panes = {(n, i): frame.pane(at) for n, frame in enumerate(framed) for i, at in enumerate(times)}
    assert found == {place: pane for place, pane in panes.items() if pane is not None}
    taken = [any(frame.pane(at) is not None for frame in framed) for at in times]
    assert cuts.taken.tolist() == taken
