"""Budgets of services: what all queries of a run may fetch together, and how they divide it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.errors import BindingError
from rsp_engine.io.sinks.jsonl import JSONL
from rsp_engine.policies.registry import POLICIES
from rsp_engine.replica.endpoints.endpoint import FetchResult
from tests.drivers.split_runs import in_splits
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.replica.pattern import RemotePattern

EX = "http://example.org/"
HEAD = (
    f"PREFIX : <{EX}> REGISTER RSTREAM :{{name}} AS SELECT ?u ?f {{score}}"
    " FROM NAMED WINDOW :w ON :{stream} [RANGE {range}s STEP {step}s]"
    " WHERE {{ WINDOW :w {{ ?u :{verb} ?n }} SERVICE :svc {{ ?u :followers ?f }} }}"
)
RANKED = HEAD.replace("{score}", "(?n + ?f AS ?s)") + " ORDER BY DESC(?s) LIMIT {k}"
PLAIN = HEAD.replace("{score}", "")
USERS = [f"u{number}" for number in range(10)]


class Counting:
    """A remote side whose values change; it knows which keys it was asked for, and when."""

    def __init__(self, every: int = 2) -> None:
        self.every = every
        self.asked: list[tuple[int, list[str]]] = []

    def connect(self, pattern: RemotePattern) -> Told:
        return Told(self, pattern)

    def most_in(self, span: int) -> int:
        """Return the most keys that were asked for in a span of event time."""
        starts = {now for now, _ in self.asked}
        return max(
            (sum(len(k) for now, k in self.asked if at <= now < at + span) for at in starts),
            default=0,
        )


class Told:
    def __init__(self, source: Counting, pattern: RemotePattern) -> None:
        self._source = source
        [self._name] = pattern.variables

    def fetch(self, keys: Sequence[Any], _limits: object, now: int) -> FetchResult:
        names = [key[0].value.removeprefix(EX) for key in keys]
        self._source.asked.append((now, names))
        return FetchResult({key: self._told(key, now) for key in keys}, 1)

    def snapshot(self, _limits: object, now: int) -> FetchResult:
        keys = [(ox.NamedNode(EX + user),) for user in USERS[:6]]
        return FetchResult({key: self._told(key, now) for key in keys}, 1)

    def _told(self, key: Any, now: int) -> Any:
        number = USERS.index(key[0].value.removeprefix(EX))
        if number == 9:
            return ()
        value = (7 * number + (now // 1000 + number) // self._source.every * 5) % 23
        return ({self._name: ox.Literal(value)},)

    def close(self) -> None:
        pass


def query(name: str, *, plain: bool = False, **parts: Any) -> str:
    usual = {"stream": "s", "range": 6, "step": 3, "verb": "p", "k": 3}
    return (PLAIN if plain else RANKED).format(name=name, **{**usual, **parts})


def stream(seconds: int = 16, verbs: str = "pq") -> list[tuple[int, str]]:
    return [
        (
            1000 * at + 100 * place,
            f"<{EX}{USERS[(5 * at + 3 * place) % 10]}> <{EX}{verbs[place % 2]}> {at} .",
        )
        for at in range(seconds)
        for place in range(4)
    ]


def run(queries: Sequence[str], source: Counting, **options: Any) -> dict[str, list[Any]]:
    """Return the answers of each query of a run."""
    engine = Engine(**{"n": 4, **options})
    engine.service(f"{EX}svc", source.connect)
    for each in queries:
        engine.register(each)
    read = " ".join(queries)
    for name in ("s", "t"):
        if f":{name} [" in read:
            engine.bind(EX + name, stream())
    found: dict[str, list[Any]] = {}
    for answer in engine.run():
        found.setdefault(answer.query.removeprefix(EX), []).append(answer)
    return found


def texts(answers: Sequence[Any]) -> list[str]:
    writer = JSONL.writer()
    return [str(writer(answer)) for answer in answers]


def can_be_plain(policy: str) -> bool:
    """Return whether a policy can elect for queries without a score."""
    return policy == "AT-VOI" or POLICIES[policy].proposer != "list"


@st.composite
def query_sets(draw: st.DrawFn, policy: str) -> list[str]:
    return [
        query(
            f"q{number}",
            plain=can_be_plain(policy) and draw(st.booleans()),
            stream=draw(st.sampled_from("sst")),
            range=draw(st.sampled_from((3, 6))),
            step=draw(st.sampled_from((2, 3))),
            verb=draw(st.sampled_from("pq")),
            k=draw(st.integers(1, 4)),
        )
        for number in range(draw(st.integers(1, 3)))
    ]


POLICY = st.sampled_from(("AT-TSM", "AT-VOI", "WSJ-LRU", "EXACT", "AT-BSM", "AT-ASM", "WST"))


@st.composite
def sets_with_options(draw: st.DrawFn) -> tuple[list[str], dict[str, Any]]:
    """Draw queries, and options that all of them can have."""
    policy = draw(POLICY)
    queries = draw(query_sets(policy))
    is_listed = POLICIES[policy].proposer == "list" and not can_be_plain(policy)
    options = {
        "policy": policy,
        "replica": draw(st.sampled_from(("snapshot", "cache"))),
        "memory": draw(st.sampled_from(("table", "list"))) if is_listed else "table",
        "budget": draw(st.integers(0, 6)),
        "capacity": draw(st.sampled_from((None, 2, 5))),
    }
    return queries, options


@examples(9)
@given(sets_with_options())
def test_without_a_shared_budget_each_query_is_answered_as_alone(
    drawn: tuple[list[str], dict[str, Any]],
) -> None:
    queries, options = drawn
    alone: dict[str, list[Any]] = {}
    for each in queries:
        alone |= run([each], Counting(), **options)
    together = run(queries, Counting(), **options)
    assert {n: texts(a) for n, a in together.items()} == {n: texts(a) for n, a in alone.items()}


@examples(18)
@given(
    drawn=sets_with_options(),
    most=st.integers(0, 9),
    span=st.integers(1, 9),
    size=st.sampled_from((1, 300, 4000)),
)
def test_no_span_has_more_keys_than_the_budget(
    drawn: tuple[list[str], dict[str, Any]], most: int, span: int, size: int
) -> None:
    queries, options = drawn
    options["service_budget"] = [f"{EX}svc={most}/{span}s"]
    source = Counting()
    answers = run(queries, source, **options)
    assert source.most_in(1000 * span) <= most
    for now in {now for now, _ in source.asked}:
        keys = [key for at, names in source.asked if at == now for key in names]
        assert len(keys) == len(set(keys)), "a key is asked for once at an instant"
    for each in answers.values():
        for answer in each:
            shared = answer.stats["service_budgets"][f"{EX}svc"]
            assert shared["spent"] == answer.stats["budget_spent"] <= shared["given"]
    again = Counting()
    with in_splits(size=size):
        split = run(queries, again, **options)
    assert {n: texts(a) for n, a in split.items()} == {n: texts(a) for n, a in answers.items()}
    assert again.asked == source.asked


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_keeps_to_the_budget(policy: str) -> None:
    source = Counting()
    queries = [query("q1"), query("q2", k=1), query("q3", plain=can_be_plain(policy), k=2)]
    run(queries, source, policy=policy, service_budget=[f"{EX}svc=4/5s"])
    assert source.most_in(5000) <= 4
    assert policy == "WST" or source.asked


def test_a_value_fetched_for_one_query_is_fresh_for_all() -> None:
    source = Counting()
    queries = [query("q1"), query("q2", k=2), query("q3", plain=True)]
    answers = run(queries, source, policy="EXACT", service_budget=[f"{EX}svc=100/1s"])
    assert all(answer.stats["exact"] for each in answers.values() for answer in each)
    spent = [sum(a.stats["budget_spent"] for a in answers[name]) for name in ("q1", "q2", "q3")]
    assert spent[0] > 0
    assert spent[1:] == [0, 0]


def test_queries_with_other_patterns_share_the_budget_and_not_the_replica() -> None:
    source = Counting()
    other = query("q2").replace("?u :followers ?f }", "?u :friends ?f }")
    answers = run([query("q1"), other], source, policy="AT-LRU", service_budget=[f"{EX}svc=4/3s"])
    for name in ("q1", "q2"):
        assert [a.stats["budget_spent"] for a in answers[name]][:4] == [2] * 4


def test_a_budget_is_dealt_by_weights_and_in_turns() -> None:
    def spent(weights: list[str], most: int) -> list[list[int]]:
        queries = [query("q1", verb="p"), query("q2", verb="q", k=2)]
        queries[1] = queries[1].replace(":followers", ":friends")
        rules = {"service_budget": [f"{EX}svc={most}/3s"], "weight": weights}
        answers = run(queries, Counting(), policy="AT-LRU", replica="snapshot", **rules)
        return [[a.stats["budget_spent"] for a in answers[q]][:4] for q in ("q1", "q2")]

    assert spent([], 1) == [[1, 0, 1, 0], [0, 1, 0, 1]]
    assert spent([f"{EX}q1=2"], 3) == [[2] * 4, [1] * 4]
    assert spent([":q1=3"], 1) == [[1, 1, 0, 1], [0, 0, 1, 0]]


def test_at_voi_gives_the_budget_to_the_keys_that_most_answers_depend_on() -> None:
    def gained(rules: dict[str, Any], **more: Any) -> float:
        queries = [query(f"q{k}", k=k, step=3) for k in (1, 2, 3, 4)]
        answers = run(queries, Counting(), oracle=True, policy="AT-VOI", **rules, **more)
        found: list[float] = [a.stats["ndcg"] for each in answers.values() for a in each]
        return sum(found) / len(found)

    shared = gained({"service_budget": [f"{EX}svc=4/3s"]}, budget=10)
    apart = gained({}, budget=1)
    assert shared > apart


def test_queries_of_several_streams_wait_for_each_other() -> None:
    source = Counting()
    queries = [query("q1", stream="s"), query("q2", stream="t", step=2)]
    run(queries, source, policy="EXACT", service_budget=[f"{EX}svc=3/3s"])
    instants = [now for now, _ in source.asked]
    assert instants == sorted(instants)


def test_a_query_that_shares_a_budget_cannot_read_answers_of_another() -> None:
    made = (
        f"PREFIX : <{EX}> REGISTER STREAM :made AS CONSTRUCT {{ ?u :p ?f }}"
        " FROM NAMED WINDOW :w ON :s [RANGE 6s STEP 3s]"
        " WHERE { WINDOW :w { ?u :p ?n } SERVICE :svc { ?u :followers ?f } }"
    )
    with pytest.raises(BindingError, match="share the budget of a service"):
        run([made, query("q1", stream="made")], Counting(), service_budget=[f"{EX}svc=3/3s"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"service_budget": [f"{EX}other=3/3s"]},
            "no query calls service <http://example.org/other>",
        ),
        ({"weight": [f"{EX}q1=2"]}, "only in the budget of a service"),
        (
            {"service_budget": [f"{EX}svc=3/3s"], "weight": [f"{EX}q9=2"]},
            "there is no query <http://example.org/q9>",
        ),
    ],
)
def test_budgets_and_weights_without_use_are_refused(options: Any, message: str) -> None:
    with pytest.raises(BindingError, match=message):
        run([query("q1")], Counting(), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"service_budget": [f"{EX}svc=3"]}, "it is not of the form 100/10s"),
        ({"service_budget": [f"{EX}svc=3/0s"]}, "a span must be at least 1 ms"),
        ({"service_budget": ["3/3s"]}, "it must be NAME=VALUE"),
        ({"weight": [f"{EX}q1=0"]}, "a weight is a number above 0"),
    ],
)
def test_budgets_and_weights_have_a_form(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Engine(**options)
