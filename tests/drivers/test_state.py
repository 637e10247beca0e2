"""States that do not fit, or are damaged, are refused: never restored in part, or elsewhere."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest

from rsp_engine.drivers.intake import Intake
from rsp_engine.errors import StateError
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import check
from rsp_engine.io.sources.memory import MemorySource
from rsp_engine.options import RankingOptions, ServiceOptions, WindowOptions
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from tests.evaluators.served_shapes import EX, SERVICE
from tests.evaluators.test_served import store

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERIES = {
    "panes": "SELECT ?s ?n {w} WHERE {{ WINDOW :w {{ ?s :p ?n }} }}",
    "other name": "REGISTER ISTREAM :q AS SELECT ?s ?n {w} WHERE {{ WINDOW :w {{ ?s :p ?n }} }}",
    "general": "SELECT ?s ?n {w} WHERE {{ WINDOW :w {{ ?s :p ?n . ?s :q ?m }} }}",
    "ranked": "SELECT ?s ?n {w} WHERE {{ WINDOW :w {{ ?s :p ?n }} }} ORDER BY DESC(?n) LIMIT 2",
    "groups": "SELECT ?s (SUM(?n) AS ?x) {w} WHERE {{ WINDOW :w {{ ?s :p ?n }} }} "
    "GROUP BY ?s ORDER BY DESC(?x) LIMIT 2",
    "count": "SELECT ?s ?n {c} WHERE {{ WINDOW :w {{ ?s :p ?n . ?s :q ?m }} }}",
    "ranked count": "SELECT ?s ?n {c} WHERE {{ WINDOW :w {{ ?s :p ?n }} }} "
    "ORDER BY DESC(?n) LIMIT 2",
    "construct": "REGISTER DSTREAM :r AS CONSTRUCT {{ ?s :has [ :n ?n ] }} {w} "
    "WHERE {{ WINDOW :w {{ ?s :p ?n }} }}",
    "joined": "SELECT ?s ?n ?f {w} WHERE {{ WINDOW :w {{ ?s :p ?n }} "
    "SERVICE :svc {{ ?s :followers ?f }} }} ORDER BY DESC(?f + ?n) LIMIT 2",
    "joined groups": "SELECT ?s (COUNT(*) + ?f AS ?x) {w} WHERE {{ WINDOW :w {{ ?s :p ?n }} "
    "SERVICE :svc {{ ?s :followers ?f }} }} GROUP BY ?s ?f ORDER BY DESC(?x) LIMIT 2",
    "served": "SELECT ?s ?n ?f {w} WHERE {{ WINDOW :w {{ ?s :p ?n . ?s :q ?m }} "
    "SERVICE :svc {{ ?s :followers ?f }} }}",
}
FRAMES = {
    "w": "FROM NAMED WINDOW :w ON :s [RANGE 4s STEP 2s]",
    "c": "FROM NAMED WINDOW :w ON :s [ELEMENTS 3 STEP 1]",
}


def planned(text: str, **options: Any) -> Any:
    """Return the physical plan of a query; it can be run many times."""
    endpoints: Any = {
        SERVICE: lambda pattern: InProcessEndpoint(pattern, store(":a :followers 1 ."))
    }
    feeds = frozenset({SERVICE}) if "SERVICE" in text else frozenset()
    text = f"PREFIX : <{EX}> {text.format(**FRAMES)}"
    chosen = QueryOptions(**{"endpoints": endpoints, "feeds": feeds, **options})
    return plan(check(text), text, "<query>", chosen).physical


@cache
def plan_of(name: str) -> Any:
    return planned(QUERIES[name])


def step_of(text: str, **options: Any) -> Step:
    return Step(planned(text, **options))


def fed(step: Step) -> Step:
    """Let a step take elements and answer once or twice."""
    pairs = [(1000 * at, f"<{EX}{s}> <{EX}p> {at} ; <{EX}q> 2 .") for at, s in enumerate("abcaba")]
    for element_ in MemorySource(pairs):
        step.take(f"{EX}s", element_.timestamp, element_.triples, element_.timestamp)  # type: ignore[union-attr]
        if len(step.streams) > 1:
            changed = ox.Triple(
                ox.NamedNode(f"{EX}b"), ox.NamedNode(f"{EX}followers"), ox.Literal(3)
            )
            step.take(step.streams[1], 9000, [changed], 0)
        list(step.due(element_.timestamp))  # type: ignore[union-attr]
    return step


def paths(state: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a state."""
    found = []
    pairs = state.items() if isinstance(state, dict) else enumerate(state)
    for name, value in pairs:
        found.append((*at, name))
        if isinstance(value, dict | list):
            found += paths(value, (*at, name))
    return found


OPTIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "without a feed": {"feeds": frozenset()},
    "judged": {"ranking": RankingOptions(oracle=True)},
    "of few keys": {"services": ServiceOptions(capacity=1)},
    "of keys that change as is said": {"services": ServiceOptions(change_interval=9)},
    "that learns": {
        "services": ServiceOptions(policy="AT-VOI"),
        "modified": {SERVICE: f"{EX}modified"},
    },
}


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        *((name, "as it is") for name in QUERIES),
        *(("joined", chosen) for chosen in OPTIONS if chosen != "as it is"),
    ],
)
def test_a_state_with_any_part_missing_is_refused(name, chosen):
    """Whatever is missing, it is a `StateError` that says so, and no other."""
    made = planned(QUERIES[name], **OPTIONS[chosen])
    state = json.loads(json.dumps(fed(Step(made)).state()))
    Step(made).restore(state)
    wanted = [at for at in paths(state) if isinstance(at[-1], str)]
    assert len(wanted) > 15
    for at in wanted:
        damaged = deepcopy(state)
        part = damaged
        for name_ in at[:-1]:
            part = part[name_]
        del part[at[-1]]
        with pytest.raises(StateError):
            Step(made).restore(damaged)


@pytest.mark.parametrize("name", QUERIES)
def test_a_text_that_is_no_term_is_refused(name):
    text = QUERIES[name]
    state = json.dumps(fed(step_of(text)).state())
    damaged = json.loads(state.replace(f"<{EX}a>", f"<{EX}a> <"))
    if damaged == json.loads(state):
        pytest.skip("its windows hold no such term")
    with pytest.raises(StateError, match="damaged"):
        step_of(text).restore(damaged)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("other", QUERIES)
def test_a_state_of_another_query_is_refused(name, other):
    if name == other:
        return
    with pytest.raises(StateError, match="belongs to another configuration"):
        Step(plan_of(other)).restore(fed(Step(plan_of(name))).state())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"windows": WindowOptions(t0=5)}, "windows"),
        ({"windows": WindowOptions(bounds="[)")}, "windows"),
        ({"windows": WindowOptions(report="every")}, "report"),
        ({"services": ServiceOptions(budget=3)}, "services"),
        ({"services": ServiceOptions(n=3)}, "options"),
        ({"services": ServiceOptions(policy="AT-BSM")}, "services"),
        ({"ranking": RankingOptions(arrivals="all")}, "options"),
        ({"feeds": frozenset()}, "services"),
    ],
)
def test_a_state_of_other_options_is_refused_by_name(options, named):
    state = fed(step_of(QUERIES["joined"])).state()
    with pytest.raises(StateError, match=f"another configuration: {named} was"):
        step_of(QUERIES["joined"], **options).restore(state)


@contextmanager
def every_class_renamed() -> Iterator[None]:
    """Rename all classes of the engine, for a while."""
    loaded = [module for name, module in sys.modules.items() if name.startswith("rsp_engine")]
    found = {each for module in loaded for each in vars(module).values() if isinstance(each, type)}
    names = {each: each.__name__ for each in found if each.__module__.startswith("rsp_engine")}
    for each in names:
        each.__name__ = "Renamed"
    try:
        yield
    finally:
        for each, name in names.items():
            each.__name__ = name


@pytest.mark.parametrize("name", QUERIES)
def test_a_state_survives_the_renaming_of_every_class(name):
    text = QUERIES[name]
    state = json.loads(json.dumps(fed(step_of(text)).state()))
    with every_class_renamed():
        again = step_of(text)
        again.restore(state)
        assert json.loads(json.dumps(again.state())) == state


def test_a_state_of_another_version_is_refused():
    state = fed(step_of(QUERIES["panes"])).state() | {"version": 99}
    with pytest.raises(StateError, match="version 99, not 1"):
        step_of(QUERIES["panes"]).restore(state)


@pytest.mark.parametrize(
    ("stream", "max_delay", "named"), [("s", 7, "max_delay was 5"), ("t", 5, "streams was")]
)
def test_a_driver_of_other_streams_or_another_delay_is_refused(stream, max_delay, named):
    made = Intake([], {f"{EX}s": []}, print, 5)
    other = Intake([], {f"{EX}{stream}": []}, print, max_delay)
    with pytest.raises(StateError, match=named):
        other.restore(made.state())
    Intake([], {f"{EX}s": []}, print, 5).restore(made.state())
