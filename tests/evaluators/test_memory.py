"""Ranked queries with the memory `list`: only the objects of the Super-MTK+N list are kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.errors import PlanError
from rsp_engine.evaluators.acquatop.listed_objects import ListedObjects
from rsp_engine.model.answers import Answer, Solutions
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint
from tests.drivers.cut import cut, texts
from tests.evaluators.test_forgetting import intakes
from tests.evaluators.test_joined import QUERY, STREAM, element, followers, key, ranked
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.evaluators.acquatop.arrival_objects import ObjectTable
    from rsp_engine.evaluators.acquatop.evaluator import AcquaTopEvaluator

EX = "http://example.org/"
ALL = QUERY.replace("SELECT ?user", "SELECT ?user ?mentions")


def joined(
    endpoint: Any, stream: Any, text: str = ALL, changes: Any = None, **options: Any
) -> Engine:
    engine = Engine(t0=1000, **options)
    engine.service(f"{EX}BKG", endpoint)
    if changes is not None:
        engine.changes(f"{EX}BKG", changes)
    engine.register(text)
    engine.bind(f"{EX}S", stream)
    return engine


def run(*given: Any, **more: Any) -> list[Answer]:
    return list(joined(*given, **more).run())


def history(users: str, *changes: tuple[int, str, int]) -> RecordedEndpoint:
    told: dict[Any, list[Any]] = {key(user): [(0, followers(0))] for user in users}
    for at, user, number in changes:
        told[key(user)].append((at, followers(number)))
    return RecordedEndpoint(told)


def change(at: int, user: str, number: int) -> tuple[int, str]:
    return at, f"<{EX}{user}> <{EX}hasFollowers> {number} ."


def test_a_changed_object_outside_the_list_is_scored_with_the_least_value_of_its_pane():
    """C, D and H are in one pane, with 6, 2 and 1. D is outside the list, and gains 9."""
    options: dict[str, Any] = {"n": 0, "budget": 0, "policy": "AT-TSM"}
    stream = [*STREAM[:3], element(6, "D", 2), element(6, "H", 1), *STREAM[4:]]
    told = [change(10_500, "D", 9)]
    for memory, second, least in (("table", "D11 G8 E7", 2), ("list", "D10 G8 E7", 1)):
        answers = run(history("ABCDEFGH"), stream, changes=told, memory=memory, **options)
        assert [ranked(answer) for answer in answers[:2]] == ["E7 C6 B5", second]
        assert [answer.stats["exact"] for answer in answers[:2]] == [True, memory == "table"]
        assert isinstance(answers[1].content, Solutions)
        assert answers[1].content.rows[0].bindings["mentions"] == ox.Literal(least)


def test_an_object_that_was_kept_out_returns_when_another_one_falls():
    """E keeps C out of a list of one for each window. E falls; the list has forgotten C."""
    text, told = ALL.replace("LIMIT 3", "LIMIT 1"), [change(10_500, "E", -9)]
    for memory, second, is_exact in (("table", "C6", True), ("list", "A2", False)):
        answers = run(
            history("ABCDEFG"),
            STREAM[:7],
            text,
            told,
            memory=memory,
            n=0,
            budget=0,
            policy="AT-TSM",
        )
        assert [ranked(answer) for answer in answers[:2]] == ["E7", second]
        assert [answer.stats["exact"] for answer in answers[:2]] == [True, is_exact]


def test_a_score_that_may_fall_keeps_a_changed_object_out():
    """Of E only the pane is known, and more mentions do not mean a better score."""
    text = ALL.replace(
        "?mentions + ?followers AS", "?followers + (?mentions - 3) * (4 - ?mentions) AS"
    )
    stream = [*STREAM[:6], *(element(9, user, 3) for user in "HIJ"), *STREAM[6:]]
    told = [change(10_500, "E", 90)]
    options: dict[str, Any] = {"n": 0, "budget": 0, "policy": "AT-TSM"}
    table, lists = (
        run(history("ABCDEFGHIJ"), stream, text, told, memory=memory, **options)
        for memory in ("table", "list")
    )
    assert [ranked(answer) for answer in table[:2]] == ["J0 I0 H0", "E78 J0 I0"]
    assert [ranked(answer) for answer in lists[:2]] == ["J0 I0 H0", "J0 I0 H0"]
    assert [answer.stats["exact"] for answer in lists[:2]] == [True, False]


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (
            QUERY.replace("ORDER BY DESC(?score)\nLIMIT 3", ""),
            {},
            "is for ranked queries that join",
        ),
        (QUERY, {"arrivals": "all"}, "with --arrivals all, each arrival is an object"),
        (QUERY, {"oracle": True}, "the oracle ranks all objects"),
        (QUERY, {"policy": "WSJ-LRU"}, "the policy WSJ-LRU considers all objects"),
        (
            QUERY.replace("?user :hasMentions", "?user :in ?place ; :hasMentions").replace(
                "SELECT ?user", "SELECT ?user ?place"
            ),
            {"match": "element"},
            "?place would be forgotten with the objects that leave the list",
        ),
        (
            QUERY.replace("?mentions + ?followers", "COUNT(*) + ?followers").replace(
                "ORDER", "GROUP BY ?user ?followers ORDER"
            ),
            {},
            "groups change as the window slides",
        ),
    ],
    ids=["not ranked", "all arrivals", "oracle", "policy", "variable", "groups"],
)
def test_a_query_that_needs_every_object_is_refused(text, options, reason):
    with pytest.raises(PlanError) as refused:
        run(history("ABCDEFG"), STREAM, text, memory="list", **options)
    assert reason in str(refused.value)
    assert "remove --memory" in str(refused.value)


USERS = "ABCDEFGHIJKL"
TIMES = st.integers(1, 40)
VALUES = st.integers(0, 6)
ARRIVALS = st.lists(st.tuples(TIMES, st.sampled_from(USERS), VALUES), min_size=5, max_size=60)
CHANGES = st.lists(st.tuples(TIMES, st.sampled_from(USERS), VALUES), max_size=12)


@pytest.mark.parametrize("is_pushed", [False, True], ids=["fetched", "pushed"])
@examples(40)
@given(ARRIVALS, CHANGES, st.sampled_from([(0, 1), (1, 0), (3, 3)]), st.booleans())
def test_an_answer_that_says_it_is_exact_is_that_of_the_table(
    is_pushed, arrivals, changes, sizes, has_texts
):
    """Values are fetched within the budget, or pushed. A text makes all scores terms."""
    n, budget = sizes
    stream = [element(*arrival) for arrival in sorted(arrivals)]
    if has_texts:
        stream[-1] = stream[-1][0], f'<{EX}A> <{EX}hasMentions> "many" .'
    told = sorted({(at, user): number for at, user, number in changes}.items())
    pushed = [change(1000 * at, user, number) for (at, user), number in told]
    recorded = [(1000 * at, user, number) for (at, user), number in told]
    options: dict[str, Any] = {"n": n, "budget": budget, "policy": "AT-TSM"}
    endpoint = history(USERS) if is_pushed else history(USERS, *recorded)
    feed = pushed if is_pushed else None
    table = run(endpoint, stream, changes=feed, **options)
    lists = run(endpoint, stream, changes=feed, memory="list", **options)
    assert [answer.window for answer in lists] == [answer.window for answer in table]
    for one, other in zip(lists, table, strict=True):
        if one.stats["exact"]:
            assert one.content == other.content
            assert other.stats["exact"]
    whole = texts(joined(endpoint, stream, changes=feed, memory="list", **options))
    with cut():
        assert texts(joined(endpoint, stream, changes=feed, memory="list", **options)) == whole
    if is_pushed:
        assert all(answer.stats["exact"] for answer in table)
        exact = run(endpoint, stream, changes=feed, **(options | {"policy": "EXACT"}))
        assert [answer.content for answer in table] == [answer.content for answer in exact]


@examples(30)
@given(ARRIVALS, st.integers(0, 3))
def test_without_changes_outside_the_list_nothing_is_lost(arrivals, n):
    stream = [element(*arrival) for arrival in sorted(arrivals)]
    table, lists = (
        run(history(USERS), stream, memory=memory, n=n, budget=2, policy="AT-TSM")
        for memory in ("table", "list")
    )
    assert [(a.window, a.content) for a in lists] == [(a.window, a.content) for a in table]


def tables(evaluator: AcquaTopEvaluator) -> tuple[ListedObjects, ObjectTable]:
    objects = evaluator._objects
    assert isinstance(objects, ListedObjects)
    return objects, objects._table


def test_only_the_list_is_kept():
    """Two thousand users in a window, and a list of 2+2 for each of its three panes at most."""
    users = [f"u{number}" for number in range(2000)]
    stream = [element(2 + at // 500, user, at % 97) for at, user in enumerate(users)]
    told: dict[Any, Any] = {key(user): [(0, followers(at % 89))] for at, user in enumerate(users)}
    text = QUERY.replace("LIMIT 3", "LIMIT 2")
    with intakes() as made:
        run(RecordedEndpoint(told), stream, text, memory="list", n=2, policy="AT-TSM")
        [intake] = made
        objects, table = tables(intake._steps[0]._evaluator)  # type: ignore[arg-type]
    assert len(table) == len(objects.keys) <= 3 * 4
    rows = objects.state()["population"]["rows"]
    assert len(json.dumps(rows)) < 3 * 4 * 150
