"""Observations of incomplete streams that respect the configuration: tiny windows, many ties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hypothesis import strategies as st

from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.incomplete.observations import IncompleteOperatorConfig, as_observations
from tests.operators.topk_runs import frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.operators.incomplete.observations import ScoreAggregate

Within = Literal["life", "window"]
WINDOWS = 14


class Seen(NamedTuple):
    """An observation, and the window after which it arrives: it may be late."""

    stream: int
    key: int
    position: int
    value: float
    told: int


class Run(NamedTuple):
    """The observations that arrive before each window closes, in several parts."""

    config: IncompleteOperatorConfig
    frame: TimeFrame
    parts: list[list[list[tuple[Pane, Seen]]]]


@st.composite
def configs(
    draw: st.DrawFn, within: Literal["life", "window"] | None = None
) -> IncompleteOperatorConfig:
    d = draw(st.integers(1, 5))
    functions: list[tuple[ScoreAggregate, ScoreAggregate]] = [
        ("sum", "sum"),
        ("sum", "max"),
        ("max", "max"),
    ]
    function, repeats = draw(st.sampled_from(functions))
    if within is None:
        within = draw(st.sampled_from(["life", "window"]))
    assert within is not None
    required = (0,) if within == "window" and draw(st.booleans()) else ()
    highs = tuple(draw(st.sampled_from([1.0, 2.0, 0.5])) for _ in range(d))
    most = tuple(draw(st.sampled_from([1, 1, 2, 3])) for _ in range(d))
    k = draw(st.integers(1, 4))
    return IncompleteOperatorConfig(k, highs, most, function, repeats, required, within)


@st.composite
def runs(draw: st.DrawFn, *, keys: int = 8, within: Literal["life", "window"] | None = None) -> Run:
    """Draw a run over windows of time, or over windows that count all streams together."""
    config, frame = draw(configs(within)), draw(frames)
    least = draw(st.sampled_from((0, 15, 40)))
    positions = sorted(draw(st.lists(st.integers(-3, 30), min_size=least, max_size=60)))
    if draw(st.booleans()):
        frame = TimeFrame(frame.range, frame.step, 0, "[)")
        positions = list(range(len(positions)))
    late = draw(st.sampled_from([0, 0, 2]))
    found: list[tuple[Pane, Seen]] = []
    for position in positions:
        stream, key = draw(st.integers(0, config.streams - 1)), draw(st.integers(0, keys - 1))
        value = config.highs[stream] * draw(st.integers(0, 4)) / 4
        pane = frame.pane(position)
        if pane is None or not is_kept(config, frame, found, (stream, key, position)):
            continue
        ahead = draw(st.integers(-4, late))
        told = max(pane.first + ahead, 0)
        if told <= pane.last:
            inside = Pane(max(pane.first, told), pane.last)
            found.append((inside, Seen(stream, key, position, value, told)))
    return Run(config, frame, draw(cut(found)))


def is_kept(
    config: IncompleteOperatorConfig,
    frame: TimeFrame,
    found: list[tuple[Pane, Seen]],
    new: tuple[int, int, int],
) -> bool:
    """Return whether one more observation respects the configured number of occurrences."""
    stream, key, position = new
    since = position - frame.range if config.within == "window" else -1000
    before = [s for _, s in found if (s.stream, s.key) == (stream, key) and s.position > since]
    return len(before) < config.most[stream]


@st.composite
def cut(draw: st.DrawFn, found: list[tuple[Pane, Seen]]) -> list[list[list[tuple[Pane, Seen]]]]:
    """Cut observations into batches before each window closes, in any order."""
    batches = []
    for window in range(WINDOWS):
        now = draw(st.permutations([each for each in found if each[1].told == window]))
        place = draw(st.integers(0, len(now)))
        batches.append([list(now[:place]), list(now[place:])])
    return batches


def feed(operator: Any, part: list[tuple[Pane, Seen]]) -> None:
    """Give a batch to an operator, pane by pane."""
    for pane, batch in in_panes(part):
        operator.arrive(pane, batch)


def in_panes(part: list[tuple[Pane, Seen]]) -> Iterator[tuple[Pane, Any]]:
    for pane in dict.fromkeys(pane for pane, _ in part):
        columns = zip(*(seen[:4] for at, seen in part if at == pane), strict=True)
        yield pane, as_observations(*map(list, columns))


def brute_force(run: Run, window: int) -> list[tuple[float, int, int]]:
    """Return the score, the last arrival and the key of all objects of a window, best first."""
    config = run.config
    inside = [
        seen
        for parts in run.parts[: window + 1]
        for part in parts
        for pane, seen in part
        if pane.first <= window <= pane.last
    ]
    found = []
    for key in {seen.key for seen in inside}:
        mine = [seen for seen in inside if seen.key == key]
        attributes = []
        for stream in range(config.streams):
            values = [seen.value for seen in mine if seen.stream == stream]
            if values:
                attributes.append(sum(values) if config.repeats == "sum" else max(values))
            elif stream in config.required:
                break
        else:
            score = sum(attributes) if config.function == "sum" else max(attributes)
            found.append((score, max(seen.position for seen in mine), key))
    return sorted(found, reverse=True)
