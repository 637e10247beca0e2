"""Keys that are gone are forgotten: memory is bounded, and answers do not depend on it."""

from __future__ import annotations

import gc
import json
import types
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.drivers.intake import Intake
from rsp_engine.engine import Engine
from rsp_engine.evaluators.service.shared_replica import SharedReplica
from rsp_engine.model.answers import Solutions
from rsp_engine.policies.registry import POLICIES
from rsp_engine.replica.endpoints.endpoint import FetchResult, Limits
from rsp_engine.replica.store.keys import Keys
from tests.drivers.cut import cut, texts
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rsp_engine.model.arrays import Integers

EX = "http://example.org/"
MODIFIED = "http://purl.org/dc/terms/modified"
QUERY = """PREFIX : <http://example.org/> REGISTER STREAM :q AS
SELECT {projected} FROM NAMED WINDOW :W ON STREAM :S [RANGE 6s STEP 2s]
WHERE {{ WINDOW :W {{ ?user :mentions ?n }} SERVICE :BKG {{ ?user :is ?{remote} }} }} {rest}"""
QUERIES = {
    "ranked": ("?user (?n + ?f AS ?score)", "ORDER BY DESC(?score) LIMIT 2"),
    "terms": ("?user ?text", "ORDER BY DESC(?text) LIMIT 2"),
    "grouped": (
        "?user (COUNT(*) + ?f AS ?score)",
        "GROUP BY ?user ?f ORDER BY DESC(?score) LIMIT 2",
    ),
    "general": ("?user ?n ?f", ""),
    "ordered": ("(GROUP_CONCAT(?f) AS ?all)", ""),
}


class Remote:
    """Any key has a value, which changes every three seconds; one in five has none."""

    def __init__(self, name: str = "f") -> None:
        self._name = name

    def fetch(self, keys: Any, limits: Limits, now: int) -> FetchResult:
        return FetchResult({key: self._solutions(key, now) for key in keys}, 1, {})

    def _solutions(self, key: Any, now: int) -> Any:
        number = crc32(str(key).encode())
        since = (now // 1000 + number) // 3
        if self._name == "modified":
            return ({"modified": ox.Literal(since)},)
        value = (number + since) % 7
        found = ox.Literal(str(value) if self._name == "text" else value)
        return ({self._name: found},) if number % 5 else ()

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        return FetchResult({}, 1, {})

    def close(self) -> None:
        pass


def engine(kind: str, stream: Iterable[tuple[int, str]], **options: Any) -> Engine:
    modified = MODIFIED if options.pop("is_told", False) else None
    made = Engine(replica="cache", **options)
    made.service(f"{EX}BKG", lambda pattern: Remote(*pattern.variables), modified=modified)
    projected, rest = QUERIES[kind]
    remote = "text" if kind == "terms" else "f"
    made.register(QUERY.format(projected=projected, remote=remote, rest=rest))
    made.bind(f"{EX}S", stream)
    return made


def fits(kind: str, policy: str) -> bool:
    """Tell whether a policy is one for a kind of query: the general path has no list."""
    return kind not in {"general", "ordered"} or POLICIES[policy].proposer != "list"


def element(at: int, user: str, n: int) -> tuple[int, str]:
    return at, f"<{EX}{user}> <{EX}mentions> {n} ."


@contextmanager
def intakes() -> Iterator[list[Intake]]:
    """Note the intakes that are made."""
    made: list[Intake] = []
    init = Intake.__init__

    def noted(self: Intake, *given: Any, **more: Any) -> None:
        init(self, *given, **more)
        made.append(self)

    with patch.object(Intake, "__init__", noted):
        yield made


def weight(root: object) -> int:
    """Count the objects that can be reached, and the numbers in arrays."""
    seen: set[int] = set()
    found, waiting = 0, [root]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(each))
        found += each.size if isinstance(each, np.ndarray) else 1
        waiting.extend(gc.get_referents(each))
    return found


def sizes(kind: str, count: int, **options: Any) -> tuple[int, int]:
    """Return the sizes in memory and of the saved state after `count` users, one arrival each."""
    stream = [element(100 * at, f"u{at:06}", at % 5) for at in range(count)]
    with intakes() as made:
        for answer in engine(kind, stream, **options).run():
            if answer.window.close >= 100 * count - 4000:
                break
    [intake] = made
    saved = [step.state() for step in intake._steps]
    return weight(intake._steps), len(json.dumps(saved))


@pytest.mark.parametrize("kind", ["ranked", "grouped", "general"])
def test_that_a_key_has_no_value_is_forgotten_with_its_windows(kind):
    """Even if the replica is unbounded."""
    policy = "AT-TSM" if fits(kind, "AT-TSM") else "WSJ-LRU"
    with patch.object(Remote, "_solutions", lambda *_: ()):
        few, many = (sizes(kind, count, policy=policy, budget=100) for count in (400, 4_000))
    assert many[0] < 1.2 * few[0]
    assert many[1] < 1.2 * few[1]


@pytest.mark.parametrize(
    ("policy", "is_told"), [("AT-TSM", False), ("WSJ-LRU", True), ("AT-VOI", True)]
)
@pytest.mark.parametrize("kind", sorted(QUERIES))
def test_what_is_held_depends_on_the_capacity_and_the_window_not_on_how_many_came(
    kind, is_told, policy
):
    if not fits(kind, policy):
        pytest.skip("the general path has no list")
    options = {"policy": policy, "budget": 6, "capacity": 10, "is_told": is_told}
    # AT-VOI keeps the last 300 changes: they come with some hundred users.
    counts = (1000, 8000) if policy == "AT-VOI" else (200, 2000)
    few, many = (sizes(kind, count, **options) for count in counts)
    assert all(after <= 1.2 * before for before, after in zip(few, many, strict=True))


def test_after_a_burst_what_is_saved_is_small_again():
    quiet = [element(500 * at, f"u{at}", 1) for at in range(60)]
    burst = [element(2000, f"b{at}", 1) for at in range(2000)]
    sizes = []
    for stream in (quiet, sorted(quiet + burst, key=lambda each: each[0])):
        for arrivals in ("latest", "all"):
            with intakes() as made:
                list(engine("ranked", stream, capacity=10, arrivals=arrivals).run())
            sizes.append(len(json.dumps(made[0]._steps[0].state())))
    assert sizes[2] <= 1.2 * sizes[0]
    assert sizes[3] <= 1.2 * sizes[1]


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[int, str]]:
    """Draw a stream of few users, who leave and come back."""
    found = []
    at = 0
    for _ in range(draw(st.integers(1, 25))):
        at += draw(st.sampled_from([0, 1, 500, 1500, 7000]))
        found.append(element(at, draw(st.sampled_from("abcdefgh")), draw(st.integers(0, 3))))
    return found


def nothing_forgotten() -> Any:
    """Let no number be given to another key.

    That a key has no value is dropped with its windows here too: it would take up room.
    """

    def forget(self: SharedReplica, left: Integers, _: object) -> Integers:
        self.replica.drop_empty(left[~self.is_used(left)])
        return np.empty(0, dtype=np.int64)

    return patch.object(SharedReplica, "forget", forget)


def no_number_given_again() -> Any:
    """Let keys be forgotten, but never reuse their numbers."""

    def forget(self: Keys, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self._numbers[self._keys.pop(number)]
            self._order.pop(number, None)

    return patch.object(Keys, "forget", forget)


WITHOUT_A_PAST = sorted(name for name in POLICIES if "VOI" not in name)


@pytest.mark.parametrize(
    ("kind", "arrivals"), [*((kind, "latest") for kind in sorted(QUERIES)), ("ranked", "all")]
)
@examples(8)
@given(st.data())
def test_answers_are_those_of_an_engine_that_forgets_nothing(kind, arrivals, data):
    options: dict[str, Any] = {
        "policy": data.draw(st.sampled_from([n for n in WITHOUT_A_PAST if fits(kind, n)])),
        "budget": data.draw(st.integers(1, 4)),
        "capacity": data.draw(st.integers(1, 3)),
        "n": data.draw(st.integers(0, 2)),
        "max_delay": data.draw(st.sampled_from([0, 3000])),
        "is_told": data.draw(st.booleans()),
        "oracle": kind not in {"general", "ordered"},
    }
    if kind in {"ranked", "terms"}:
        options["arrivals"] = arrivals
    stream = data.draw(streams())
    with nothing_forgotten():
        expected = texts(engine(kind, stream, **options))
    assert texts(engine(kind, stream, **options)) == expected
    with cut():
        assert texts(engine(kind, stream, **options)) == expected


@pytest.mark.parametrize("policy", ["AT-VOI", "WSJ-VOI"])
@pytest.mark.parametrize("kind", ["ranked", "grouped"])
@examples(8)
@given(st.data())
def test_what_was_learned_of_a_key_never_reaches_the_next_that_has_its_number(kind, policy, data):
    options: dict[str, Any] = {
        "policy": policy,
        "budget": data.draw(st.integers(1, 4)),
        "capacity": data.draw(st.integers(1, 3)),
        "is_told": data.draw(st.booleans()),
    }
    stream = data.draw(streams())
    with no_number_given_again():
        expected = texts(engine(kind, stream, **options))
    for each in (nullcontext(), cut()):
        with each:
            assert texts(engine(kind, stream, **options)) == expected


def test_a_key_that_comes_back_is_cold_again():
    stream = [element(1000, "a", 1), *(element(at, "b", 1) for at in range(20_000, 40_000, 1000))]
    stream += [element(60_000, "a", 1), element(80_000, "b", 1)]
    answers = list(engine("ranked", stream, policy="AT-TSM", capacity=1).run())
    for answer in answers:
        assert isinstance(answer.content, Solutions)
        assert all(row.age is not None and row.age <= 20_000 for row in answer.content.rows)
