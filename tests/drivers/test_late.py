"""Late elements: a window that holds the same elements has the same answer, however they came."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine import Engine
from rsp_engine.model.answers import Solutions
from rsp_engine.model.windows import TimeFrame
from rsp_engine.options import OPERATORS
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint
from tests.drivers.cut import ALWAYS, cut
from tests.drivers.split_runs import in_splits
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EX = "http://example.org/"
OF_STREAMS = {"eaa", "sla", "approximate"}
RANKERS = [operator for operator in OPERATORS if operator not in OF_STREAMS]
POLICIES = ["AT-TSM", "AT-LRU", "WSJ-LRU", "WST"]


class Reading(NamedTuple):
    """An element: when it came, of which key, and what."""

    time: int
    key: str
    value: int | str

    @property
    def triple(self) -> str:
        return f"<{EX}{self.key}> <{EX}p> {self.term}"

    @property
    def term(self) -> str:
        return str(ox.Literal(self.value))

    @property
    def text(self) -> str:
        return f"<{EX}{self.key}>\t{self.term}"

    @property
    def rank(self) -> tuple[int, int | str]:
        """The sort key in the order of terms: numbers come before texts."""
        return isinstance(self.value, str), self.value


class Run(NamedTuple):
    """A window, the maximal delay in milliseconds, and the elements in the order of reading."""

    frame: TimeFrame
    max_delay: int
    read: list[Reading]
    k: int

    @property
    def window(self) -> str:
        return f"[RANGE {self.frame.range}ms STEP {self.frame.step}ms]"

    def contents(self) -> dict[int, list[Reading]]:
        """Return what each window holds: an element is in its windows that are not closed yet."""
        found: dict[int, list[Reading]] = defaultdict(list)
        high = -inf
        for reading in self.read:
            pane = self.frame.pane(reading.time)
            closed = self.frame.last_closed(high - self.max_delay)
            high = max(high, reading.time)
            if pane is not None:
                for window in range(int(max(pane.first, closed + 1)), pane.last + 1):
                    found[window].append(reading)
        return found


values = st.integers(0, 2)
kinds = st.sampled_from((values, st.just(1), values | st.sampled_from(["a", "b"]), st.just("a")))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Draw elements in some order, with many ties, and how long windows wait for late ones."""
    size, step = draw(st.sampled_from([(4, 2), (6, 1), (5, 2), (12, 3), (3, 3), (2, 3)]))
    t0 = draw(st.sampled_from([0, -30]))
    frame = TimeFrame(size, step, t0, draw(st.sampled_from(["(]", "[)"])))
    value = draw(kinds)
    keys = st.sampled_from(draw(st.sampled_from([["ka", "kb"], ["ka", "kb", "kc", "kd", "ke"]])))
    times = st.integers(t0 + 1, t0 + draw(st.sampled_from([6, 12])))
    read = draw(st.lists(st.builds(Reading, times, keys, value), min_size=4, max_size=14))
    max_delay = draw(st.sampled_from([0, 0, 1, 2, 5, 40]))
    return Run(frame, max_delay, read, draw(st.integers(1, 3)))


def numeric(run: Run) -> Run:
    """Let all values be numbers."""
    return run._replace(
        read=[r if isinstance(r.value, int) else r._replace(value=3) for r in run.read]
    )


def from_zero(run: Run) -> Run:
    """Let time begin with zero: the name of a graph tells no instant before it."""
    t0 = run.frame.t0
    read = [reading._replace(time=reading.time - t0) for reading in run.read]
    return run._replace(frame=replace(run.frame, t0=0), read=read)


def query(run: Run, select: str, where: str, tail: str) -> str:
    return f"""PREFIX : <{EX}> REGISTER RSTREAM :q AS SELECT {select}
    FROM NAMED WINDOW :w ON :s {run.window} WHERE {{ {where} }} {tail} LIMIT {run.k}"""


def ranked(run: Run, direction: str = "DESC") -> str:
    return query(run, "?s ?v", "WINDOW :w { ?s :p ?v }", f"ORDER BY {direction}(?v)")


def grouped(run: Run, function: str) -> str:
    where, tail = "WINDOW :w { ?s :p ?v }", "GROUP BY ?s ORDER BY DESC(?n)"
    return query(run, f"?s ({function}(?v) AS ?n)", where, tail)


def served(run: Run) -> str:
    where = "WINDOW :w { ?s :p ?v } SERVICE :far { ?s :r ?r }"
    return query(run, "?s (?v + ?r AS ?n)", where, "ORDER BY DESC(?n)")


def counted(run: Run) -> str:
    where = "WINDOW :w { ?s :p ?v } SERVICE :far { ?s :r ?r }"
    return query(
        run, "?s (COUNT(?v) + ?r AS ?n)", where, "GROUP BY ?s ?r ORDER BY DESC(COUNT(?v) + ?r)"
    )


def paired(run: Run) -> str:
    where = "WINDOW :w { ?a :p ?x . ?b :p ?y } FILTER (STR(?a) < STR(?b))"
    return query(run, "?a ?x ?b ?y", where, "ORDER BY ABS(?x - ?y)")


def remote(key: str) -> int:
    return (ord(key[1]) - ord("a")) // 2


def far() -> RecordedEndpoint:
    keys = ["ka", "kb", "kc", "kd"]
    told: dict[Any, Any] = {
        (ox.NamedNode(EX + key),): [(-1000, ({"r": ox.Literal(remote(key))},))] for key in keys
    }
    return RecordedEndpoint(told)


def answers(run: Run, text: str, path: Path | None = None, **options: Any) -> dict[int, list[str]]:
    """Return the rows of each window, as text, of elements in a file or at hand."""
    frame = run.frame
    engine = Engine(bounds=frame.bounds, t0=frame.t0, max_delay=run.max_delay, **options)
    if "SERVICE" in text:
        engine.service(f"{EX}far", far())
    engine.register(text)
    read = [(reading.time, f"{reading.triple} .") for reading in run.read]
    engine.bind(f"{EX}s", read if path is None else str(path))
    found = {}
    for answer in engine.run():
        assert isinstance(answer.content, Solutions)
        rows = ["\t".join(map(str, row.bindings.values())) for row in answer.content.rows]
        found[(answer.window.open - frame.t0) // frame.step] = rows
    return found


def expected(run: Run, rows: Callable[[list[Reading]], Iterable[str]]) -> dict[int, list[str]]:
    return {window: list(rows(held))[: run.k] for window, held in sorted(run.contents().items())}


def latest(held: list[Reading], name: Callable[[Reading], str]) -> list[Reading]:
    """Return the latest reading of each name, of one time that with the larger text."""
    found: dict[str, Reading] = {}
    for reading in sorted(held, key=lambda r: (r.time, r.text)):
        found[name(reading)] = reading
    return list(found.values())


def by_value(held: list[Reading], direction: str = "DESC") -> Iterable[str]:
    """Rank as is defined: by the value, then the later time, then the larger text."""
    found = sorted(latest(held, lambda r: r.text), key=lambda r: (r.time, r.text), reverse=True)
    found.sort(key=lambda r: r.rank, reverse=direction == "DESC")
    return (f"<{EX}{r.key}>\t{r.term}" for r in found)


def by_group(held: list[Reading], function: str) -> Iterable[str]:
    """Rank keys by an aggregate of their readings, then the later time, then the larger key."""
    groups: dict[str, list[Reading]] = defaultdict(list)
    for reading in latest(held, lambda r: r.text):
        groups[reading.key].append(reading)
    made: dict[str, Callable[[list[Any]], Any]] = {"COUNT": len, "SUM": sum, "MAX": max}
    ranks = [
        (made[function]([r.value for r in mine]), max(r.time for r in mine), key)
        for key, mine in groups.items()
    ]
    return (f"<{EX}{key}>\t{ox.Literal(n)}" for n, _, key in sorted(ranks, reverse=True))


def by_score(held: list[Reading], arrivals: str = "latest") -> Iterable[str]:
    """Rank readings, the latest of each key or all, by what the remote side adds."""
    of_key = arrivals == "latest"
    found = [r for r in latest(held, lambda r: r.key if of_key else r.text) if r.key != "ke"]
    ranks = sorted(
        ((number(r) + remote(r.key), r.time, r.text, r.key) for r in found), reverse=True
    )
    return (f"<{EX}{key}>\t{ox.Literal(score)}" for score, _, _, key in ranks)


def by_count(held: list[Reading]) -> Iterable[str]:
    """Rank keys by how many readings they have and what the remote side adds."""
    found = latest(held, lambda r: r.text)
    counts = Counter(r.key for r in found if r.key != "ke")
    came = {r.key: r.time for r in sorted(found, key=lambda r: r.time)}
    ranks = sorted(((n + remote(key), came[key], key) for key, n in counts.items()), reverse=True)
    return (f"<{EX}{key}>\t{ox.Literal(score)}" for score, _, key in ranks)


def by_difference(held: list[Reading]) -> Iterable[str]:
    """Rank pairs: the closest first, then those whose later object came last, then the other."""
    found = latest(held, lambda r: r.text)
    ranks = []
    for one, other in product(found, found):
        if one.key < other.key:
            marks = sorted(((r.time, r.text) for r in (one, other)), reverse=True)
            ranks.append((-abs(number(one) - number(other)), marks, f"{one.text}\t{other.text}"))
    return (text for _, _, text in sorted(ranks, reverse=True))


def number(reading: Reading) -> int:
    assert isinstance(reading.value, int)
    return reading.value


@pytest.mark.parametrize("max_delay", [0, 2])
@pytest.mark.parametrize("operator", RANKERS)
def test_of_equals_the_later_event_time_wins_and_not_the_later_arrival(operator, max_delay):
    """(0,4] (2,6]    read: 4 kB 5, 5 kC 1, 3 kA 5."""
    read = [Reading(4, "kB", 5), Reading(5, "kC", 1), Reading(3, "kA", 5)]
    run = Run(TimeFrame(4, 2), max_delay, read, 1)
    found = answers(run, ranked(run), operator=operator)
    assert found[1] == [f"<{EX}kB>\t{ox.Literal(5)}"]


@pytest.mark.parametrize("operator", RANKERS)
@examples(25)
@given(runs(), st.sampled_from(["DESC", "ASC"]))
def test_rankings_depend_on_what_windows_hold_alone(operator, run: Run, direction):
    found = answers(run, ranked(run, direction), operator=operator)
    assert found == expected(run, lambda held: by_value(held, direction))


@pytest.mark.parametrize("operator", RANKERS)
@examples(25)
@given(runs())
def test_rankings_are_right_where_an_instant_has_no_room_for_positions(operator, run: Run):
    at = "rsp_engine.operators.scoring.positions."
    with patch(f"{at}_BITS", 1), patch(f"{at}_SLOTS", 2), patch(f"{at}_STEP", 1):
        assert answers(run, ranked(run), operator=operator) == expected(run, by_value)


@pytest.mark.parametrize("operator", ["auto", "general"])
@pytest.mark.parametrize("function", ["COUNT", "SUM", "MAX"])
@examples(25)
@given(runs())
def test_rankings_of_groups_depend_on_what_windows_hold_alone(operator, function, run: Run):
    run = numeric(run)
    found = answers(run, grouped(run, function), operator=operator)
    assert found == expected(run, lambda held: by_group(held, function))


@pytest.mark.parametrize("policy", [*POLICIES, None])
@pytest.mark.parametrize("arrivals", ["latest", "all"])
@examples(25)
@given(runs())
def test_the_latest_arrival_is_that_of_the_latest_event_time(policy, arrivals, run: Run):
    run = numeric(run)
    how = {"operator": "general"} if policy is None else {"policy": policy}
    found = answers(run, served(run), arrivals=arrivals, **how)
    assert found == expected(run, lambda held: by_score(held, arrivals))


@pytest.mark.parametrize("policy", [*POLICIES, None])
@examples(25)
@given(runs())
def test_remote_rankings_of_groups_depend_on_what_windows_hold_alone(policy, run: Run):
    run = numeric(run)
    how = {"operator": "general"} if policy is None else {"policy": policy}
    assert answers(run, counted(run), **how) == expected(run, by_count)


@pytest.mark.parametrize("operator", ["auto", "general"])
@examples(25)
@given(runs())
def test_rankings_of_pairs_depend_on_what_windows_hold_alone(operator, run: Run):
    run = numeric(run)
    assert answers(run, paired(run), operator=operator) == expected(run, by_difference)


KINDS: dict[str, tuple[Callable[[Run], str], Callable[[list[Reading]], Iterable[str]]]] = {
    "ranked": (ranked, by_value),
    "grouped": (lambda run: grouped(run, "SUM"), lambda held: by_group(held, "SUM")),
    "served": (served, by_score),
    "counted": (counted, by_count),
    "paired": (paired, by_difference),
}


@pytest.mark.parametrize("kind", KINDS)
@examples(10)
@given(runs())
def test_a_run_with_late_elements_can_be_cut_anywhere(kind, run: Run):
    run = numeric(run)
    text, rows = KINDS[kind]
    with cut(ALWAYS):
        assert answers(run, text(run)) == expected(run, rows)


@pytest.mark.parametrize("kind", KINDS)
@examples(10)
@given(runs(), st.sampled_from([1, 100, 100_000]))
def test_late_elements_of_a_file_can_be_read_in_splits(kind, run: Run, size):
    run = from_zero(numeric(run))
    text, rows = KINDS[kind]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stream.nq"
        lines = (f"{reading.triple} <{EX}g/{reading.time}> .\n" for reading in run.read)
        path.write_text("".join(lines), encoding="utf-8")
        # What is known to have no remote value is NaN in a state, which is not equal to itself.
        with in_splits(size=size, cuts=range(1000), are_compared=kind != "counted"):
            assert answers(run, text(run), path) == expected(run, rows)
