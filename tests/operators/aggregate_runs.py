"""Runs for the tests of aggregates, and a naive evaluation to compare against."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from math import isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from hypothesis import strategies as st

from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig
from rsp_engine.operators.aggregates.pane_partials import Function
from rsp_engine.operators.topk.contract import in_panes
from tests.operators.topk_runs import KEYS, WINDOWS, batched, frames

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats

FUNCTIONS = get_args(Function)

few_values = st.integers(-3, 3).map(float)
any_values = st.one_of(
    few_values,
    st.sampled_from([0.1, -0.1, 0.3, -0.0, 1e16, -1e16, 2.0**-1074, 2.0**60, -(2.0**60)]),
    st.floats(-1e300, 1e300),
)


class Arrival(NamedTuple):
    key: int
    position: int
    value: float


class Run(NamedTuple):
    """Batches that arrive, and remote values that are set, before each window closes."""

    config: AggregateTopkConfig
    frame: TimeFrame
    batches: list[list[list[Arrival]]]
    remote: list[dict[int, float]]
    has_remote: bool

    def operator(self) -> AggregateTopk:
        return AggregateTopk(self.config, joined if self.has_remote else None)

    def restored(self, operator: AggregateTopk) -> AggregateTopk:
        state = json.loads(json.dumps(operator.state()))
        return AggregateTopk.restored(self.config, state, joined if self.has_remote else None)

    def set_remote(self, operator: AggregateTopk, window: int) -> None:
        if self.has_remote:
            operator.change(list(self.remote[window]), list(self.remote[window].values()))

    def is_exact(self, naive: Naive, totals: dict[int, Any]) -> bool:
        """Return whether each remote value is known, or known to be missing."""
        return not self.has_remote or totals.keys() <= naive.remote.keys()


def joined(streaming: Floats, remote: Floats) -> Floats:
    return streaming - 2 * remote


@st.composite
def runs(draw: st.DrawFn, values: st.SearchStrategy[float] = few_values) -> Run:
    """Draw a run over time-based or count-based windows."""
    frame = draw(frames)
    least = draw(st.sampled_from((0, 10, 20)))
    positions = draw(st.lists(st.integers(-3, 30), min_size=least, max_size=30))
    if draw(st.booleans()):
        frame = TimeFrame(frame.range, frame.step, 0, "[)")
        positions = list(range(len(positions)))
    batches = [
        [[Arrival(*pair, draw(values)) for pair in part] for part in parts]
        for parts in draw(batched(frame, positions))
    ]
    function = draw(st.sampled_from(FUNCTIONS))
    config = AggregateTopkConfig(draw(st.integers(1, 3)), draw(st.integers(0, 2)), function)
    values_by_key = st.dictionaries(
        st.integers(0, KEYS - 1), st.sampled_from([0.0, 1.0, 2.0, nan]), max_size=4
    )
    remote = draw(st.lists(values_by_key, min_size=WINDOWS, max_size=WINDOWS))
    return Run(config, frame, batches, remote, draw(st.booleans()))


def feed(operator: AggregateTopk, frame: TimeFrame, part: list[Arrival]) -> None:
    """Feed a batch to an operator, pane by pane."""
    keys = np.array([arrival.key for arrival in part], dtype=np.int64)
    positions = np.array([arrival.position for arrival in part], dtype=np.int64)
    values = np.array([arrival.value for arrival in part], dtype=np.float64)
    for pane, places in in_panes(frame, positions):
        operator.arrive(pane, keys[places], positions[places], values[places])


class Naive:
    """A naive evaluation: it keeps all arrivals and aggregates lists."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.arrivals: list[tuple[Pane, Arrival]] = []
        self.remote: dict[int, float] = {}

    def feed(self, part: list[Arrival]) -> None:
        panes = [(self.run.frame.pane(arrival.position), arrival) for arrival in part]
        self.arrivals += [(pane, arrival) for pane, arrival in panes if pane]

    def totals(self, window: int, until: int) -> dict[int, tuple[float, int]]:
        """Return aggregates and latest positions of a window, from panes that begin by `until`."""
        groups: dict[int, list[Arrival]] = {}
        for pane, arrival in self.arrivals:
            if pane.first <= until and pane.first <= window <= pane.last:
                groups.setdefault(arrival.key, []).append(arrival)
        return {
            key: (
                aggregate(self.run.config.function, [a.value for a in group]),
                max(a.position for a in group),
            )
            for key, group in sorted(groups.items())
        }

    def counts(self, window: int) -> list[int]:
        """Return the number of arrivals of each key in a window."""
        inside = Counter(
            arrival.key for pane, arrival in self.arrivals if pane.first <= window <= pane.last
        )
        return [inside[key] for key in sorted(inside)]

    def ranked(self, window: int, until: int) -> list[tuple[float, int, int]]:
        """Return the scores, positions and keys of a window, best first."""
        found = []
        for key, (value, position) in self.totals(window, until).items():
            score = value
            if self.run.has_remote:
                score = value - 2 * self.remote.get(key, nan)
            if not isnan(score):
                found.append((score, position, key))
        return sorted(found, reverse=True)

    def listed(self, window: int, until: int) -> list[tuple[int, float, int, int]]:
        """Return the list as of a window: key, score there, and window marks."""
        marks: dict[int, list[int]] = {}
        for later in range(window, WINDOWS + 20):
            for _, _, key in self.ranked(later, until)[: self.run.config.size]:
                marks.setdefault(key, []).append(later)
        here = self.ranked(window, until)
        return [
            (key, score, min(marks[key]), max(marks[key])) for score, _, key in here if key in marks
        ]


def aggregate(function: str, values: list[float]) -> float:
    if function == "count":
        return float(len(values))
    if function in {"min", "max"}:
        return {"min": min, "max": max}[function](values) + 0.0
    total = float(sum(map(Fraction, values)))
    return total / len(values) if function == "avg" else total


def bits(values: Any) -> list[str]:
    return [float(value).hex() for value in values]
