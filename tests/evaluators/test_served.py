"""General queries with SERVICE, end to end: what they answer, and what that may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.evaluators.service.config import ServiceClause
from rsp_engine.evaluators.service.evaluator import ServiceGraph
from rsp_engine.model.answers import Answer, Boolean, Solutions
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint
from rsp_engine.replica.pattern import RemotePattern
from tests.evaluators.served_shapes import (
    EX,
    OTHER,
    SERVICE,
    SHAPES,
    Shape,
    naive_answer,
    row_text,
    triples,
)
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.replica.endpoints.endpoint import FetchResult, Limits
    from rsp_engine.replica.pattern import Key

PEOPLE = ["a", "b", "c", "d", "e"]


def engine_of(shape: Shape, remote: dict[str, ox.Store], **options: object) -> Engine:
    engine = Engine(operator="general", arrivals=shape.arrivals, **options)  # type: ignore[arg-type]
    for name, data in remote.items():
        if name == SERVICE or ":other" in shape.text or "SERVICE ?x" in shape.text:
            engine.service(name, data)
    engine.register(shape.text)
    return engine


def bind(engine: Engine, stream: list[tuple[int, str]]) -> None:
    engine.bind(f"{EX}s", [(time, f"@prefix : <{EX}> . {text}") for time, text in stream])


def content(stream: list[tuple[int, str]], answer: Answer) -> list[ox.Triple]:
    """Return what the window of an answer holds: (open, close]."""
    window = answer.window
    inside = [text for time, text in stream if window.open < time <= window.close]
    return list(dict.fromkeys(triple for text in inside for triple in triples(text)))


def rows_of(answer: Answer) -> list[str] | bool | None:
    match answer.content:
        case Boolean(value):
            return value
        case Solutions(rows=rows):
            return sorted(row_text(dict(row.bindings)) for row in rows)
        case _:
            raise AssertionError


def store(text: str) -> ox.Store:
    made = ox.Store()
    made.extend(ox.Quad(t.subject, t.predicate, t.object) for t in triples(text))
    return made


people = st.sampled_from(PEOPLE)
numbers = st.integers(1, 4)
facts = st.one_of(
    st.builds(":{} :followers {} .".format, people, numbers),
    st.builds(":{} :name '{}' .".format, people, people),
    st.builds(":{} :knows :{} .".format, people, people),
)
remotes = st.lists(facts, max_size=10).map(" ".join)
elements = st.one_of(
    st.builds(":{} :mentions {} .".format, people, numbers),
    st.builds(":{} :likes :{} .".format, people, people),
    st.builds("[] :mentions {} .".format, numbers),
)
streams = st.lists(
    st.tuples(st.integers(1, 50_000), elements), min_size=1, max_size=12, unique=True
).map(sorted)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@examples(12)
@given(stream=streams, first=st.tuples(remotes, remotes), then=st.lists(remotes, max_size=3))
def test_asked_for_everything_a_query_answers_as_if_remote_data_were_local(
    shape, stream, first, then
):
    """Remote data change between one evaluation and the next."""
    remote = {SERVICE: store(first[0]), OTHER: store(first[1])}
    engine = engine_of(shape, remote, policy="EXACT")
    bind(engine, stream)
    for answer in engine.run():
        if shape.is_always_exact:
            assert answer.stats["exact"]
        if answer.stats["exact"]:
            assert rows_of(answer) == naive_answer(shape, content(stream, answer), remote)
        if then:
            remote[SERVICE].clear()
            remote[SERVICE].extend(store(then.pop()))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@examples(5)
@given(stream=streams, first=st.tuples(remotes, remotes))
def test_what_was_loaded_at_the_start_is_enough_where_nothing_changes(shape, stream, first):
    """Nothing is ever fetched, and no answer claims to be exact if it used remote data."""
    remote = {SERVICE: store(first[0]), OTHER: store(first[1])}
    engine = engine_of(shape, remote, policy="WST")
    bind(engine, stream)
    for answer in engine.run():
        assert answer.stats["budget_spent"] == answer.stats["requests"] == 0
        assert rows_of(answer) == naive_answer(shape, content(stream, answer), remote)


JOINED = next(shape for shape in SHAPES if shape.name == "one to many")
CHAIN = next(shape for shape in SHAPES if shape.name == "a chain")


@pytest.mark.parametrize("policy", ["WST", "WSJ-RND", "WSJ-LRU", "WSJ-WBM"])
@pytest.mark.parametrize("shape", [JOINED, CHAIN], ids=lambda shape: shape.name)
@examples(15)
@given(
    stream=streams,
    budget=st.integers(0, 4),
    replica=st.sampled_from(["snapshot", "cache"]),
    data=remotes,
)
def test_no_more_keys_are_fetched_than_the_budget_allows_for_all_clauses_together(
    *, policy, shape, stream, budget, replica, data
):
    asked: list[int] = []
    remote = {SERVICE: store(data), OTHER: store(data)}
    engine = Engine(policy=policy, budget=budget, replica=replica)
    for name, content_of in remote.items():
        if name == SERVICE or shape is CHAIN:
            engine.service(name, lambda p, data=content_of: _Counting(p, data, asked))
    engine.register(shape.text)
    bind(engine, stream)
    for answer in engine.run():
        assert sum(asked) == answer.stats["budget_spent"] <= budget
        asked.clear()


class _Counting(InProcessEndpoint):
    """Counts the fetched keys."""

    def __init__(self, pattern: RemotePattern, data: ox.Store, asked: list[int]) -> None:
        super().__init__(pattern, data)
        self._asked = asked

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        self._asked.append(len(keys))
        return super().fetch(keys, limits, now)


def tumbling(text: str) -> str:
    return text.replace("[RANGE 20s STEP 10s]", "[RANGE 10s STEP 10s]")


def test_a_key_that_was_never_seen_is_absent_and_counted_until_it_is_fetched():
    """A cache of a budget of 2: two cold keys at first, and then one of two.

    s: a b c | a b c | a b c
    """
    remote = {SERVICE: store(":a :followers 1 . :b :followers 2 . :c :followers 3 .")}
    engine = Engine(policy="WSJ-LRU", budget=2, replica="cache")
    engine.service(SERVICE, remote[SERVICE])
    engine.register(tumbling(JOINED.text))
    everyone = ":a :mentions 1 . :b :mentions 1 . :c :mentions 1 ."
    bind(engine, [(1, everyone), (10_001, everyone), (20_001, everyone)])
    answers = list(engine.run())
    assert [len(a.content.rows) for a in answers if isinstance(a.content, Solutions)] == [2, 3, 3]
    assert [answer.stats["cold_misses"] for answer in answers] == [1, 0, 0]
    assert [answer.stats["exact"] for answer in answers] == [False, False, False]


def history(**values: list[tuple[int, int]]) -> RecordedEndpoint:
    """Return numbers of followers since some times."""
    return RecordedEndpoint(
        {
            (ox.NamedNode(EX + name),): [(t, ({"f": ox.Literal(f)},)) for t, f in found]
            for name, found in values.items()
        }
    )


def followers(answer: Answer) -> dict[str, int]:
    assert isinstance(answer.content, Solutions)
    rows = [row.bindings for row in answer.content.rows]
    return {r["u"].value.removeprefix(EX): int(r["f"].value) for r in rows}


def test_a_value_is_as_old_as_its_last_refresh_and_stale_after_its_best_before():
    """The value of a is 1, 2 from 5 s on and 3 from 15 s on.

    s: a | a | a        WST keeps what there was when the first window opened
    """
    stream = [(1, ":a :mentions 1 ."), (10_001, ":a :mentions 1 ."), (20_001, ":a :mentions 1 .")]
    said_by = {}
    for policy in ("WST", "EXACT"):
        engine = Engine(policy=policy)
        engine.service(SERVICE, history(a=[(0, 1), (5_000, 2), (15_000, 3)]))
        engine.register(tumbling(JOINED.text))
        bind(engine, stream)
        said_by[policy] = [(followers(a)["a"], a.stats["oldest_ms"]) for a in engine.run()]
    assert said_by["WST"] == [(1, 10_000), (1, 20_000), (1, 30_000)]
    assert said_by["EXACT"] == [(2, 0), (3, 0), (3, 0)]


def test_a_stale_key_is_counted_and_its_refresh_makes_it_fresh():
    stream = [(1, ":a :mentions 1 . :b :mentions 1 ."), (10_001, ":a :mentions 1 .")]
    engine = Engine(policy="WSJ-LRU", budget=1, change_interval=2_000)
    engine.service(SERVICE, history(a=[(0, 1)], b=[(0, 1)]))
    engine.register(tumbling(JOINED.text))
    bind(engine, stream)
    assert [(a.stats["stale"], a.stats["budget_spent"]) for a in engine.run()] == [(1, 1), (0, 1)]


def pushing(changes: list[tuple[int, str]], endpoint: object) -> Engine:
    engine = Engine(policy="WSJ-WBM")
    if endpoint is not None:
        engine.service(SERVICE, endpoint)  # type: ignore[arg-type]
    engine.changes(SERVICE, [(t, f"@prefix : <{EX}> . {text}") for t, text in changes])
    engine.register(tumbling(JOINED.text))
    return engine


def test_pushed_changes_count_from_their_time_on_and_cost_nothing():
    """A change at the edge of a window belongs to it, and one behind it does not.

    s:       a          | a b       | a
    changes:     a=5    ^ a=6 at 10001
    """
    engine = pushing(
        [(10_000, ":a :followers 5 ."), (10_001, ":a :followers 6 .")],
        store(":a :followers 1 . :b :followers 2 ."),
    )
    everyone = ":a :mentions 1 . :b :mentions 1 ."
    bind(engine, [(1, everyone), (10_001, everyone), (20_001, ":a :mentions 1 . :z :mentions 1 .")])
    answers = list(engine.run())
    assert [followers(a) for a in answers] == [{"a": 5, "b": 2}, {"a": 6, "b": 2}, {"a": 6}]
    assert {a.stats["budget_spent"] for a in answers} == {0}
    assert all(a.stats["exact"] for a in answers)


def test_an_answer_waits_for_the_feed_whatever_is_read_first():
    engine = pushing([(9_000, ":a :followers 5 ."), (30_000, ":b :followers 9 .")], store(""))
    bind(engine, [(1, ":a :mentions 1 ."), (40_000, ":a :mentions 1 .")])
    first, *_ = engine.run()
    assert followers(first) == {"a": 5}


def test_a_feed_needs_no_endpoint_and_what_it_never_told_is_a_cold_miss():
    engine = pushing([(5_000, ":a :followers 5 .")], None)
    bind(engine, [(1, ":a :mentions 1 . :b :mentions 1 .")])
    [answer] = engine.run()
    assert followers(answer) == {"a": 5}
    assert answer.stats["cold_misses"] == 1
    assert not answer.stats["exact"]


def test_a_change_from_before_the_first_window_counts():
    engine = pushing([(5_000, ":a :followers 5 .")], store(":a :followers 1 ."))
    bind(engine, [(500_001, ":a :mentions 1 .")])
    [answer] = engine.run()
    assert followers(answer) == {"a": 5}


def test_blank_nodes_of_two_services_are_never_the_same():
    """Both services have a blank node for a, and the same key is fetched from both."""
    text = f"""PREFIX : <{EX}> SELECT * FROM NAMED WINDOW :w ON :s [RANGE 10s] WHERE {{
        WINDOW :w {{ ?u :mentions ?n }}
        SERVICE :svc {{ ?u :knows ?k }} SERVICE :other {{ ?u :knows ?k }} }}"""
    engine = Engine(policy="EXACT")
    engine.service(SERVICE, store(":a :knows [] ."))
    engine.service(OTHER, store(":a :knows [] ."))
    engine.register(text)
    bind(engine, [(1, ":a :mentions 1 .")])
    [answer] = engine.run()
    assert rows_of(answer) == []


def test_equal_remote_solutions_count_as_often_as_there_are_of_them():
    text = f"""PREFIX : <{EX}> SELECT (COUNT(*) AS ?c) (SUM(?f) AS ?t)
        FROM NAMED WINDOW :w ON :s [RANGE 10s] WHERE {{ WINDOW :w {{ ?u :mentions ?n }}
        SERVICE :svc {{ {{ ?u :followers ?f }} UNION {{ ?u :followers ?f }} }} }}"""
    engine = Engine(policy="EXACT")
    engine.service(SERVICE, store(":a :followers 3 ."))
    engine.register(text)
    bind(engine, [(1, ":a :mentions 1 .")])
    [answer] = engine.run()
    assert rows_of(answer) == [row_text({"c": ox.Literal(2), "t": ox.Literal(6)})]


def test_windows_of_so_many_elements_are_served_too():
    engine = Engine(policy="WSJ-WBM", change_interval=1)
    engine.service(SERVICE, history(a=[(0, 1), (3, 2)]))
    engine.register(JOINED.text.replace("RANGE 20s STEP 10s", "ELEMENTS 1"))
    bind(engine, [(2, ":a :mentions 1 ."), (4, ":a :mentions 1 .")])
    assert [followers(a) for a in engine.run()] == [{"a": 1}, {"a": 2}]


def test_only_what_comes_goes_or_changes_is_touched_in_the_store():
    held = ox.Store()
    clause = ServiceClause("urn:rsp-engine:service:0", None, is_marked=False)
    pattern = RemotePattern(SERVICE, "{ ?u ?p ?f }", ("u",), ("f",))
    graph = ServiceGraph(clause, pattern, held)
    keys = [(ox.NamedNode(EX + name),) for name in "abc"]
    one, two = ({"f": ox.Literal(1)},), ({"f": ox.Literal(2)}, {"f": ox.Literal(3)})
    graph.hold([0, 1], keys[:2], [one, two])
    assert len(held) == 6
    before = set(held)
    graph.hold([1, 2], keys[1:], [two, one])
    assert {q.subject.value[-3:] for q in before - set(held)} == {"0:0"}
    assert {q.subject.value[-3:] for q in set(held) - before} == {"2:0"}
    graph.hold([], [], [])
    assert len(held) == 0


@pytest.mark.parametrize("frame", ["RANGE 4s STEP 2s", "RANGE 2s", "RANGE 1s STEP 2s"])
def test_the_default_policy_refreshes_from_the_first_window_on(frame):
    """Ann's value changed after the snapshot, which is as of the opening of the first window."""
    engine = Engine(budget=1)
    values = [(-9_000, ({"f": ox.Literal(1)},)), (1_500, ({"f": ox.Literal(2)},))]
    engine.service(f"{EX}remote", RecordedEndpoint({(ox.NamedNode(f"{EX}ann"),): values}))
    engine.register(f"""PREFIX : <{EX}> SELECT DISTINCT ?f
        FROM NAMED WINDOW :w ON STREAM :s [{frame}]
        WHERE {{ WINDOW :w {{ ?s :says ?what }} SERVICE :remote {{ ?s :followers ?f }} }}""")
    bind(engine, [(1_900, ":ann :says 1 ."), (2_900, ":ann :says 2 .")])
    first = next(answer for answer in engine.run() if answer.window.close >= 1_900)
    assert rows_of(first) == [row_text({"f": ox.Literal(2)})]
    assert first.stats["budget_spent"] == 1
