"""Repeated observations count once, as triples do, and live as long as the last arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from rsp_engine.model.windows import Pane
from rsp_engine.operators.incomplete.eaa import EAA
from rsp_engine.operators.incomplete.observations import IncompleteOperatorConfig, as_observations
from rsp_engine.operators.incomplete.oracle import IncompleteOracle
from rsp_engine.operators.incomplete.sla import SLA
from tests.operators.incomplete.runs import Run, runs
from tests.operators.incomplete.test_exact import Eager, Narrow, checked
from tests.thoroughness import examples

if TYPE_CHECKING:
    from tests.operators.incomplete.runs import Seen

FAMILY: list[Any] = [IncompleteOracle, SLA, Narrow, EAA, Eager]


def feed(
    operator: Any, part: list[tuple[Pane, Seen]], ends: dict[tuple[int, int, float], int]
) -> None:
    """Feed observations with the end of their previous arrival, if a window holds both."""
    for pane, seen in sorted(part, key=lambda each: each[1].position):
        same = seen.stream, seen.key, seen.value
        since = ends.get(same, -1)
        if since >= pane.last:
            continue
        ends[same] = pane.last
        stream, key, position, value, _ = seen
        before = [since if since >= pane.first else -1]
        operator.arrive(pane, as_observations([stream], [key], [position], [value], before))


def scores(run: Run, window: int) -> dict[int, float]:
    """Return the scores of the objects of a window, each observation of which counts once."""
    config = run.config
    inside = {
        (seen.key, seen.stream, seen.value)
        for parts in run.parts[: window + 1]
        for part in parts
        for pane, seen in part
        if pane.first <= window <= pane.last
    }
    found = {}
    for key in {key for key, _, _ in inside}:
        by_stream: dict[int, list[float]] = {}
        for other, stream, value in inside:
            if other == key:
                by_stream.setdefault(stream, []).append(value)
        if all(stream in by_stream for stream in config.required):
            together = sum if config.repeats == "sum" else max
            attributes = [together(values) for values in by_stream.values()]
            found[key] = sum(attributes) if config.function == "sum" else max(attributes)
    return found


@pytest.mark.parametrize("made", FAMILY)
@examples(50)
@given(runs(keys=4, within="window"))
def test_a_repeated_observation_counts_once(made, run: Run):
    operator, ends = made(run.config), dict[tuple[int, int, float], int]()
    waiting: list[tuple[Pane, Seen]] = []
    for window, parts in enumerate(run.parts):
        waiting += [each for part in parts for each in part]
        feed(operator, [each for each in waiting if each[0].first <= window], ends)
        waiting = [each for each in waiting if each[0].first > window]
        found, expected = operator.close(window), scores(run, window)
        best = sorted(expected.values(), reverse=True)[: run.config.k]
        assert found.scores.tolist() == best
        assert [expected[key] for key in found.keys.tolist()] == best
        border = best[-1] if len(best) == run.config.k else -1
        assert set(operator.near().tolist()) == {k for k, s in expected.items() if s >= border}
        checked(operator)


@pytest.mark.parametrize("made", FAMILY)
def test_a_repeated_observation_lives_until_its_last_arrival_expires(made):
    """Value 1 of object 7 comes in the first pane and in the second.

    panes    | 1 | 1 |   |
    W0       (   1   ]            counts once
    W1           (   1   ]        and is still there
    """
    operator = made(IncompleteOperatorConfig(1, (1.0,), within="window"))
    operator.arrive(Pane(0, 0), as_observations([0], [7], [1], [1.0]))
    operator.arrive(Pane(0, 1), as_observations([0], [7], [2], [1.0], [0]))
    assert [operator.close(window).scores.tolist() for window in (0, 1, 2)] == [[1.0], [1.0], []]
