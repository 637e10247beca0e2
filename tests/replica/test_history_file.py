"""A history file, read by the recorded endpoint, says what the endpoint said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from rsp_engine.errors import SinkError
from rsp_engine.replica.endpoints.endpoint import UNLIMITED
from rsp_engine.replica.endpoints.history_file import HistoryFile
from rsp_engine.replica.endpoints.recorded import read_csv
from rsp_engine.replica.pattern import RemotePattern
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.replica.pattern import Key

PATTERN = RemotePattern("http://e.org/s", "{ ?k <http://e.org/p> ?v }", ("k",), ("v",))
ANN, BOB = (NamedNode("http://e.org/ann"),), (Literal('bob, "the ,\n'),)


def one(value):
    return ({"v": value},)


def test_a_row_is_written_for_each_change_and_for_each_key_that_is_gone(tmp_path):
    path = tmp_path / "history.csv"
    history = HistoryFile(path, PATTERN)
    assert history.append({ANN: one(Literal(1)), BOB: one(Literal("x"))}, 100) == 2
    assert history.append({ANN: one(Literal(1)), BOB: one(Literal("x"))}, 200) == 0
    assert history.append({ANN: one(Literal(2))}, 300) == 2
    assert history.keys == 1
    text = path.read_text()
    assert text.startswith("time,k,v\n100,")
    assert "300,<http://e.org/ann>,2\n" in text
    recorded = read_csv(path, PATTERN)
    assert recorded.fetch([ANN, BOB], UNLIMITED, 250).answers == {
        ANN: one(Literal(1)),
        BOB: one(Literal("x")),
    }
    assert recorded.snapshot(UNLIMITED, 300).answers == {ANN: one(Literal(2))}


def test_a_clock_that_is_set_back_does_not_disorder_the_file(tmp_path):
    history = HistoryFile(tmp_path / "h.csv", PATTERN)
    history.append({ANN: one(Literal(1))}, 100)
    history.append({ANN: one(Literal(2))}, 50)
    times = [line.split(",")[0] for line in (tmp_path / "h.csv").read_text().splitlines()]
    assert times == ["time", "100", "101"]


TERMS = st.one_of(
    st.integers(0, 3).map(Literal),
    st.booleans().map(Literal),
    st.floats(allow_nan=False, allow_infinity=False).map(Literal),
    st.text(max_size=4).map(Literal),
    st.sampled_from(["http://e.org/a", "urn:b"]).map(NamedNode),
)
SOLUTIONS = st.lists(TERMS, max_size=3, unique=True).map(
    lambda values: tuple({"v": value} for value in values)
)
SNAPSHOTS = st.lists(
    st.dictionaries(st.sampled_from([ANN, BOB]), SOLUTIONS.filter(bool)), min_size=1, max_size=6
)


@given(snapshots=SNAPSHOTS, stops=st.sets(st.integers(0, 5)))
@examples(60)
def test_whenever_it_was_stopped_the_file_says_what_the_endpoint_said(
    tmp_path_factory, snapshots, stops
):
    path = tmp_path_factory.mktemp("h") / "h.csv"
    history = HistoryFile(path, PATTERN)
    for number, answers in enumerate(snapshots):
        if number in stops:
            history = HistoryFile(path, PATTERN)
        history.append(answers, 10 * number)
    recorded = read_csv(path, PATTERN)
    for number, answers in enumerate(snapshots):
        found = recorded.snapshot(UNLIMITED, 10 * number).answers
        assert {key: set(map(str, of)) for key, of in found.items()} == {
            key: set(map(str, of)) for key, of in answers.items()
        }


@given(cut=st.integers(1, 60))
@examples(60)
def test_rows_that_a_crash_cut_are_removed_with_their_time(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("h") / "h.csv"
    history = HistoryFile(path, PATTERN)
    history.append({ANN: one(Literal(1))}, 100)
    whole = path.read_bytes()
    history.append({ANN: (*one(Literal(2)), *one(Literal(3))), BOB: one(Literal(4))}, 200)
    added = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + added[: min(cut, len(added) - 1)])
    again = HistoryFile(path, PATTERN)
    now: dict[Key, Any] = {ANN: (*one(Literal(2)), *one(Literal(3))), BOB: one(Literal(4))}
    again.append(now, 300)
    recorded = read_csv(path, PATTERN)
    assert recorded.snapshot(UNLIMITED, 100).answers == {ANN: one(Literal(1))}
    found = recorded.snapshot(UNLIMITED, 300).answers
    assert {key: set(map(str, of)) for key, of in found.items()} == {
        key: set(map(str, of)) for key, of in now.items()
    }


def test_a_file_of_something_else_is_refused_and_kept(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text("name,age\nann,3\n")
    with pytest.raises(SinkError, match="its columns are name, age, not time, k, v"):
        HistoryFile(path, PATTERN)
    assert path.read_text() == "name,age\nann,3\n"
    path.write_text("time,k,v\n100,<urn:a>\n")
    with pytest.raises(SinkError, match=r"line 2 of .* is damaged"):
        HistoryFile(path, PATTERN)
    with pytest.raises(SinkError, match="cannot be written"):
        HistoryFile(tmp_path / "none" / "h.csv", PATTERN)
    alone = RemotePattern("http://e.org/s", "{ ?s ?p ?o }", (), ("s",))
    with pytest.raises(SinkError, match="shares no variable"):
        HistoryFile(path, alone)
