"""Every operator over plain N-Quads with a checkpoint: it answers as it does without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine import Engine
from rsp_engine.options import OPERATORS
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint
from tests.drivers.cut import texts
from tests.drivers.split_runs import in_splits
from tests.thoroughness import examples

if TYPE_CHECKING:
    from pathlib import Path

    from rsp_engine.options import OperatorName

EX = "http://example.org/"
WINDOW = "[RANGE 20ms STEP 5ms]"
HEAD = f"PREFIX : <{EX}> REGISTER RSTREAM :q AS SELECT"
ONE = f"FROM NAMED WINDOW :w0 ON :s0 {WINDOW}"
BOTH = f"{ONE} FROM NAMED WINDOW :w1 ON :s1 {WINDOW}"
RANKED = f"{HEAD} ?o ?v {ONE} WHERE {{ WINDOW :w0 {{ ?o :p ?v }} }} ORDER BY DESC(?v) LIMIT 2"
UNION = f"""{HEAD} ?o (SUM(?v) AS ?score) {BOTH} WHERE {{
    {{ WINDOW :w0 {{ ?o :p ?v }} }} UNION {{ WINDOW :w1 {{ ?o :p ?v }} }} }}
    GROUP BY ?o ORDER BY DESC(?score) LIMIT 2"""
GROUPED = f"""{HEAD} ?o (SUM(?v) AS ?n) {ONE} WHERE {{ WINDOW :w0 {{ ?o :p ?v }} }}
    GROUP BY ?o ORDER BY DESC(?n) LIMIT 2"""
PAIRS = f"""{HEAD} ?a ?b {ONE} WHERE {{ WINDOW :w0 {{ ?a :p ?x . ?b :p ?y }}
    FILTER (STR(?a) < STR(?b)) }} ORDER BY ABS(?x - ?y) LIMIT 2"""
UNRANKED = f"{HEAD} ?o ?v {BOTH} WHERE {{ WINDOW :w0 {{ ?o :p ?v }} WINDOW :w1 {{ ?o :p ?u }} }}"
PANE_WISE = f"{HEAD} ?o ?v {ONE} WHERE {{ WINDOW :w0 {{ ?o :p ?v }} }}"
JOINED = f"{HEAD} ?o ?x ?v {ONE} WHERE {{ WINDOW :w0 {{ ?o :p ?v . ?x :p ?v FILTER (?v > 3) }} }}"
SERVED = f"""{HEAD} ?o (?v + ?r AS ?score) {ONE} WHERE {{ WINDOW :w0 {{ ?o :p ?v }}
    SERVICE :far {{ ?o :r ?r }} }} ORDER BY DESC(?score) LIMIT 2"""

WITH_STREAMS = frozenset({"eaa", "sla", "approximate", "oracle", "general", "auto"})
CASES: list[tuple[OperatorName, str]] = [
    *((operator, RANKED) for operator in OPERATORS if operator in {"auto", "oracle", "general"}),
    *((operator, RANKED) for operator in OPERATORS if operator not in WITH_STREAMS),
    *((operator, UNION) for operator in OPERATORS if operator in WITH_STREAMS),
    *(("auto", query) for query in (GROUPED, PAIRS, UNRANKED, PANE_WISE, JOINED, SERVED)),
    *(("general", query) for query in (GROUPED, PAIRS, SERVED)),
]


def far() -> RecordedEndpoint:
    told: dict[Any, Any] = {
        (ox.NamedNode(f"{EX}o{n}"),): [(0, ({"r": ox.Literal(n)},))] for n in range(6)
    }
    return RecordedEndpoint(told)


def engine(folder: Path, text: str, **options: object) -> Engine:
    made = Engine(**options)  # type: ignore[arg-type]
    if text == SERVED:
        made.service(f"{EX}far", far())
    made.register(text)
    for number in range(text.count("FROM NAMED WINDOW")):
        made.bind(f"{EX}s{number}", str(folder / f"s{number}.nq"))
    return made


def write(folder: Path, streams: list[list[tuple[int, int, int]]]) -> None:
    """Write readings (time, object, value) as plain N-Quads lines."""
    kind = "<http://www.w3.org/2001/XMLSchema#integer>"
    for number, readings in enumerate(streams):
        lines = (f'<{EX}o{o}> <{EX}p> "{v}"^^{kind} <{EX}g/{t}> .\n' for t, o, v in readings)
        (folder / f"s{number}.nq").write_text("".join(lines), encoding="utf-8")


def some(number: int) -> list[tuple[int, int, int]]:
    return [(t, (t * 7 + number) % 6, (t * 37 + 5 * number) % 11) for t in range(1, 120)]


@pytest.mark.parametrize(("operator", "text"), CASES)
def test_a_checkpoint_changes_no_answer(tmp_path, monkeypatch, operator, text):
    monkeypatch.setattr("rsp_engine.drivers.local._COMMIT_S", 0)
    write(tmp_path, [some(0), some(1)])
    expected = texts(engine(tmp_path, text, operator=operator))
    assert len(expected) > 10
    kept = engine(tmp_path, text, operator=operator, checkpoint=tmp_path / "kept", split_bytes=1000)
    assert texts(kept) == expected


readings = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 4)), max_size=20)


@pytest.mark.parametrize(("operator", "text"), CASES)
@examples(3)
@given(st.lists(readings, min_size=2, max_size=2), st.sampled_from((200, 500, 100_000)))
def test_a_run_can_be_cut_between_splits(tmp_path_factory, operator, text, streams, size):
    folder = tmp_path_factory.mktemp("plain")
    timed = []
    for found in streams:
        ends = [1 + sum(step for step, _, _ in found[: n + 1]) for n in range(len(found))]
        timed.append([(t, o, v) for t, (_, o, v) in zip(ends, found, strict=True)])
    write(folder, timed)
    with in_splits(are_split=False):
        expected = texts(engine(folder, text, operator=operator))
    # A restored SAP may hold its objects in another order, which answers do not show.
    is_same = not operator.startswith("sap")
    with in_splits(size=size, cuts=range(1000), are_compared=is_same):
        assert texts(engine(folder, text, operator=operator)) == expected
