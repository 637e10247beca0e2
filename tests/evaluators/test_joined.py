"""Ranked queries that join a window with remote data, from the text of the query to its rows."""

from __future__ import annotations

from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.model.answers import Answer, Solutions
from rsp_engine.policies.registry import POLICIES
from rsp_engine.replica.changes import ChangeFeed
from rsp_engine.replica.endpoints.endpoint import FetchResult, Limits
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint
from tests.replica.servers import OxigraphServer
from tests.thoroughness import IS_FAST, examples

EX = "http://example.org/"
QUERY = """
PREFIX : <http://example.org/>
REGISTER STREAM :TopkUsersToContact AS
SELECT ?user (?mentions + ?followers AS ?score)
FROM NAMED WINDOW :W ON STREAM :S [RANGE 9s STEP 3s]
WHERE {
  WINDOW :W { ?user :hasMentions ?mentions }
  SERVICE :BKG { ?user :hasFollowers ?followers }
}
ORDER BY DESC(?score)
LIMIT 3
"""
# The running example of AcquaTop: W0 is (1, 10], W1 is (4, 13], in seconds.
#
#     t     2  3  5  6  8  9  11 12
#     user  A  B  C  D  E  F  A  G
#     score 2  5  6  1  7  3  2  8        E becomes 10 between W0 and W1
ARRIVALS = ((2, "A", 2), (3, "B", 5), (5, "C", 6), (6, "D", 1), (8, "E", 7), (9, "F", 3))
LATER = ((11, "A", 2), (12, "G", 8))


def element(at: int, user: str, mentions: int) -> tuple[int, str]:
    return 1000 * at, f"<{EX}{user}> <{EX}hasMentions> {mentions} ."


STREAM = [element(*arrival) for arrival in ARRIVALS + LATER]


def key(user: str) -> tuple[ox.NamedNode]:
    return (ox.NamedNode(EX + user),)


def followers(number: int) -> tuple[dict[str, ox.Literal], ...]:
    return ({"followers": ox.Literal(number)},)


def history(*changes: tuple[int, str, int]) -> RecordedEndpoint:
    """Every user has no followers at first; then come the changes: when, who, how many."""
    told: dict[Any, list[Any]] = {key(user): [(0, followers(0))] for user in "ABCDEFG"}
    for at, user, number in changes:
        told[key(user)].append((at, followers(number)))
    return RecordedEndpoint(told)


def ranked(answer: Answer) -> str:
    assert isinstance(answer.content, Solutions)
    users = (row.bindings["user"].value.removeprefix(EX) for row in answer.content.rows)
    return " ".join(f"{user}{row.score:g}" for user, row in zip(users, answer.content.rows))  # noqa: B905


def run(endpoint: Any, text: str = QUERY, stream: Any = STREAM, **options: Any) -> list[Answer]:
    engine = Engine(t0=1000, **options)
    engine.service(f"{EX}BKG", endpoint)
    engine.register(text)
    engine.bind(f"{EX}S", stream)
    return list(engine.run())


@pytest.mark.outside
class TestTheRunningExample:
    """Fig 1 to 7 of AcquaTop, as a query over a real SPARQL server."""

    INSERT = "INSERT DATA {{ {} }}"

    @pytest.fixture
    def server(self):
        with OxigraphServer() as server:
            data = " ".join(f"<{EX}{user}> <{EX}hasFollowers> 0 ." for user in "ABCDEFG")
            server.update(f"INSERT DATA {{ {data} }}")
            yield server

    def changed(self, server: OxigraphServer) -> None:
        server.update(
            f"DELETE DATA {{ <{EX}E> <{EX}hasFollowers> 0 }} ;"
            f" INSERT DATA {{ <{EX}E> <{EX}hasFollowers> 3 }}"
        )

    def answers(self, server: OxigraphServer, *, change: bool, **options: Any) -> list[str]:
        """Return the answers; with `change`, E changes after that of W0."""
        engine = Engine(t0=1000, n=1, **options)
        engine.service(f"{EX}BKG", server.query_url)
        engine.register(QUERY)
        engine.bind(f"{EX}S", STREAM)
        given_answers: list[str] = []
        for answer in engine.run():
            if change and not given_answers:
                self.changed(server)
            given_answers.append(ranked(answer))
        return given_answers[:2]

    def test_without_a_change_g_is_first_in_the_second_window(self, server):
        found = self.answers(server, change=False, policy="AT-TSM", budget=2)
        assert found == ["E7 C6 B5", "G8 E7 C6"]

    def test_a_change_of_e_is_pulled_by_the_policy_that_looks_at_the_top(self, server):
        found = self.answers(server, change=True, policy="AT-TSM", budget=2)
        assert found == ["E7 C6 B5", "E10 G8 C6"]

    def test_a_policy_that_looks_at_the_border_does_not_see_it(self, server):
        found = self.answers(server, change=True, policy="AT-BSM", budget=2)
        assert found == ["E7 C6 B5", "G8 E7 C6"]

    def test_a_change_of_e_is_pushed(self, server):
        engine = Engine(t0=1000, n=1, policy="AT-TSM", budget=0)
        engine.service(f"{EX}BKG", server.query_url)
        engine.changes(f"{EX}BKG", [(11_500, f"<{EX}E> <{EX}hasFollowers> 3 .")])
        engine.register(QUERY)
        engine.bind(f"{EX}S", STREAM)
        answers = list(engine.run())
        assert list(map(ranked, answers))[:2] == ["E7 C6 B5", "E10 G8 C6"]
        assert [answer.stats["budget_spent"] for answer in answers[:2]] == [0, 0]
        assert answers[0].stats["exact"]


class Counting(RecordedEndpoint):
    """A recorded history that records the keys of each fetch."""

    def __init__(self, told: Any) -> None:
        super().__init__(told)
        self.asked: list[Any] = []

    def fetch(self, keys: Any, limits: Limits, now: int) -> FetchResult:
        self.asked += keys
        return super().fetch(keys, limits, now)


def pushed(changes: list[tuple[int, str]], endpoint: Any, **options: Any) -> list[Answer]:
    engine = Engine(t0=1000, **options)
    engine.service(f"{EX}BKG", endpoint)
    engine.changes(f"{EX}BKG", changes)
    engine.register(QUERY)
    engine.bind(f"{EX}S", STREAM)
    return list(engine.run())


@pytest.mark.parametrize("policy", ["AT-TSM", "AT-ASM", "EXACT", "AT-VOI", "WSJ-RND"])
def test_what_is_known_is_not_asked_for_where_changes_are_pushed(policy):
    """The endpoint is behind the feed: what was pushed must not be lost to what it still says."""
    endpoint = Counting({key(user): [(0, followers(0))] for user in "ABCDEFG"})
    changes = [(11_500, f"<{EX}E> <{EX}hasFollowers> 3 .")]
    answers = pushed(changes, endpoint, policy=policy, budget=4)
    assert list(map(ranked, answers))[:2] == ["E7 C6 B5", "E10 G8 C6"]
    assert endpoint.asked == []
    assert all(answer.stats["exact"] for answer in answers)


def test_after_a_change_that_could_not_be_read_no_answer_is_sure(monkeypatch):
    """Any key may have changed, so no later answer is exact either."""
    read = ChangeFeed._fetched

    def fails_once(self: ChangeFeed, graph: Any) -> FetchResult:
        monkeypatch.setattr(ChangeFeed, "_fetched", read)
        return FetchResult(faults={"evaluation": 1})

    monkeypatch.setattr(ChangeFeed, "_fetched", fails_once)
    changes = [(11_500, f"<{EX}E> <{EX}hasFollowers> 3 ."), (11_600, f"<{EX}A> <{EX}p> 3 .")]
    answers = pushed(changes, history())
    assert [answer.stats["exact"] for answer in answers] == [True, False, False, False]


def test_rows_say_how_old_their_remote_values_are():
    first, second, *_ = run(history(), policy="AT-TSM", budget=2, n=1)
    assert isinstance(first.content, Solutions)
    assert isinstance(second.content, Solutions)
    assert [row.age for row in first.content.rows] == [0, 0, 9000]
    assert [row.age for row in second.content.rows] == [0, 0, 3000]


def test_answers_are_judged_by_an_oracle_that_costs_no_budget():
    answers = run(history((11_000, "E", 3)), policy="WST", oracle=True)
    assert [answer.stats["precision"] for answer in answers] == [1.0, 1.0, 1.0, 1.0]
    assert [answer.stats["ndcg"] == 1.0 for answer in answers] == [True, False, False, True]
    assert {answer.stats["budget_spent"] for answer in answers} == {0}


def test_a_user_who_is_an_influencer_already_is_left_out(tmp_path):
    (tmp_path / "known.ttl").write_text(f"<{EX}E> a <{EX}Influencer> .")
    text = QUERY.replace("FROM NAMED WINDOW", "FROM <known> FROM NAMED WINDOW").replace(
        "ORDER BY", "ORDER BY"
    )
    text = text.replace(
        "?followers }\n}", "?followers }\n  FILTER NOT EXISTS { ?user a :Influencer }\n}"
    )
    engine = Engine(t0=1000, policy="AT-TSM", budget=2)
    engine.service(f"{EX}BKG", history())
    engine.graph("known", tmp_path / "known.ttl")
    made = engine.register(text)
    assert "Topk+N" in engine.explain()
    assert made.physical.services[0].policy.name == "AT-TSM"
    engine.bind(f"{EX}S", STREAM)
    assert list(map(ranked, engine.run()))[:2] == ["C6 B5 F3", "G8 C6 F3"]


def test_of_several_arrivals_of_a_user_the_latest_counts_or_each_is_an_object():
    apart = [element(2, "A", 9), element(3, "B", 5), element(5, "A", 7)]
    in_a_pane = [element(2, "A", 9), element(3, "B", 5), element(4, "A", 7)]
    for stream in (apart, in_a_pane):
        [first, *_] = run(history(), stream=stream, policy="AT-TSM", budget=2)
        assert ranked(first) == "A7 B5"
        [first, *_] = run(history(), stream=stream, policy="AT-TSM", budget=2, arrivals="all")
        assert ranked(first) == "A9 A7 B5"


def test_keys_that_the_replica_does_not_know_are_fetched_best_first():
    """In W0 all keys are cold and share the whole budget; in W1 four are known, and G is cold."""
    answers = run(history(), policy="AT-TSM", budget=4, replica="cache")
    assert ranked(answers[0]) == "E7 C6 B5"
    assert answers[0].stats["cold_misses"] == 2
    assert answers[0].stats["budget_spent"] == 4
    assert ranked(answers[1]) == "G8 E7 C6"
    assert all(not answer.stats["exact"] for answer in answers[:2])


def test_known_keys_keep_half_of_the_budget_if_they_need_it():
    endpoint = Counting({key(user): [(0, followers(0))] for user in "ABCDEFG"})
    stream = [element(5, user, 3) for user in "ABCDEFG"]
    answers = run(endpoint, stream=stream, policy="WSJ-LRU", budget=2, replica="cache")
    assert [answer.stats["budget_spent"] for answer in answers] == [2, 2]
    first, second = set(endpoint.asked[:2]), set(endpoint.asked[2:])
    assert len(first & second) == 1, "one is known, and one is new"


def test_a_budget_of_one_fills_a_replica_that_is_empty():
    stream = [element(at, user, 9 - at) for at in range(2, 60) for user in "ABC"]
    answers = run(history(), stream=stream, policy="AT-TSM", budget=1, replica="cache")
    assert [len(ranked(answer).split()) for answer in answers[:4]] == [1, 2, 3, 3]
    assert {answer.stats["budget_spent"] for answer in answers} == {1}


def nobody_at_first(*changes: tuple[int, str, int | None]) -> RecordedEndpoint:
    """Nobody has a value at first; then come the changes, of which one may be that it is gone."""
    told: dict[Any, list[Any]] = {key(user): [(0, ())] for user in "AB"}
    for at, user, number in changes:
        told[key(user)].append((at, () if number is None else followers(number)))
    return RecordedEndpoint(told)


@pytest.mark.parametrize("replica", ["snapshot", "cache"])
@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"WST"})[:: 4 if IS_FAST else 1])
def test_a_value_that_comes_or_comes_back_is_found(policy, replica):
    """A key without a value is in no list, but is fetched again once it is stale."""
    stream = [element(at, user, 5) for at in range(2, 300) for user in "AB"]
    remote = nobody_at_first(
        (90_000, "A", 1), (91_000, "B", 2), (150_000, "B", None), (220_000, "B", 4)
    )
    answers = run(remote, stream=stream, policy=policy, budget=2, replica=replica)
    found = [ranked(answer) for answer in answers]
    if policy == "EXACT":
        assert all(answer.stats["exact"] for answer in answers)
        closes = [answer.window.close for answer in answers]
        expected = ["", "B7 A6", "A6", "B9 A6"]
        steps = [sum(close >= at for at in (91_000, 150_000, 220_000)) for close in closes]
        assert found == [expected[step] for step in steps]
    assert found[0] == ""
    assert found[-1] == "B9 A6"
    assert "A6" in found


class Poisoned(Counting):
    """One key is never answered."""

    def fetch(self, keys: Any, limits: Limits, now: int) -> FetchResult:
        fetched = super().fetch([asked for asked in keys if asked != key("A")], limits, now)
        return FetchResult(fetched.answers, 1, {"bad term": 1} if key("A") in keys else {})


def test_a_key_that_is_never_answered_does_not_hold_up_the_others():
    """A has the best stream score, so it would be fetched first at every evaluation."""
    stream = [element(at, user, 9 - "ABCD".index(user)) for at in range(2, 60) for user in "ABCD"]
    endpoint = Poisoned({key(user): [(0, followers(0))] for user in "ABCD"})
    answers = run(endpoint, stream=stream, policy="AT-TSM", budget=1, replica="cache")
    assert list(map(ranked, answers))[:4] == ["", "B8", "B8 C7", "B8 C7 D6"]
    assert [answer.stats.get("unanswered") for answer in answers[:5]] == [1, None, None, None, 1]


class Failing:
    """An endpoint that answers the snapshot, and never again."""

    def __init__(self) -> None:
        self._inner = history()

    def fetch(self, keys: Any, limits: Limits, now: int) -> FetchResult:
        return FetchResult({}, 1, {"time-out": 1})

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        return self._inner.snapshot(limits, now)

    def close(self) -> None:
        pass


def test_an_endpoint_that_fails_leaves_the_answer_to_the_replica_and_says_so():
    answers = run(Failing(), policy="AT-TSM", budget=2)
    assert list(map(ranked, answers))[:2] == ["E7 C6 B5", "G8 E7 C6"]
    assert all(answer.stats["faults"] == {"time-out": 1} for answer in answers)
    assert not any(answer.stats["exact"] for answer in answers)
    assert isinstance(answers[1].content, Solutions)
    assert [row.age for row in answers[1].content.rows] == [12_000, 12_000, 12_000]


@pytest.mark.parametrize("operator", ["auto", "general"])
@pytest.mark.parametrize(
    ("score", "tail", "expected"),
    [
        ("?mentions + ?followers", "LIMIT 3", "C10 E7 C7"),
        ("?mentions + ?followers", "LIMIT 1 OFFSET 2", "C7"),
        ("?mentions * ?followers", "LIMIT 3", "C24 C6 E0"),
        ("-?mentions * ?followers", "LIMIT 2", "E0 C-6"),
        ("?mentions", "LIMIT 2", "E7 C6"),
    ],
)
def test_each_of_several_remote_solutions_of_a_key_is_a_row(operator, score, tail, expected):
    both = RecordedEndpoint(
        {key("C"): [(0, (followers(1) + followers(4)))], key("E"): [(0, followers(0))]}
    )
    text = QUERY.replace("?mentions + ?followers AS", f"{score} AS").replace("LIMIT 3", tail)
    [first, *_] = run(both, text, policy="EXACT", operator=operator)
    assert ranked(first) == expected
    assert first.stats["exact"]


def test_equal_rows_of_a_key_are_in_the_order_of_their_terms():
    """The last of them is cut off by LIMIT: which one that is does not depend on the path."""
    names = tuple({"followers": ox.Literal(1), "name": ox.Literal(name)} for name in "zax")
    endpoint = RecordedEndpoint({key("C"): [(0, names)], key("E"): [(0, names[:1])]})
    text = QUERY.replace("SELECT ?user", "SELECT ?user (CONCAT(?name, '!') AS ?called)").replace(
        ":hasFollowers ?followers", ":hasFollowers ?followers ; :name ?name"
    )
    for operator in ("auto", "general"):
        [first, *_] = run(endpoint, text, policy="EXACT", operator=operator)
        assert isinstance(first.content, Solutions)
        assert [row.bindings["called"].value for row in first.content.rows] == ["z!", "a!", "x!"]


def test_groups_that_may_join_several_remote_solutions_are_counted_as_sparql_does():
    both = RecordedEndpoint(
        {key("C"): [(0, (followers(1) + followers(4)))], key("E"): [(0, followers(0))]}
    )
    text = QUERY.replace("(?mentions + ?followers AS ?score)", "(COUNT(?mentions) AS ?score)")
    for operator in ("auto", "general"):
        options = {"policy": "EXACT", "operator": operator}
        [first, *_] = run(both, text.replace("ORDER", "GROUP BY ?user ORDER"), **options)
        assert ranked(first) == "C2 E1"


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[tuple[int, str]], list[tuple[int, str, int]]]:
    """Draw a stream and changes, such that no two users ever have the same score."""
    stream, changes = [], []
    least = draw(st.sampled_from((0, 12)))
    for at in sorted(draw(st.lists(st.integers(2, 30), min_size=least, max_size=20))):
        place = draw(st.integers(0, 6))
        stream.append(element(at, "ABCDEFG"[place], 100 * draw(st.integers(0, 9)) + place))
    for at in sorted(draw(st.lists(st.integers(1, 30), max_size=8, unique=True))):
        change = draw(st.integers(0, 6)), 100 * draw(st.integers(0, 9))
        changes.append((1000 * at, "ABCDEFG"[change[0]], change[1]))
    return stream, changes


@examples(60)
@given(stories())
def test_the_operator_with_exact_is_the_general_path_with_exact(story):
    """Where a user comes once in a window: a later arrival replaces an earlier one here only."""
    stream, changes = story
    windows = [(9, 3)]
    seen: dict[str, int] = {}
    kept = []
    for at, text in stream:
        user = text.split()[0]
        if at - seen.get(user, -100_000) > 1000 * windows[0][0]:
            kept.append((at, text))
            seen[user] = at
    by_operator = run(history(*changes), stream=kept, policy="EXACT")
    general = run(history(*changes), stream=kept, policy="EXACT", operator="general")
    assert list(map(ranked, by_operator)) == list(map(ranked, general))
    assert all(answer.stats["exact"] for answer in by_operator)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@examples(25)
@given(stories(), st.integers(0, 4), st.integers(0, 3))
def test_no_policy_spends_more_than_its_budget_and_exact_answers_are_those_of_the_oracle(
    policy, story, budget, n
):
    stream, changes = story
    answers = run(history(*changes), stream=stream, policy=policy, budget=budget, n=n, oracle=True)
    for answer in answers:
        if POLICIES[policy].is_bounded:
            assert answer.stats["budget_spent"] <= budget
        if answer.stats["exact"]:
            assert answer.stats["ndcg"] == answer.stats["precision"] == 1.0


@examples(25)
@given(stories())
def test_a_list_that_holds_everything_is_as_good_as_the_whole_window(story):
    stream, changes = story
    everything = run(history(*changes), stream=stream, policy="EXACT")
    listed = run(history(*changes), stream=stream, policy="AT-ASM", n=20)
    assert list(map(ranked, listed)) == list(map(ranked, everything))
