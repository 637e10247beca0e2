"""Recorded traces: small ones written here, and the authors' own where available."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from rsp_engine.errors import SourceError
from rsp_engine.experiments.datasets.profile import (
    CHS,
    PAIRS,
    RESULTS,
    TABLE_3,
    changes,
    mentions,
    spread_of,
    summary_of,
)
from rsp_engine.experiments.datasets.traces import (
    FOLLOWERS_FILE,
    MENTIONS_FILE,
    Trace,
    derive,
    main,
    read_trace,
)
from tests.data import real_data

if TYPE_CHECKING:
    from pathlib import Path

    from rsp_engine.experiments.datasets.dataset import Dataset

SMALL_MENTIONS = "timestamp_ms,user_id\n1000,30\n5000,10\n3000,30\n"
SMALL_FOLLOWERS = (
    # Two invocations in the first round, one in the second.
    "timestamp_ms,user_id,screen_name,followers_count\n"
    "2000,30,ann,100\n"
    "2001,10,bob,50\n"
    "62000,10,bob,47\n"
    "62000,30,ann,102\n"
)


def write(
    folder: Path, of_mentions: str = SMALL_MENTIONS, followers: str = SMALL_FOLLOWERS
) -> Path:
    (folder / MENTIONS_FILE).write_text(of_mentions)
    (folder / FOLLOWERS_FILE).write_text(followers)
    return folder


def test_a_trace_is_read_in_order_and_starts_just_before_the_first_mention(tmp_path):
    trace = read_trace(write(tmp_path))
    assert trace.start == 999
    assert trace.names.tolist() == [10, 30]
    assert trace.mention_times.tolist() == [1, 2001, 4001]
    assert trace.mention_users.tolist() == [1, 1, 0]
    assert trace.report_times.tolist() == [[1002, 1001], [61001, 61001]]
    assert trace.dfc.tolist() == [[0, 0], [-3, 2]]


def test_a_dataset_of_a_trace_has_its_times_and_names(tmp_path):
    made = derive(read_trace(write(tmp_path)), ch=80)
    assert made.invocations.tolist() == [1001, 1002, 61001]
    assert made.reported_users.tolist() == [1, 1, 2]
    assert next(made.nquads()) == (
        "<http://example.org/post/0> <https://schema.org/mentions> <http://example.org/user/30> "
        "<http://example.org/at/1000> .\n"
    )
    # The recorded value and the noise, from 5 to 24 and a fraction.
    last = made.dfc_at(made.duration)
    assert 2 <= last[0] < 22
    assert 7 <= last[1] < 27


@pytest.mark.parametrize(
    ("of_mentions", "followers", "reason"),
    [
        ("user_id\n", SMALL_FOLLOWERS, "has no column timestamp_ms"),
        ("timestamp_ms,user_id\n", SMALL_FOLLOWERS, "has no rows"),
        (SMALL_MENTIONS + "7000,ann\n", SMALL_FOLLOWERS, "a number is missing or wrong"),
        (SMALL_MENTIONS + "7000\n", SMALL_FOLLOWERS, "a number is missing or wrong"),
        (SMALL_MENTIONS + f"7000,{10**30}\n", SMALL_FOLLOWERS, "a number is missing or wrong"),
        (SMALL_MENTIONS + "7000,20\n", SMALL_FOLLOWERS, "does not hold user 20"),
        (SMALL_MENTIONS, SMALL_FOLLOWERS + "63000,10,bob,1\n", "the same number of rows"),
        (SMALL_MENTIONS, SMALL_FOLLOWERS.replace("\n2000,30", "\n62000,30"), "a user twice"),
        (SMALL_MENTIONS, SMALL_FOLLOWERS.replace("2001,10", "999,10"), "before the first mention"),
    ],
)
def test_a_trace_that_cannot_be_read_is_refused(tmp_path, of_mentions, followers, reason):
    with pytest.raises(SourceError, match=reason):
        read_trace(write(tmp_path, of_mentions, followers))


def test_a_missing_folder_is_told(tmp_path, capsys):
    assert main([str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("cannot read ")


@pytest.mark.parametrize(
    ("key", "numbers"), [("seed", (-1, 20, 1)), ("ch", (0, -1, 1)), ("number", (0, 20, -1))]
)
def test_a_bad_parameter_is_refused_by_name(tmp_path, key, numbers):
    with pytest.raises(ValueError, match=f"{key} must be"):
        derive(read_trace(write(tmp_path)), *numbers)


# The authors' recording.


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_trace(real_data("acquatop"))


def test_the_mentions_are_exactly_those_of_the_paper(trace):
    found = mentions(derive(trace))
    assert spread_of(found.pairs) == PAIRS
    assert spread_of(found.users) == (21, 32, 43)
    assert found.users.mean() == pytest.approx(RESULTS, rel=0.1)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("ch", CHS)
def test_the_changes_are_near_table_3(trace, ch, number):
    found, paper = summary_of(changes(derive(trace, 0, ch, number))), TABLE_3[ch]
    assert found.mean == pytest.approx(paper.mean, rel=0.04)
    assert found.median == pytest.approx(paper.median, rel=0.05)
    assert found.first_quartile == pytest.approx(paper.first_quartile, rel=0.05)
    assert found.third_quartile == pytest.approx(paper.third_quartile, rel=0.02)


def values(dataset: Dataset) -> list[float]:
    return [*dataset.initial.tolist(), *dataset.changes.values.tolist()]


def test_the_same_seed_gives_the_same_values_and_none_is_equal_to_another(trace):
    first, again, other = derive(trace, 4), derive(trace, 4), derive(trace, 5)
    assert values(first) == values(again) != values(other)
    assert len(set(values(first))) == len(values(first))


def test_the_recorded_followers_change_seldom(trace):
    """So the changes of the paper cannot be those of the recorded dfc alone."""
    changed = np.count_nonzero(np.diff(trace.dfc, axis=0))
    assert changed / len(np.unique(trace.report_times)) < 10


def test_the_noise_is_spread_as_in_the_stored_run(trace):
    """There, nearly all values lie from 5 to 24, and all of these are about as frequent."""
    whole = np.floor(derive(trace, ch=20).changes.values).astype(int)
    inside = whole[(whole >= 5) & (whole <= 24)]
    assert len(inside) > 0.97 * len(whole)
    shares = np.bincount(inside)[5:] / len(inside)
    assert shares.min() > 0.04
    assert shares.max() < 0.06
