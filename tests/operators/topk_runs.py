"""Streams for the tests of the top-k operators: tiny windows, with ties on purpose."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.topk.contract import TopkOperatorConfig, in_panes

WINDOWS = 14
KEYS = 8

frames = st.builds(
    TimeFrame,
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(-2, 2),
    st.sampled_from(["(]", "[)"]),
)


class Run(NamedTuple):
    """Batches of (key, position) before each window closes, and the score of each key.

    Positions may run ahead of the window that closes, and batches are cut anywhere.
    """

    config: TopkOperatorConfig
    frame: TimeFrame
    batches: list[list[list[tuple[int, int]]]]
    scores: list[float]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Draw a run over time-based or count-based windows."""
    frame = draw(frames)
    scores = draw(st.lists(st.integers(0, 5).map(float), min_size=KEYS, max_size=KEYS))
    # Hypothesis draws short lists unless it is told otherwise, in which little is dominated.
    least = draw(st.sampled_from((0, 10, 30)))
    positions = draw(st.lists(st.integers(-3, 30), min_size=least, max_size=40))
    if draw(st.booleans()):  # a count-based window: positions are consecutive
        frame = TimeFrame(frame.range, frame.step, 0, "[)")
        positions = list(range(len(positions)))
    return Run(
        TopkOperatorConfig(draw(st.integers(1, 4))), frame, draw(batched(frame, positions)), scores
    )


@st.composite
def batched(
    draw: st.DrawFn, frame: TimeFrame, positions: list[int]
) -> list[list[list[tuple[int, int]]]]:
    """Draw keys for positions, and cut them into batches before each window closes."""
    found = [(draw(st.integers(0, KEYS - 1)), position) for position in sorted(positions)]
    batches = []
    for window in range(WINDOWS):
        ahead = frame.interval(window).close + draw(st.integers(0, 4))
        now = draw(st.permutations([pair for pair in found if pair[1] <= ahead]))
        found = [pair for pair in found if pair[1] > ahead]
        cut = draw(st.integers(0, len(now)))
        batches.append([list(now[:cut]), list(now[cut:])])
    return batches


@st.composite
def late_runs(draw: st.DrawFn) -> Run:
    """Draw a run in which some arrivals are late: windows of theirs have closed."""
    run = draw(runs())
    waiting: list[tuple[int, int]] = []
    batches = []
    for parts in run.batches:
        now = [*waiting, *(pair for part in parts for pair in part)]
        late = draw(st.lists(st.booleans(), min_size=len(now), max_size=len(now)))
        waiting = [pair for pair, waits in zip(now, late, strict=True) if waits]
        batches.append([[pair for pair, waits in zip(now, late, strict=True) if not waits]])
    return run._replace(batches=batches)


def feed(operator: Any, part: list[tuple[int, int]], run: Run, closed: int = -1) -> None:
    """Feed a batch to an operator, pane by pane, restricted to open windows."""
    keys = np.array([key for key, _ in part], dtype=np.int64)
    positions = np.array([position for _, position in part], dtype=np.int64)
    scores = np.array(run.scores)[keys]
    for pane, places in in_panes(run.frame, positions):
        if pane.last > closed:
            still = Pane(max(pane.first, closed + 1), pane.last)
            operator.arrive(still, keys[places], positions[places], scores[places])
