"""Streams joined with changing remote values, with a naive evaluation to compare against."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig
from tests.operators.topk_runs import KEYS, frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.operators.topk.contract import TopkAnswer

WINDOWS = 5

Arrival = tuple[int, int, float]
"""A key, a position and x_S."""


def plus(streaming: Any, remote: Any) -> Any:
    return streaming + remote


def least(streaming: Any, remote: Any) -> Any:
    """Is monotone in x_S, but not strictly."""
    return np.minimum(streaming, remote)


def around(streaming: Any, remote: Any) -> Any:
    """Is not monotone."""
    return (streaming - 2) * (remote - 2)


SCORES = {"plus": plus, "least": least, "around": around}


class Naive:
    """A naive evaluation: it keeps all arrivals and the current remote values, and scans them."""

    def __init__(self, score: Callable[[Any, Any], Any], remote: dict[int, float]) -> None:
        self.score = score
        self.remote = remote
        self.arrivals: list[tuple[Pane, int, int, float]] = []

    def arrive(self, pane: Pane, arrivals: list[Arrival]) -> None:
        self.arrivals += [(pane, *arrival) for arrival in arrivals]

    def change(self, changes: list[tuple[int, float]]) -> None:
        self.remote.update(changes)

    def ranking(self, window: int) -> list[tuple[int, float]]:
        """Return all keys of a window with their scores, best first."""
        latest: dict[int, tuple[int, float]] = {}
        for pane, key, position, streaming in self.arrivals:
            if pane.first <= window <= pane.last:
                latest[key] = max(latest.get(key, (position, streaming)), (position, streaming))
        scored = [
            (float(self.score(streaming, self.remote[key])), position, key)
            for key, (position, streaming) in latest.items()
        ]
        known = [found for found in scored if not math.isnan(found[0])]
        return [(key, score) for score, _, key in sorted(known, reverse=True)]


class Story(NamedTuple):
    """A sequence of steps: `arrive`, `change`, `settle` and `close`, each with its argument."""

    config: TopkNConfig
    frame: TimeFrame
    score: Callable[[Any, Any], Any]
    remote: list[float]
    steps: list[tuple[str, Any]]

    def naive(self) -> Naive:
        return Naive(self.score, dict(enumerate(self.remote)))

    def operator(self) -> TopkN:
        return TopkN(self.config, self.score)


few = st.integers(0, 4).map(float)
some = st.integers(0, 9).map(float)
narrow = st.builds(TimeFrame, st.integers(2, 6), st.integers(1, 3))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Draw a story: tiny windows, ties, late arrivals, unknown and vanishing remote values."""
    name = draw(st.sampled_from(["plus", "plus", "least", "around"]))
    k, n = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    frame = draw(st.one_of(narrow, frames))
    # An unknown value makes all answers of its windows inexact, so some stories have none.
    remotes = draw(st.sampled_from([some, some, st.one_of(some, some, st.just(math.nan))]))
    change = st.tuples(st.integers(0, KEYS - 1), remotes)
    steps: list[tuple[str, Any]] = []
    for window in range(WINDOWS):
        close = frame.interval(window).close
        near = st.integers(close - frame.range - 2, close + 3)
        arrival = st.tuples(st.integers(0, KEYS - 1), near, few)
        for moment in ("settle", "close"):
            for act in draw(st.lists(st.sampled_from(["arrive", "change"]), max_size=2)):
                items = st.lists(arrival if act == "arrive" else change, min_size=1, max_size=5)
                steps.append((act, draw(items)))
            if moment == "close" or draw(st.booleans()):
                steps.append((moment, window))
    config = TopkNConfig(k, n, is_monotone=name != "around")
    remote = draw(st.lists(remotes, min_size=KEYS, max_size=KEYS))
    return Story(config, frame, SCORES[name], remote, steps)


def open_panes(
    arrivals: list[Arrival], frame: TimeFrame, closed: int
) -> Iterator[tuple[Pane, list[Arrival]]]:
    """Group arrivals by pane, and yield the panes that have an open window."""
    panes: dict[Pane, list[Arrival]] = {}
    for arrival in arrivals:
        pane = frame.pane(arrival[1])
        if pane is not None and pane.last > closed:
            panes.setdefault(Pane(max(pane.first, closed + 1), pane.last), []).append(arrival)
    yield from panes.items()


def feed_joined(
    operator: TopkN, pane: Pane, arrivals: list[Arrival], remote: dict[int, float]
) -> None:
    """Feed arrivals of a pane to an operator, with the remote values of their keys."""
    keys, positions, streaming = (list(column) for column in zip(*arrivals, strict=True))
    operator.arrive(pane, keys, positions, streaming, [remote[key] for key in keys])


def replay(
    story: Story, operator: TopkN, after: Callable[[TopkN], TopkN] = lambda operator: operator
) -> Iterator[tuple[TopkAnswer, list[tuple[int, float]]]]:
    """Replay a story on an operator; yield each answer with the naive ranking of the window."""
    naive, closed = story.naive(), -1
    for name, argument in story.steps:
        if name == "arrive":
            for pane, arrivals in open_panes(argument, story.frame, closed):
                naive.arrive(pane, arrivals)
                feed_joined(operator, pane, arrivals, naive.remote)
        elif name == "change":
            naive.change(argument)
            operator.change([key for key, _ in argument], [value for _, value in argument])
        elif name == "settle":
            operator.settle(argument)
        else:
            yield operator.close(argument), naive.ranking(argument)
            closed = argument
        operator = after(operator)
