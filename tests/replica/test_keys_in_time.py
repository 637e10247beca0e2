"""Budgets in time: the number of keys follows a latency that changes."""

from __future__ import annotations

import json

from rsp_engine.replica.keys_in_time import KeysInTime

MOST_MS = 80
PER_KEY_MS = 0.25
MOST_KEYS = 200
DELAYS = [(5, 50, 200, 20)[number // 100 % 4] for number in range(1000)]
"""In a fourth of the time, no key at all is answered within 80 ms."""


def spent(delays: list[int], learned: KeysInTime | None, fixed: int = 0) -> tuple[int, int]:
    """Return how many keys were elected, and how many of them were answered in time."""
    elected = answered = 0
    for delay in delays:
        keys = fixed if learned is None else min(learned.allowed(), MOST_KEYS)
        if not keys:
            continue
        ms = delay + PER_KEY_MS * keys
        is_answered = ms <= MOST_MS
        elected += keys
        answered += keys * is_answered
        if learned is not None:
            learned.observe(keys, min(ms, MOST_MS), MOST_MS, is_answered=is_answered)
    return elected, answered


def test_nearly_all_keys_are_answered_in_time_and_more_than_of_any_fixed_number() -> None:
    elected, answered = spent(DELAYS, KeysInTime())
    assert answered >= 0.99 * elected
    for fixed in range(1, MOST_KEYS):
        most, got = spent(DELAYS, None, fixed)
        assert got < 0.99 * most or got < answered


def test_a_service_that_is_too_slow_is_asked_for_a_key_now_and_then() -> None:
    learned = KeysInTime()
    elected, _ = spent([200] * 100, learned)
    assert elected == 7
    assert spent([5] * 60, learned)[1] > 60


def test_the_number_grows_while_time_is_left_though_most_of_it_is_latency() -> None:
    learned = KeysInTime()
    _, answered = spent([60] * 40, learned)
    assert learned.allowed() > 10
    assert answered > 100


def test_a_failure_before_the_time_is_over_says_nothing_about_latency() -> None:
    learned = KeysInTime()
    spent([5] * 5, learned)
    before = learned.state()
    learned.observe(30, 2, MOST_MS, is_answered=False)
    assert learned.state() == before


def test_few_keys_say_little_about_many() -> None:
    learned = KeysInTime()
    spent([5] * 9, learned)
    keys = learned.allowed()
    learned.observe(2, 6, MOST_MS, is_answered=True)
    assert learned.allowed() == keys > 100


def test_what_was_learned_goes_on_from_its_state() -> None:
    learned, again = KeysInTime(), KeysInTime()
    for number in range(0, 400, 50):
        spent(DELAYS[number : number + 50], learned)
        again.restore(json.loads(json.dumps(learned.state())))
        assert again.state() == learned.state()
        assert spent(DELAYS, again) == spent(DELAYS, _copy(learned))


def _copy(learned: KeysInTime) -> KeysInTime:
    copy = KeysInTime()
    copy.restore(learned.state())
    return copy
