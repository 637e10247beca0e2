"""The replica, judged by a naive one that keeps lists."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import StateError
from rsp_engine.replica.endpoints.endpoint import FetchResult
from rsp_engine.replica.store.estimator import DeclaredIntervals, LearnedIntervals
from rsp_engine.replica.store.replica import Replica, ReplicaConfig
from tests.replica.drawn import PATTERN, bags, terms, user, users, value

if TYPE_CHECKING:
    from rsp_engine.replica.pattern import Key

STATIC = ReplicaConfig(PATTERN, DeclaredIntervals(10))

fetches = st.tuples(st.just("apply"), st.dictionaries(users, bags, max_size=5), st.integers(-1, 3))
reads = st.tuples(st.just("values"), st.lists(users, max_size=3), st.just(0))
histories = st.lists(fetches | reads, max_size=12)


def bag(solutions):
    return Counter(tuple(sorted((name, str(term)) for name, term in s.items())) for s in solutions)


@dataclass
class Naive:
    """Keys in the order of use; per key its solutions, last refresh and last change.

    What is refreshed is used before anything is dropped.
    """

    capacity: int | None
    used: list[Key] = field(default_factory=list)
    held: dict[Key, Any] = field(default_factory=dict)

    def use(self, key):
        if key in self.used:
            self.used.remove(key)
        self.used.append(key)
        if self.capacity is not None and len(self.used) > self.capacity:
            del self.held[self.used.pop(0)]

    def values(self, keys):
        for key in keys:
            if key in self.held:
                self.use(key)

    def apply(self, answers, now):
        before = dict(self.held)
        self.values(key for key in answers if key in before and before[key][1] <= now)
        for key, solutions in answers.items():
            old, refresh, change = before.get(key, ((), None, None))
            if refresh is not None and refresh > now:
                continue
            is_same = bag(old) == bag(solutions)
            self.held[key] = (solutions, now, change if is_same and refresh is not None else now)
            self.use(key)

    def known(self, key):
        return bag(self.held[key][0]) if key in self.held else None

    def solutions(self, key):
        return self.known(key) or Counter()


@given(histories, st.none() | st.integers(1, 4))
def test_a_replica_holds_what_a_naive_one_holds(history, capacity):
    replica = Replica(replace(STATIC, capacity=capacity))
    naive = Naive(capacity)
    everyone = [user(n) for n in range(6)]
    numbers = replica.keys.numbers(everyone)
    now = 0
    for act, drawn, later in history:
        now += later
        if act == "values":
            values = replica.values(replica.keys.numbers(drawn))
            assert [bag(v) for v in values] == [naive.solutions(key) for key in drawn]
            naive.values(drawn)
            continue
        before = [naive.known(key) for key in everyone]
        naive.apply(drawn, now)
        changed = [n for n, key in enumerate(everyone) if naive.known(key) != before[n]]
        assert replica.apply(FetchResult(drawn), now).tolist() == changed
        assert replica.is_known(numbers).tolist() == [key in naive.held for key in everyone]
        assert len(replica) == len(naive.held)
        known = [n for n, key in enumerate(everyone) if key in naive.held]
        entries = replica.entries(np.array(known, dtype=np.int64))
        assert entries.last_refresh.tolist() == [naive.held[user(n)][1] for n in known]
        assert entries.last_change.tolist() == [naive.held[user(n)][2] for n in known]
        assert (entries.best_before == entries.last_refresh + entries.interval).all()
    assert [bag(v) for v in replica.values(numbers)] == [naive.solutions(k) for k in everyone]


@given(
    histories,
    histories,
    st.none() | st.integers(1, 4),
    st.sampled_from([DeclaredIntervals(10), LearnedIntervals(3, 0.5)]),
)
def test_a_saved_replica_goes_on_as_it_would_have(before, after, capacity, estimation):
    config = ReplicaConfig(PATTERN, estimation, capacity)
    replica = Replica(config)
    now, _ = run(replica, before, 0)
    state = plain(replica)
    again = Replica.restored(config, state)
    assert plain(again) == state == plain(replica)
    assert run(again, after, now) == run(replica, after, now)
    assert plain(again) == plain(replica)


def plain(replica):
    return json.loads(json.dumps(replica.state()))


def run(replica, history, now):
    seen = []
    for act, drawn, later in history:
        now += later
        if act == "apply":
            seen.append(replica.apply(FetchResult(drawn), now).tolist())
        else:
            seen.append(replica.values(replica.keys.numbers(drawn)))
    return now, seen


@given(st.dictionaries(st.tuples(terms), st.lists(st.fixed_dictionaries({"n": terms})).map(tuple)))
def test_any_terms_can_be_saved(answers):
    replica = Replica(STATIC)
    replica.apply(FetchResult(answers), 0)
    again = Replica.restored(STATIC, json.loads(json.dumps(replica.state())))
    numbers = again.keys.numbers(answers)
    assert again.values(numbers) == list(answers.values())


def test_facts_about_a_key_that_is_refreshed_without_and_with_a_change():
    #  time        0    100       250
    #  fetched     5      5         6
    replica = Replica(STATIC)
    assert replica.apply(FetchResult({user(1): (value(5),)}), 0).tolist() == [0]
    assert replica.apply(FetchResult({user(1): (value(5),)}), 100).tolist() == []
    assert facts(replica, 0) == (100, 0, 110, 10)
    assert replica.apply(FetchResult({user(1): (value(6),)}), 250).tolist() == [0]
    assert facts(replica, 0) == (250, 250, 260, 10)


def facts(replica, number):
    found = replica.entries(np.array([number]))
    return tuple(
        int(column[0])
        for column in (found.last_refresh, found.last_change, found.best_before, found.interval)
    )


def test_what_a_refresh_does_not_answer_stays_as_it_is():
    replica = Replica(STATIC)
    replica.apply(FetchResult({user(1): (value(5),), user(2): (value(6),)}), 0)
    replica.apply(FetchResult({user(2): (value(6),)}, faults={"timeout": 1}), 9)
    assert replica.values([0, 1]) == [(value(5),), (value(6),)]
    assert facts(replica, 0)[0] == 0


def test_a_key_that_is_absent_remotely_is_known():
    replica = Replica(STATIC)
    numbers = replica.keys.numbers([user(1), user(2)])
    assert replica.apply(FetchResult({user(1): ()}), 0).tolist() == [0], "it was not known before"
    assert replica.is_known(numbers).tolist() == [True, False]
    assert replica.values(numbers) == [(), ()]
    assert replica.apply(FetchResult({user(1): ()}), 1).tolist() == [], "and is as it was"


def test_the_order_of_solutions_is_no_change_but_their_number_is():
    replica = Replica(STATIC)
    replica.apply(FetchResult({user(1): (value(1), value(2))}), 0)
    assert replica.apply(FetchResult({user(1): (value(2), value(1))}), 1).tolist() == []
    assert replica.values([0]) == [(value(1), value(2))]
    assert replica.apply(FetchResult({user(1): (value(2), value(1), value(1))}), 2).tolist() == [0]


def test_a_key_that_nobody_fetched_is_stale_and_safe_to_reckon_with():
    replica = Replica(STATIC)
    number = replica.keys.numbers([user(1)])
    entries = replica.entries(number)
    assert entries.is_stale(-(10**15)).all()
    assert (entries.best_before + entries.interval - 10**15 < 0).all()


def test_keys_numbered_by_the_stream_are_cold_until_they_are_fetched():
    replica = Replica(STATIC)
    replica.keys.numbers([user(n) for n in range(100)])
    replica.apply(FetchResult({user(70): (value(1),)}), 0)
    assert np.flatnonzero(replica.is_known(np.arange(100))).tolist() == [70]


def test_a_whole_snapshot_says_what_is_not_there_any_more():
    replica = Replica(STATIC)
    replica.load(FetchResult({user(1): (value(1),), user(2): (value(2),)}), 0)
    assert replica.load(FetchResult({user(1): (value(1),)}), 5).tolist() == [1]
    assert replica.values([0, 1]) == [(value(1),), ()]
    assert facts(replica, 1)[:2] == (5, 5)


def test_a_snapshot_with_faults_says_nothing_of_what_it_lacks():
    replica = Replica(STATIC)
    replica.load(FetchResult({user(1): (value(1),), user(2): (value(2),)}), 0)
    assert replica.load(FetchResult({user(1): (value(3),)}, faults={"row cap": 1}), 5).tolist() == [
        0
    ]
    assert replica.values([0, 1]) == [(value(3),), (value(2),)]


def test_a_dropped_key_becomes_a_cold_miss_and_is_told_as_changed():
    replica = Replica(replace(STATIC, capacity=2))
    replica.apply(FetchResult({user(0): (value(0),), user(1): (value(1),)}), 0)
    replica.values([0])  # used: so 1 is the one to go
    assert replica.apply(FetchResult({user(2): (value(2),)}), 5).tolist() == [1, 2]
    assert replica.is_known(np.arange(3)).tolist() == [True, False, True]


def test_more_answers_than_there_is_room_for_leave_the_last():
    replica = Replica(replace(STATIC, capacity=2))
    replica.apply(FetchResult({user(0): (value(0),), user(1): (value(1),)}), 0)
    answers = {user(n): (value(n),) for n in (2, 3, 1, 0)}
    assert replica.apply(FetchResult(answers), 5).tolist() == []
    assert replica.is_known(replica.keys.numbers([user(n) for n in range(4)])).tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert facts(replica, 0)[0] == 5


def test_intervals_are_learned_from_what_refreshes_show():
    replica = Replica(ReplicaConfig(PATTERN, LearnedIntervals(initial=1000)))
    for now in range(0, 50_000, 1000):
        rare, often = now // 20_000, now // 1000
        replica.apply(FetchResult({user(0): (value(rare),), user(1): (value(often),)}), now)
    intervals = replica.entries(np.array([0, 1])).interval.tolist()
    assert intervals[0] > 10 * intervals[1]
    assert 10_000 < intervals[0] < 40_000


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (replace(STATIC, pattern=replace(PATTERN, service="urn:s")), "another service: 'http://ex"),
        (replace(STATIC, pattern=replace(PATTERN, body="{ }")), "another body"),
        (replace(STATIC, pattern=replace(PATTERN, variables=("n",))), "another variables"),
        (replace(STATIC, capacity=3), "another capacity: None, not 3"),
        (replace(STATIC, estimation=DeclaredIntervals(11)), "another estimation"),
        (replace(STATIC, estimation=LearnedIntervals()), "another estimation"),
    ],
)
def test_a_state_of_another_configuration_is_refused_by_name(other, named):
    with pytest.raises(StateError, match=named):
        Replica.restored(other, Replica(STATIC).state())


def test_a_state_of_another_version_is_refused():
    with pytest.raises(StateError, match="of version 99, not 2"):
        Replica.restored(STATIC, {**Replica(STATIC).state(), "version": 99})


@pytest.mark.parametrize(
    "damage",
    [
        {"keys": {"size": 1, "keys": {"0": [["<a"]]}}},
        {"keys": {"size": 0, "keys": {}}},
        {"keys": {"size": 1, "keys": {}}},
        {"rows": {}},
        {"size": 2},
        {"shared": {}},
        {"used": []},
        {"used": [7]},
        *(
            {"rows": {"0": [row]}}
            for row in (
                [],
                [1, [], [0, 0, 0, 1], [[], 0]],
                [-1, [], [0, 0, 0, 1], [[], 0]],
                ["x", [], [0, 0, 0, 1], [[], 0]],
                [0, [{"n": "no term", "m": None}], [0, 0, 0, 1], [[], 0]],
                [0, [{"n": '"1"'}], [0, 0, 0, 1], [[], 0]],
                [0, ['"1"'], [0, 0, 0, 1], [[], 0]],
                [0, 7, [0, 0, 0, 1], [[], 0]],
                [0, [], [0, 0, 0], [[], 0]],
                [0, [], None, [[], 0]],
                [0, [], [0, 0, 0, 1], None],
                [0, [], [0, 0, 0, 1], [[]]],
            )
        ),
    ],
)
def test_a_damaged_state_is_refused(damage):
    config = ReplicaConfig(PATTERN)
    replica = Replica(config)
    replica.apply(FetchResult({user(1): (value(1),)}), 0)
    with pytest.raises(StateError, match="the saved replica is damaged"):
        Replica.restored(config, {**replica.state(), **damage})


def test_what_is_not_touched_stays_the_same_in_a_state():
    replica = Replica(STATIC)
    replica.load(FetchResult({user(n): (value(n),) for n in range(1000)}), 0)
    before = replica.state()
    replica.apply(FetchResult({user(3): (value(7),)}), 5)
    replica.confirm(np.array([500]), 6)
    after = replica.state()
    others = [block for block in after["rows"] if after["rows"][block] is not before["rows"][block]]
    assert others == ["0", "3"]
    assert all(after["keys"]["keys"][b] is each for b, each in before["keys"]["keys"].items())


@pytest.mark.parametrize("name", [*Replica(STATIC).state()["config"]])
def test_a_state_that_does_not_tell_all_of_its_configuration_is_refused(name):
    state = Replica(STATIC).state()
    del state["config"][name]
    with pytest.raises(StateError, match=f"damaged: it has no {name}"):
        Replica.restored(STATIC, state)


def test_a_replica_without_room_is_refused():
    with pytest.raises(ValueError, match="room for at least 1 key"):
        ReplicaConfig(PATTERN, capacity=0)
