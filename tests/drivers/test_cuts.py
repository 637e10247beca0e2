"""Cuts: a run that is saved as text anywhere, and resumed, goes on as if it was not cut.

What is compared is what leaves the engine: the bytes of the answers, the dead letters, the counts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import check
from rsp_engine.io.sources.files.nquads import NQuads
from rsp_engine.model.windows import Pane
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig
from rsp_engine.plan.planner import plan
from rsp_engine.policies.registry import POLICIES
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from tests.drivers import test_batches as batches
from tests.drivers.cut import ALWAYS, cut, texts
from tests.drivers.split_runs import RemakeableRun, SplitTestDriver
from tests.evaluators.served_shapes import EX, OTHER, SERVICE, SHAPES, Shape
from tests.evaluators.test_joined import QUERY, element, history, stories
from tests.evaluators.test_semantics import CASES, name_of
from tests.evaluators.test_semantics import check as check_case
from tests.evaluators.test_served import elements, engine_of, people, remotes, store, streams
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pyoxigraph as ox

    from rsp_engine.replica.endpoints.endpoint import FetchResult, Limits
    from rsp_engine.replica.pattern import Key, RemotePattern

cuts = st.sampled_from((ALWAYS, ())) | st.sets(st.integers(0, 20), min_size=1, max_size=3)


def check_cut(made: Callable[[], Engine], where: Collection[int]) -> list[str]:
    """Run an engine twice, once with cuts, and return its answers."""
    whole, engine = made(), made()
    expected = texts(whole)
    with cut(where):
        assert texts(engine) == expected
    assert engine.counts == whole.counts
    return expected


@pytest.mark.parametrize("path", CASES, ids=name_of)
def test_every_case_of_the_semantics_can_be_cut_everywhere(path, tmp_path):
    with cut():
        check_case(path, tmp_path)


@examples(60)
@given(st.data(), batches.options, batches.pieces(), st.integers(0, 12), cuts)
def test_queries_over_any_windows_can_be_cut_anywhere(data, chosen, found, max_delay, where):
    asked = [data.draw(batches.queries(index)) for index in range(data.draw(st.integers(1, 2)))]
    whole = batches.run(asked, chosen, NQuads(batches.Chunks(found)), max_delay)
    steps = [Step(plan(check(text), text, "<query>", chosen).physical) for text in asked]
    happened: list[object] = []
    sources = {f"{EX}s": [NQuads(batches.Chunks(found))]}
    again = RemakeableRun(steps, sources, happened.append, max_delay, are_split=False)
    driver = SplitTestDriver(again, at_most=1, cuts=where)
    happened.extend(driver.run())
    assert happened == whole.happened
    assert driver.counts == whole.counts


rooms = st.sampled_from((":a :p {0} .", ":b :p {0} .", ":a :q {0} .", ":b :p {1} ."))
values = st.sampled_from(("1", "1e16", "-1e16", "0.1e0", "3e-5", "'x'"))
readings = st.builds(str.format, rooms, values, values)
timed = st.lists(st.tuples(st.integers(1, 12), readings), max_size=25).map(
    lambda pairs: sorted((1000 * time, f"@prefix : <{EX}> . {text}") for time, text in pairs)
)
BY_ORDER = (
    "(SUM(?n) AS ?x)",
    "(SUM(?n * 0.1e0) AS ?x)",
    "(AVG(?n) AS ?x)",
    "(SAMPLE(?n) AS ?x)",
    "(GROUP_CONCAT(?n) AS ?x)",
    "?s ?n (STRUUID() AS ?x)",
    "?s ?n (RAND() AS ?x) (UUID() AS ?y)",
)


@pytest.mark.parametrize("frame", ["RANGE 4s STEP 1s", "ELEMENTS 4 STEP 1"])
@pytest.mark.parametrize("select", BY_ORDER)
@examples(15)
@given(stream=timed, where=cuts)
def test_answers_that_depend_on_the_order_of_triples_can_be_cut(select, frame, stream, where):
    """Triples leave a window and come again, and a sum of doubles depends on its order."""
    text = f"""PREFIX : <{EX}> SELECT {select} FROM NAMED WINDOW :w ON :s [{frame}]
        WHERE {{ WINDOW :w {{ ?s ?p ?n }} }}"""

    def made() -> Engine:
        engine = Engine()
        engine.register(text)
        engine.bind(f"{EX}s", stream)
        return engine

    check_cut(made, where)


@pytest.mark.parametrize("r2s", ["RSTREAM", "ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("arrivals", ["latest", "all"])
@examples(15)
@given(data=st.data(), story=stories(), budget=st.integers(0, 4), n=st.integers(0, 3), where=cuts)
def test_a_ranked_join_can_be_cut_anywhere(*, arrivals, r2s, data, story, budget, n, where):
    stream, changes = story
    policy = data.draw(st.sampled_from(sorted(POLICIES)))
    options: dict[str, Any] = {
        "replica": data.draw(st.sampled_from(("snapshot", "cache"))),
        "capacity": data.draw(st.sampled_from((None, 1, 3))),
        "oracle": data.draw(st.booleans()),
        "change_interval": data.draw(st.sampled_from((None, 2500))),
    }
    pushed = [(at, f"<{EX}{user}> <{EX}hasFollowers> {n} .") for at, user, n in changes[::2]]
    is_pushed = data.draw(st.booleans())

    def made() -> Engine:
        engine = Engine(t0=1000, policy=policy, budget=budget, n=n, arrivals=arrivals, **options)
        engine.service(f"{EX}BKG", history(*changes))
        if is_pushed:
            engine.changes(f"{EX}BKG", pushed)
        engine.register(QUERY.replace("REGISTER STREAM", f"REGISTER {r2s}"))
        engine.bind(f"{EX}S", stream)
        return engine

    check_cut(made, where)


@examples(6)
@given(st.integers(0, 10_000), st.sampled_from(["AT-TSM", "AT-BSM", "AT-RND", "WSJ-WBM"]), cuts)
def test_a_ranked_join_of_many_arrivals_can_be_cut(seed, policy, where):
    """A pane has so many solutions that only those near the top are parsed."""
    draw = np.random.default_rng(seed)
    stream = [
        element(at, f"u{draw.integers(400)}", int(draw.integers(10**6)))
        for at in range(2, 24)
        for _ in range(60)
    ]
    followers = enumerate(draw.integers(10**6, size=400))
    told = "".join(f"<{EX}u{user}> <{EX}hasFollowers> {number} ." for user, number in followers)

    def made() -> Engine:
        engine = Engine(t0=1000, policy=policy, budget=4, n=2)
        engine.service(f"{EX}BKG", lambda pattern: Evolving(pattern, {0: store(told)}))
        engine.register(QUERY)
        engine.bind(f"{EX}S", stream)
        return engine

    check_cut(made, {200 * cut + 7 for cut in where} if where is not ALWAYS else range(0, 2000, 97))


class Evolving:
    """A remote dataset that changes at given times."""

    def __init__(self, pattern: RemotePattern, data: dict[int, ox.Store]) -> None:
        self._endpoints = {since: InProcessEndpoint(pattern, held) for since, held in data.items()}

    def _at(self, now: int) -> InProcessEndpoint:
        return self._endpoints[max((s for s in self._endpoints if s <= now), default=0)]

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        return self._at(now).fetch(keys, limits, now)

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        return self._at(now).snapshot(limits, now)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@examples(8)
@given(data=st.data(), stream=streams, where=cuts)
def test_a_general_query_with_remote_data_can_be_cut_anywhere(shape, data, stream, where):
    check_served(shape, data, stream, where)


def check_served(shape: Shape, data: st.DataObject, stream: Any, where: Collection[int]) -> None:
    times = [0, *data.draw(st.lists(st.integers(1, 50_000), max_size=3, unique=True))]
    evolving = {
        name: {since: store(data.draw(remotes)) for since in times} for name in (SERVICE, OTHER)
    }
    options = {
        "policy": data.draw(st.sampled_from(["WSJ-RND", "WSJ-LRU", "WSJ-WBM", "WST", "EXACT"])),
        "budget": data.draw(st.integers(0, 4)),
        "replica": data.draw(st.sampled_from(("snapshot", "cache"))),
        "capacity": data.draw(st.sampled_from((None, 2))),
    }

    def made() -> Engine:
        served: Any = {
            name: lambda pattern, name=name: Evolving(pattern, evolving[name]) for name in evolving
        }
        engine = engine_of(shape, served, **options)
        engine.bind(f"{EX}s", [(at, f"@prefix : <{EX}> . {text}") for at, text in stream])
        return engine

    check_cut(made, where)


SUMS = [
    Shape("sum of doubles", "$m $f", "u", select="SELECT (SUM(?f * 0.1e0) AS ?t)"),
    Shape("sample", "$m $g", "u", select="SELECT (SAMPLE(?f) AS ?t) (GROUP_CONCAT(?f) AS ?c)"),
    Shape("remote data alone", "$f $m", "u", select="SELECT (GROUP_CONCAT(?f) AS ?c)"),
    Shape(
        "asked as a whole",
        "SERVICE :svc { ?v :followers ?f } FILTER EXISTS { $m }",
        "()",
        select="SELECT (GROUP_CONCAT(?f) AS ?c)",
    ),
    Shape("construct", "$m $f", "u", select="CONSTRUCT { ?u :has [ :n ?n ; :f ?f ] }"),
]


@pytest.mark.parametrize("shape", SUMS, ids=lambda shape: shape.name)
@examples(25)
@given(data=st.data(), stream=streams, where=cuts)
def test_order_counts_in_remote_data_as_well(shape, data, stream, where):
    check_served(shape, data, stream, where)


AGGREGATES = ("COUNT(*)", "SUM(?n)", "AVG(?n)", "MIN(?n)", "MAX(?n)", "SUM(?n) * 0.1e0")
mentions = st.lists(
    st.tuples(
        st.integers(1, 50_000),
        elements | st.builds(":{} :mentions {} .".format, people, values),
    ),
    min_size=1,
    max_size=12,
    unique=True,
).map(sorted)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@examples(20)
@given(data=st.data(), stream=mentions, where=cuts)
def test_ranked_groups_can_be_cut_anywhere(aggregate, data, stream, where):
    """Of the stream alone, or joined with remote data."""
    text = f"""PREFIX : <{EX}> SELECT ?u ({aggregate} AS ?x)
        FROM NAMED WINDOW :w ON :s [RANGE 20s STEP 5s]
        WHERE {{ WINDOW :w {{ ?u :mentions ?n }} }} GROUP BY ?u ORDER BY DESC(?x) LIMIT 2"""
    joined = f"""PREFIX : <{EX}> SELECT ?u ({aggregate} + ?f AS ?x)
        FROM NAMED WINDOW :w ON :s [RANGE 20s STEP 5s]
        WHERE {{ WINDOW :w {{ ?u :mentions ?n }} SERVICE :svc {{ ?u :followers ?f }} }}
        GROUP BY ?u ?f ORDER BY DESC(?x) LIMIT 2"""
    evolving = {since: store(data.draw(remotes)) for since in (0, 15_000, 30_000)}
    is_joined = data.draw(st.booleans())
    policy = data.draw(st.sampled_from(["AT-TSM", "WSJ-WBM", "AT-ASM"])) if is_joined else None

    def made() -> Engine:
        engine = Engine(policy=policy, budget=2, n=1)
        if is_joined:
            engine.service(SERVICE, lambda pattern: Evolving(pattern, evolving))
        operator = engine.register(joined if is_joined else text).physical.operator
        assert isinstance(operator, AcquaTopConfig if is_joined else GroupTopkConfig)
        engine.bind(f"{EX}s", [(at, f"@prefix : <{EX}> . {text}") for at, text in stream])
        return engine

    check_cut(made, where)


def test_how_good_those_may_be_that_were_passed_over_is_known_after_a_restart():
    """The previous batch sets the score threshold, and so which solutions are never parsed."""
    config = TopkNConfig(1)
    operator = TopkN(config, lambda streaming, remote: streaming + remote)
    first = [*range(40)], [*range(40)], [100.0 - n for n in range(40)], [0.0] * 40
    operator.arrive(Pane(0, 0), *first)
    operator.close(0)
    restored = TopkN.restored(config, operator._score, json.loads(json.dumps(operator.state())))
    answers = []
    for each in (operator, restored):
        scores = [90.0, *(1.0 for _ in range(39))]
        each.arrive(Pane(1, 1), [*range(40, 80)], [*range(40, 80)], scores, [0.0] * 40)
        each.settle(1)
        each.change([40], [-40.0])
        answers.append(each.close(1))
    assert answers[0].is_exact == answers[1].is_exact
