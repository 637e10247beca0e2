"""A user's own tables become a dataset; what is wrong in them is told with its place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from rsp_engine.errors import SourceError
from rsp_engine.experiments.datasets.own import OwnTables, read_own, stretch_of
from rsp_engine.experiments.policy_run import RunSetting, oracle, run_policy
from rsp_engine.experiments.workload import workload_of
from tests.experiments.naive_run import naive_ranking
from tests.thoroughness import examples

MENTIONS = "time,key\n1000,ann\n1500,bob\n2500,ann\n3000,bob\n"
HISTORY = "time,key,value\n500,ann,1\n500,bob,5\n1200,ann,1\n2000,ann,9.5\n3000,bob,2\n"


def tables(tmp_path, mentions=MENTIONS, history=HISTORY, **options) -> OwnTables:
    paths = tmp_path / "some mentions.txt", tmp_path / "values.csv"
    for path, text in zip(paths, (mentions, history), strict=True):
        path.write_text(text, encoding="utf-8")
    options = {"range": 1000, "step": 500, **options}
    return OwnTables(str(paths[0]), str(paths[1]), **options)


def test_tables_become_mentions_and_changes(tmp_path):
    dataset = read_own(tables(tmp_path))
    # It begins a millisecond before the first mention, at 999; ann is 0 and bob is 1.
    assert dataset.start == 999
    assert dataset.mention_times.tolist() == [1, 501, 1501, 2001]
    assert dataset.mention_users.tolist() == [0, 1, 0, 1]
    assert dataset.initial.tolist() == [1, 5]
    # What repeats a value is no change.
    assert [part.tolist() for part in dataset.changes] == [[1001, 2001], [0, 1], [9.5, 2.0]]
    assert dataset.windows == ((0, 1000), (500, 1500), (1000, 2000))


def test_columns_have_any_names_and_times_are_iso_too(tmp_path):
    mentions = "who,at\nann,1970-01-01T00:00:01Z\nbob,1970-01-01T00:00:01.500Z\n"
    history = HISTORY.replace("time,key,value", "t,name,size")
    columns = {"mention_columns": ("at", "who"), "history_columns": ("t", "name", "size")}
    dataset = read_own(tables(tmp_path, mentions, history, **columns))
    assert dataset.mention_times.tolist() == [1, 501]
    assert dataset.initial.tolist() == [1, 5]


def test_a_parquet_file_gives_the_same_as_its_csv(tmp_path):
    own = tables(tmp_path)
    rows = [line.split(",") for line in HISTORY.splitlines()[1:]]
    times, keys, values = zip(*rows, strict=True)
    stamps = pa.array([int(time) * 1000 for time in times], pa.timestamp("us"))
    path = tmp_path / "values.parquet"
    table = pa.table({"time": stamps, "key": keys, "value": [float(value) for value in values]})
    parquet.write_table(table, path)
    first, second = (
        read_own(own),
        read_own(OwnTables(own.mentions, str(path), range=1000, step=500)),
    )
    assert np.array_equal(first.initial, second.initial)
    for one, other in zip(first.changes, second.changes, strict=True):
        assert np.array_equal(one, other)


def test_a_history_that_rsp_record_wrote_is_read_as_it_stands(tmp_path):
    mentions = "time,key\n1000,http://e.org/ann\n9000,<http://e.org/ann>\n"
    history = (
        "time,user,size\n900,<http://e.org/ann>,1\n2000,<http://e.org/ann>,\n"
        '3000,<http://e.org/ann>,"""2.5""^^<http://www.w3.org/2001/XMLSchema#float>"\n'
    )
    own = tables(tmp_path, mentions, history, history_columns=("time", "user", "size"))
    dataset = read_own(own)
    assert len(dataset.names) == 1
    assert dataset.changes.values.tolist() == [2.5]


def test_differences_are_to_the_row_before(tmp_path):
    dataset = read_own(tables(tmp_path, has_differences=True))
    assert dataset.initial.tolist() == [0, 0]
    assert [part.tolist() for part in dataset.changes] == [[1001, 2001], [0, 1], [8.5, -3.0]]


def test_the_order_of_rows_and_repeated_rows_make_no_difference(tmp_path):
    expected = read_own(tables(tmp_path))
    shuffled = []
    for text in (MENTIONS, HISTORY):
        head, *rows = text.splitlines(keepends=True)
        shuffled.append(head + "".join(rows[::-1]) + rows[0] * (text is HISTORY))
    found = read_own(tables(tmp_path, *shuffled))
    for name in ("names", "mention_times", "mention_users", "initial"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    for one, other in zip(found.changes, expected.changes, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("least", [-1e300, 1e-308, 1e299])
def test_huge_values_are_ranked_as_they_are(tmp_path, least):
    history = f"time,key,value\n500,ann,{least}\n500,bob,5\n2000,ann,1e300\n3000,bob,{least}\n"
    workload = workload_of(read_own(tables(tmp_path, history=history)))
    for policy in ("AT-VOI", "AT-VOI+signal", "WSJ-WBM"):
        outcomes = list(run_policy(workload, RunSetting(policy, 2, 2, 5)))
        assert [outcome.ndcg for outcome in outcomes] == [1.0] * len(outcomes)


@pytest.mark.parametrize(
    ("mentions", "history", "message"),
    [
        ("when,key\n1,a\n", HISTORY, r"some mentions.txt has no column 'time'"),
        (MENTIONS, "time,key\n1,a\n", r"values.csv has no column 'value'"),
        (MENTIONS, HISTORY + "1,cid,\n2000,ann,3\n", r"row 7 of .*: the key has another value"),
        (MENTIONS + "4000,eve\n", HISTORY, r"no value of 'eve', which row 5 of .*mentions.txt"),
        (MENTIONS, HISTORY + "4000,ann,many\n", r"row 6 .*, column value: expected a number, not"),
        (MENTIONS, HISTORY + "4000,ann,nan\n", r"row 6 .*, column value: expected a number, not"),
        (MENTIONS, HISTORY + "4000,ann,-1e301\n", r"row 6 .*, column value: -1e\+301 is beyond 1e"),
        (MENTIONS, HISTORY + "4000,ann\n", r"row 6 of .*values.csv: it has 2 cells, and .* 3"),
        (MENTIONS + "soon,ann\n", HISTORY, r"row 5 .*, column time: its time is not of the form"),
        (MENTIONS + "4000,\n", HISTORY, r"row 5 of .*, column key: there is no key"),
        (MENTIONS, HISTORY + "3000,bob,7\n", r"row 6 of .*: the key has another value of the same"),
        ("time,key\n", HISTORY, r"some mentions.txt has no rows"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, mentions, history, message):
    with pytest.raises(SourceError, match=message):
        read_own(tables(tmp_path, mentions, history))


def test_a_file_that_is_no_parquet_or_not_there_is_refused(tmp_path):
    own = tables(tmp_path)
    (tmp_path / "values.parquet").write_text("no")
    with pytest.raises(SourceError, match="is no Parquet file"):
        read_own(OwnTables(own.mentions, str(tmp_path / "values.parquet")))
    with pytest.raises(SourceError, match="cannot be read"):
        read_own(OwnTables(own.mentions, str(tmp_path / "none.csv")))


KEYS = st.sampled_from(["ann", "bob", "cid"])
ROWS = st.lists(st.tuples(st.integers(0, 9_000), KEYS, st.integers(0, 9)), min_size=1, max_size=30)


@given(mentions=ROWS, history=ROWS)
@examples(60)
def test_a_run_ranks_each_window_by_what_the_tables_say(tmp_path_factory, mentions, history):
    """The values at a time are looked up in the rows themselves."""
    known = {(time, key): value for time, key, value in history}
    rows = sorted((time, key, value) for (time, key), value in known.items())
    rows = [(0, key, 4) for key in ("ann", "bob", "cid")] + [row for row in rows if row[0]]
    said = [*sorted({(time + 1, key) for time, key, _ in mentions}), (9001, "ann"), (9001, "bob")]
    text = "".join(f"{time},{key}\n" for time, key in sorted(set(said)))
    values = "".join(f"{time},{key},{value}\n" for time, key, value in rows)
    folder = tmp_path_factory.mktemp("own")
    own = tables(folder, "time,key\n" + text, "time,key,value\n" + values)
    dataset = read_own(own)
    for opened, closed in dataset.windows:
        at = closed + dataset.start
        truth = [
            [value for time, key, value in rows if key == name and time <= at][-1]
            for name in ("ann", "bob", "cid")
        ]
        assert dataset.dfc_at(closed).tolist() == truth
        assert dataset.mentioned(opened, closed).tolist() == [
            sum(opened < t - dataset.start <= closed and k == n for t, k in sorted(set(said)))
            for n in ("ann", "bob", "cid")
        ]


def test_parts_are_consecutive_and_each_starts_with_its_values(tmp_path):
    chance = np.random.default_rng(0)
    times = np.sort(chance.choice(60_000, 400, replace=False)) + 1
    mentions = "".join(f"{time},k{chance.integers(8)}\n" for time in times)
    first = "".join(f"0,k{key},{key}\n" for key in range(8))
    later = "".join(f"{t},k{chance.integers(8)},{chance.random()}\n" for t in range(1, 60_000, 150))
    own = tables(
        tmp_path, "time,key\n" + mentions, f"time,key,value\n{first}{later}", range=3000, step=1000
    )
    whole = read_own(own)
    for number in (1, 2, 3):
        part = stretch_of(whole, number, 15)
        assert len(part.windows) == 15
        for (opened, closed), (o, c) in zip(
            part.windows, whole.windows[15 * (number - 1) :], strict=False
        ):
            assert np.array_equal(part.mentioned(opened, closed), whole.mentioned(o, c))
            assert np.array_equal(part.dfc_at(closed), whole.dfc_at(c))
    part = stretch_of(whole, 2, 15)
    workload = workload_of(part)
    assert [found.users for found in oracle(workload)] == [
        tuple(naive_ranking(part, *window, part.dfc_at(window[1]))) for window in part.windows
    ]
    ours, theirs = (
        list(run_policy(workload, RunSetting(name, 2, 3, 5))) for name in ("AT-VOI", "AT-TSM")
    )
    assert len(ours) == 15
    assert all(outcome.fetched <= 2 for outcome in ours)
    # AT-VOI elects itself: no value needs more digits than float64 has.
    assert [outcome.answer for outcome in ours] != [outcome.answer for outcome in theirs]
