"""A history of values: the time alone decides."""

from __future__ import annotations

import csv
import json

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import SourceError
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, FetchResult, Limits
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint, read_csv, read_jsonl
from tests.replica.drawn import PATTERN, bags, terms, user, users, value

histories = st.dictionaries(users, st.dictionaries(st.integers(0, 9), bags, max_size=4))


def recorded(history):
    return RecordedEndpoint({key: sorted(values.items()) for key, values in history.items()})


def naive(history, key, now):
    times = [time for time in history.get(key, {}) if time <= now]
    return history[key][max(times)] if times else ()


@given(histories, st.integers(-1, 11))
def test_each_key_has_the_last_value_up_to_now(history, now):
    endpoint = recorded(history)
    everyone = [user(n) for n in range(6)]
    at = {key: naive(history, key, now) for key in everyone}
    assert endpoint.fetch(everyone, UNLIMITED, now) == FetchResult(at, 1)
    assert endpoint.snapshot(UNLIMITED, now) == FetchResult({k: s for k, s in at.items() if s}, 1)


@given(histories)
def test_a_history_reads_back_from_lines_of_json(tmp_path_factory, history):
    path = tmp_path_factory.mktemp("recorded") / "history.jsonl"
    with path.open("w") as file:
        for key, values in history.items():
            for time, solutions in values.items():
                plain = [{name: str(term) for name, term in s.items()} for s in solutions]
                line = {"time": time, "key": [str(term) for term in key], "solutions": plain}
                file.write(json.dumps(line) + "\n")
    again = read_jsonl(path, PATTERN)
    for now in range(-1, 10):
        assert again.snapshot(UNLIMITED, now) == recorded(history).snapshot(UNLIMITED, now)


@given(st.lists(st.tuples(st.integers(0, 9), terms, st.none() | terms, st.none() | terms)))
def test_a_history_reads_back_from_a_table(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("recorded") / "history.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["m", "time", "left", "n", "user"])
        for time, key, n, m in rows:
            writer.writerow([m or "", time, "x", n or "", key])
    history: dict[tuple[object, ...], dict[int, list[object]]] = {}
    for time, key, n, m in rows:
        solution = {name: term for name, term in (("n", n), ("m", m)) if term is not None}
        found = history.setdefault((key,), {}).setdefault(time, [])
        if solution:
            found.append(solution)
    tuples = {k: {t: tuple(s) for t, s in values.items()} for k, values in history.items()}
    for now in range(-1, 10):
        expected = recorded(tuples).snapshot(UNLIMITED, now)
        assert read_csv(path, PATTERN).snapshot(UNLIMITED, now) == expected


def test_numbers_of_a_table_can_become_terms_by_functions(tmp_path):
    path = tmp_path / "followers.csv"
    path.write_text("timestamp_ms,user,n,m\n5,7,100,\n")
    made = read_csv(
        path,
        PATTERN,
        time="timestamp_ms",
        terms={"user": lambda cell: ox.NamedNode(f"http://example.org/user/{cell}")},
    )
    assert made.snapshot(UNLIMITED, 5).answers == {user(7): (value(100),)}


def test_limits_of_nothing_are_kept():
    endpoint = recorded({user(1): {0: (value(1),)}})
    assert endpoint.fetch([user(1)], Limits(max_requests=0), 0).faults == {"no requests left": 1}
    assert endpoint.snapshot(Limits(deadline_ms=0), 0).faults == {"no time left": 1}
    assert endpoint.fetch([], UNLIMITED, 0) == FetchResult()
    endpoint.close()


def test_values_out_of_order_are_refused():
    with pytest.raises(ValueError, match="in the order of their times"):
        RecordedEndpoint({user(1): [(5, ()), (5, ())]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,user,n\n", "has no column 'm'"),
        ("", "has no column 'time'"),
        ("time,user,n,m\n0,<urn:a>,1,\nx,<urn:a>,1,\n", "line 3 of .* cannot be read"),
        ("time,user,n,m\n0,,1,\n", "line 2 of .*: user is empty"),
        ("time,user,n,m\n0,<urn:a>,one,\n", "line 2 of .*: not a term: 'one'"),
        ("time,user,n,m\n0,<urn:a>\n", "line 2 of .*: it has more or fewer cells"),
        ("time,user,n,m\n0,<urn:a>,1,2,3\n", "line 2 of .*: it has more or fewer cells"),
        ('time,user,n,m\n0,<urn:a>,"1\n', "line 2 of"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "history.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=message):
        read_csv(path, PATTERN)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "7",
        '{"time": 0}',
        '{"time": 0.5, "key": ["<urn:a>"], "solutions": []}',
        '{"time": true, "key": ["<urn:a>"], "solutions": []}',
        '{"time": 0, "key": [], "solutions": []}',
        '{"time": 0, "key": [7], "solutions": []}',
        '{"time": 0, "key": ["<urn:a>"], "solutions": [7]}',
        '{"time": 0, "key": ["<urn:a>"], "solutions": [{"n": "x"}]}',
        '{"time": 0, "key": ["<urn:b>"], "solutions": []}',
    ],
)
def test_a_line_that_cannot_be_read_is_refused(tmp_path, line):
    path = tmp_path / "history.jsonl"
    path.write_text('\n{"time": 0, "key": ["<urn:b>"], "solutions": []}\n' + line)
    with pytest.raises(SourceError, match="line 3 of"):
        read_jsonl(path, PATTERN)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read_csv(tmp_path / "none.csv", PATTERN)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\n")
    with pytest.raises(SourceError, match="is not UTF-8"):
        read_jsonl(tmp_path / "bytes", PATTERN)
