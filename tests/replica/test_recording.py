"""Recorded answers: a replay sends no request and returns the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import StateError
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, FetchResult, Limits
from rsp_engine.replica.endpoints.recording import RecordingEndpoint, fetched_from, fetched_state
from tests.replica.drawn import terms, user, users, value
from tests.thoroughness import examples


class Counting:
    """Answers each call with another value, so that asking again would show."""

    def __init__(self):
        self.calls = 0
        self.is_closed = False

    def fetch(self, keys, limits, now):
        self.calls += 1
        return FetchResult({key: (value(self.calls),) for key in keys}, 1, {"time-out": self.calls})

    def snapshot(self, limits, now):
        return self.fetch([user(1), user(2)], limits, now)

    def close(self):
        self.is_closed = True


questions = st.lists(st.tuples(st.integers(0, 3), st.none() | st.lists(users, max_size=3)))


def run(endpoint, asked):
    return [
        endpoint.snapshot(UNLIMITED, now) if keys is None else endpoint.fetch(keys, UNLIMITED, now)
        for now, keys in asked
    ]


@given(questions, questions)
def test_a_replay_sends_nothing_until_it_comes_to_what_is_new(before, after):
    first = RecordingEndpoint(Counting())
    answers = run(first, before)
    written = json.loads(json.dumps(first.take().calls))
    behind = Counting()
    again = RecordingEndpoint(behind, written)
    assert run(again, before) == answers
    assert behind.calls == 0
    run(again, after)
    assert behind.calls == len(after)
    replayed, new, _ = again.take()
    assert (replayed, len(new)) == (len(before), len(after))


@examples(40)
@given(
    st.builds(
        FetchResult,
        st.dictionaries(
            st.lists(terms, max_size=2).map(tuple),
            st.lists(st.dictionaries(st.sampled_from("nm"), terms), max_size=2).map(tuple),
        ),
        st.integers(0, 9),
        st.dictionaries(st.text(), st.integers(1, 9)),
    )
)
def test_whatever_was_fetched_reads_back(fetched):
    assert fetched_from(json.loads(json.dumps(fetched_state(fetched)))) == fetched


def test_calls_are_taken_once():
    recording = RecordingEndpoint(Counting())
    recording.fetch([user(1)], UNLIMITED, 0)
    assert len(recording.take().calls) == 1
    assert recording.take() == (0, [], False)


def test_limits_reach_the_endpoint_behind_and_it_is_closed():
    seen = []

    class Noting(Counting):
        def fetch(self, keys, limits, now):
            seen.append((limits, now))
            return super().fetch(keys, limits, now)

    behind = Noting()
    recording = RecordingEndpoint(behind)
    recording.fetch([user(1)], Limits(3, 50), 7)
    recording.close()
    assert seen == [(Limits(3, 50), 7)]
    assert behind.is_closed


@pytest.mark.parametrize(("now", "keys"), [(1, [user(1)]), (0, [user(2)]), (0, None)])
def test_the_answers_of_another_run_are_refused(now, keys):
    first = RecordingEndpoint(Counting())
    first.fetch([user(1)], UNLIMITED, 0)
    again = RecordingEndpoint(Counting(), first.take().calls)
    with pytest.raises(StateError, match="those of another run: it asked at 0"):
        run(again, [(now, keys)])


@pytest.mark.parametrize(
    "damage", [{"answers": None}, {"answers": [[["<urn:a"], []]]}, {"faults": 7}, {"answers": [7]}]
)
def test_a_damaged_answer_is_refused(damage):
    first = RecordingEndpoint(Counting())
    first.fetch([user(1)], UNLIMITED, 0)
    (call,) = first.take().calls
    again = RecordingEndpoint(Counting(), [{**call, **damage}])
    with pytest.raises(StateError, match="damaged"):
        again.fetch([user(1)], UNLIMITED, 0)
