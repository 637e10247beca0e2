"""The elected keys in the statistics of answers, against the ages that fetches leave."""

import pyoxigraph as ox
import pytest

from rsp_engine.engine import Engine
from rsp_engine.policies.registry import POLICIES

EX = "http://example.org/"
USERS = 8
GENERAL = f"""PREFIX : <{EX}>
SELECT ?user ?n FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]
WHERE {{ WINDOW :w {{ ?user :mentions ?m }} SERVICE :users {{ ?user :followers ?n }} }}"""
RANKED = GENERAL + " ORDER BY DESC(?n) LIMIT 2"


def run(text, policy, **options):
    remote = ox.Store()
    engine = Engine(policy=policy, budget=3, **options)
    engine.service(f"{EX}users", remote)
    engine.register(text, "q")
    stream = [
        (1_000 + 10_000 * window + user, f"<{EX}u{user}> <{EX}mentions> {window} .")
        for window in range(6)
        for user in range(USERS)
    ]
    engine.bind(f"{EX}s", stream)
    change(remote, 0)
    answers = []
    for number, answer in enumerate(engine.run(), 1):
        answers.append(answer)
        change(remote, number)
    return answers


def change(remote, number):
    """Let the users with even numbers have other followers."""
    remote.clear()
    for user in range(USERS):
        value = ox.Literal(100 * user + number * (1 - user % 2))
        place = (ox.NamedNode(f"{EX}u{user}"), ox.NamedNode(f"{EX}followers"), value)
        remote.add(ox.Quad(*place))


@pytest.mark.parametrize("text", [GENERAL, RANKED], ids=["general", "ranked"])
def test_the_value_of_lru_is_the_age_of_a_key_and_its_outcome_whether_it_has_changed(text):
    fetched: dict[str, int] = {}
    for answer in run(text, "WSJ-LRU", elected=True):
        now = answer.window.close
        elected = answer.stats["elected"]
        assert len(elected) == answer.stats["budget_spent"] == 3
        for each in elected:
            assert each["service"] == f"{EX}users"
            user = each["key"]["user"]
            is_even = int(user.removesuffix(">")[-1]) % 2 == 0
            has_changed = is_even and now > 10_000
            if user in fetched:
                assert each["value"] == now - fetched[user]
                assert each["outcome"] == ("changed" if has_changed else "unchanged")
            fetched[user] = now
        values = [each["value"] for each in elected]
        assert values == sorted(values, reverse=True)
    assert len(fetched) == USERS


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_report_changes_no_answer(policy):
    plain, told = run(RANKED, policy), run(RANKED, policy, elected=True)
    for one, other in zip(plain, told, strict=True):
        stats = dict(other.stats)
        elected = stats.pop("elected")
        assert (one.content, one.stats) == (other.content, stats)
        assert len(elected) == other.stats["budget_spent"]
        if policy.endswith("RND"):
            assert all(each["value"] is None for each in elected)
        elif policy not in ("AT-BSM", "AT-TSM", "AT-ASM", "EXACT"):
            values = [each["value"] for each in elected]
            assert policy == "WST" or None not in values
