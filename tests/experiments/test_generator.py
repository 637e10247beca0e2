"""Generated datasets are reproducible and consistent, and resemble those of the paper."""

from __future__ import annotations

import hashlib
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from rsp_engine.experiments.datasets.dataset import DFC, MENTIONS_PREDICATE, USER, Dataset
from rsp_engine.experiments.datasets.dfc import Dice, evolve
from rsp_engine.experiments.datasets.generator import Scale, generate, generated_suite, main
from rsp_engine.experiments.datasets.profile import (
    CHS,
    INVOCATIONS,
    PAIRS,
    RESULTS,
    TABLE_3,
    changes,
    mentions,
    spread_of,
    summary_of,
)
from rsp_engine.experiments.datasets.traces import read_trace
from rsp_engine.io.sources import open_source
from rsp_engine.model.streams import Element
from rsp_engine.replica.endpoints.endpoint import UNLIMITED
from rsp_engine.replica.endpoints.recorded import read_csv
from rsp_engine.replica.pattern import RemotePattern
from tests.data import real_data
from tests.thoroughness import examples

SMALL = Scale(users=7, duration=400_000, mentions=60)
SEEDS = st.integers(0, 2**31 - 1)
SCALES = st.builds(Scale, st.integers(1, 250), st.integers(10_000, 700_000), st.integers(1, 200))


def digest(dataset: Dataset) -> str:
    text = "".join(chain(dataset.nquads(), dataset.jsonl(), dataset.history_csv()))
    return hashlib.sha256(text.encode()).hexdigest()


# The same seed, the same bytes.


def test_a_seed_gives_these_bytes_on_any_machine():
    assert digest(generate(seed=0, ch=20)) == (
        "a5dd1cace7a81f6bf1f4993b151981175384d0a8ff32381ad240b6daeea5085c"
    )


@given(seed=SEEDS, scale=SCALES, ch=st.integers(1, 80))
@examples(20)
def test_the_same_seed_gives_the_same_bytes(seed, scale, ch):
    assert digest(generate(seed, ch, 2, scale)) == digest(generate(seed, ch, 2, scale))


def test_another_seed_or_number_or_ch_gives_other_bytes():
    made = [(0, 20, 1), (1, 20, 1), (0, 20, 2), (0, 40, 1)]
    assert len({digest(generate(*one, SMALL)) for one in made}) == 4


def test_datasets_of_a_seed_share_their_mentions():
    first, second, third = generate(3, 5, 1), generate(3, 5, 2), generate(3, 80, 1)
    for other in (second, third):
        assert np.array_equal(first.mention_times, other.mention_times)
        assert np.array_equal(first.mention_users, other.mention_users)
    assert not np.array_equal(first.changes.times, second.changes.times)


def test_fewer_changes_are_a_part_of_more():
    few, many = (
        set(zip(*(part.tolist() for part in generate(1, ch, 3).changes), strict=True))
        for ch in (10, 40)
    )
    assert few < many


# A dataset holds together.


@given(seed=SEEDS, scale=SCALES, ch=st.integers(1, 80))
@examples(60)
def test_a_dataset_of_any_size_holds_together(seed, scale, ch):
    made = generate(seed, ch, 1, scale)
    assert len(made.mention_times) == scale.mentions
    assert np.all(np.diff(made.mention_times) >= 0)
    assert made.mention_times[0] >= 1
    assert made.mention_times[-1] <= scale.duration
    assert 0 <= made.mention_users.min() <= made.mention_users.max() < scale.users
    times, users, values = made.changes
    assert len(times) == len(users) == len(values)
    assert np.all(np.diff(times) >= 0)
    assert np.all(np.diff(made.invocations) > 0)
    assert made.invocations[0] >= 1
    assert made.invocations[-1] <= scale.duration
    assert np.isin(times, made.invocations).all()
    assert made.reported_users.max() <= 100
    assert made.reported_users.sum() % scale.users == 0
    assert np.all(changes(made) <= made.reported_users)


@given(seed=SEEDS, scale=SCALES, ch=st.integers(1, 80))
@examples(30)
def test_no_two_values_of_dfc_are_equal(seed, scale, ch):
    """So there are no ties, and every change is a different value."""
    made = generate(seed, ch, 1, scale)
    values = np.concatenate((made.initial, made.changes.values))
    assert len(np.unique(values)) == len(values)


def test_what_a_dataset_holds_cannot_be_written_to():
    made = generate(0, 20, 1, SMALL)
    for array in (made.initial, made.mention_times, made.changes.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_counts_of_a_window_are_those_of_a_plain_walk():
    made = generate(5, 20, 1, SMALL)
    assert made.windows == tuple((o, o + 100_000) for o in range(0, 300_001, 60_000))
    for opened, closed in made.windows:
        pairs = zip(made.mention_times.tolist(), made.mention_users.tolist(), strict=True)
        inside = [(time, user) for time, user in pairs if opened < time <= closed]
        users = [user for _, user in inside]
        parts = [user for _, user in {(time <= opened + 60_000, user) for time, user in inside}]
        assert made.mentioned(opened, closed).tolist() == [users.count(u) for u in range(7)]
        assert made.mentioned_parts(opened, closed).tolist() == [parts.count(u) for u in range(7)]


def test_a_mention_at_the_edge_is_in_the_window_that_closes_there():
    made = generate(5, 20, 1, SMALL)
    edge = int(made.mention_times[10])
    user = int(made.mention_users[10])
    assert made.mentioned(edge - 1, edge)[user] > 0
    assert made.mentioned(edge, edge + 1)[user] == 0


@given(seed=SEEDS, time=st.integers(0, SMALL.duration))
@examples(30)
def test_the_dfc_at_a_time_is_the_last_of_the_history(seed, time):
    made = generate(seed, 60, 1, SMALL)
    for user, dfc in enumerate(made.dfc_at(time).tolist()):
        times, values = made.history(user)
        assert times[0] == 0
        assert np.all(np.diff(times) > 0)
        known = zip(times.tolist(), values.tolist(), strict=True)
        assert dfc == [value for since, value in known if since <= time][-1]


@given(
    reported=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    ch=st.integers(1, 80),
    seed=SEEDS,
)
@examples(60)
def test_the_same_part_of_the_changes_of_every_invocation_stays(reported, ch, seed):
    """Each invocation reports some users, all in one round. With CH 80 all changes are kept."""
    times = np.repeat(np.arange(1, len(reported) + 1), reported)[None, :]
    recorded = np.zeros((2, times.size), dtype=np.int64)
    some, every = (evolve(recorded, times, one, Dice(seed)) for one in (ch, 80))
    for invocation in range(1, len(reported) + 1):
        stay = np.count_nonzero(some.changes.times == invocation)
        of = np.count_nonzero(every.changes.times == invocation)
        assert stay == -(-of * ch // 80)


# What leaves a dataset.


@pytest.mark.parametrize(("form", "name"), [("nquads", "s.nq"), ("jsonl", "s.jsonl")])
def test_the_stream_is_read_back_mention_by_mention(tmp_path, form, name):
    made = generate(2, 20, 1, SMALL)
    path = tmp_path / name
    path.write_text("".join(getattr(made, form)()))
    elements = [one for one in open_source(str(path)) if isinstance(one, Element)]
    found = [(element.timestamp, triple) for element in elements for triple in element.triples]
    assert [time for time, _ in found] == made.mention_times.tolist()
    assert {triple.predicate for _, triple in found} == {NamedNode(MENTIONS_PREDICATE)}
    users = [NamedNode(f"{USER}{user}") for user in made.mention_users.tolist()]
    assert [triple.object for _, triple in found] == users
    assert len({triple.subject for _, triple in found}) == SMALL.mentions


@pytest.mark.parametrize("time", [0, 1, 100_000, 160_000, SMALL.duration])
def test_the_endpoint_answers_with_the_dfc_of_the_time(tmp_path, time):
    made = generate(2, 80, 1, SMALL)
    path = tmp_path / "dfc.csv"
    path.write_text("".join(made.history_csv()))
    pattern = RemotePattern("http://s", f"{{ ?user <{DFC}> ?dfc }}", ("user",), ("dfc",))
    keys = list(made.replica())
    expected = made.dfc_at(time).tolist()
    for endpoint in (made.endpoint(), read_csv(path, pattern)):
        answers = endpoint.fetch(keys, UNLIMITED, time).answers
        assert [float(str(answers[key][0]["dfc"].value)) for key in keys] == expected


def test_the_replica_starts_with_what_the_endpoint_says_at_the_start():
    made = generate(2, 80, 1, SMALL)
    assert made.endpoint().snapshot(UNLIMITED, made.start).answers == made.replica()


# As in the paper.


@given(seed=SEEDS)
@examples(8)
def test_the_mentions_of_any_seed_are_near_those_of_the_paper(seed):
    found = mentions(generate(seed))
    pairs, users = spread_of(found.pairs), found.users.mean()
    note(f"{pairs}, {users:.1f} users, all mentions: {spread_of(found.whole)}")
    assert len(found.pairs) == 150
    assert pairs.median == pytest.approx(PAIRS.median, rel=0.1)
    assert pairs.least == pytest.approx(PAIRS.least, rel=0.3)
    assert pairs.largest == pytest.approx(PAIRS.largest, rel=0.3)
    assert users == pytest.approx(RESULTS, rel=0.15)


@given(seed=SEEDS, number=st.integers(1, 5))
@examples(4)
@pytest.mark.parametrize("ch", CHS)
def test_the_changes_of_any_seed_are_near_table_3(ch, seed, number):
    found, paper = summary_of(changes(generate(seed, ch, number))), TABLE_3[ch]
    note(f"{found}, in the paper {paper}")
    assert found.mean == pytest.approx(paper.mean, rel=0.04)
    assert found.median == pytest.approx(paper.median, rel=0.05)
    assert found.first_quartile == pytest.approx(paper.first_quartile, rel=0.1)
    assert found.third_quartile == pytest.approx(paper.third_quartile, rel=0.05)
    assert found.mean < found.median


def test_there_are_as_many_invocations_as_in_the_paper():
    for seed in range(5):
        made = generate(seed)
        assert len(made.invocations) == INVOCATIONS
        assert made.reported_users.sum() == 148 * 400


def test_few_users_have_many_mentions_and_most_have_few():
    counts = np.sort(np.bincount(generate(0).mention_users, minlength=400))[::-1]
    assert counts[:40].sum() > 0.5 * counts.sum()
    assert np.median(counts) < 0.5 * counts.mean()
    assert counts[0] < 0.1 * counts.sum()


def test_a_suite_has_five_datasets_of_each_ch():
    made = dict(generated_suite(0, SMALL))
    assert tuple(made) == (5, 10, 20, 40, 80)
    assert all(len({digest(one) for one in datasets}) == 5 for datasets in made.values())


def test_the_mentions_are_near_those_of_the_recorded_stream():
    trace = read_trace(real_data("acquatop"))
    ours = np.sort(np.bincount(generate(0).mention_users, minlength=400))[::-1]
    theirs = np.sort(np.bincount(trace.mention_users, minlength=400))[::-1]
    assert ours.sum() == pytest.approx(theirs.sum(), rel=0.05)
    assert ours[:20].sum() == pytest.approx(theirs[:20].sum(), rel=0.15)
    assert ours[20:100].sum() == pytest.approx(theirs[20:100].sum(), rel=0.15)
    assert np.count_nonzero(ours) == pytest.approx(np.count_nonzero(theirs), rel=0.15)


# Bad input, and the table.


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"ch": 0}, "ch must be a whole number from 1 to 80, not 0"),
        ({"ch": -5}, "ch must be"),
        ({"ch": 81}, "ch must be"),
        ({"ch": 2.5}, "ch must be a whole number from 1 to 80, not 2.5"),
        ({"ch": "20"}, "ch must be a whole number from 1 to 80, not '20'"),
        ({"seed": -1}, "seed must be"),
        ({"seed": True}, "seed must be"),
        ({"number": 0}, "number must be"),
    ],
)
def test_a_bad_parameter_is_refused_by_name(wrong, reason):
    with pytest.raises(ValueError, match=reason):
        generate(**wrong)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"users": 0}, "users must be a whole number from 1"),
        ({"users": 100_000}, "users must be at most 33783 for a duration of 9462000"),
        ({"duration": 0}, "duration must be"),
        ({"mentions": 0}, "mentions must be"),
        ({"mentions": None}, "mentions must be a whole number from 1 to 10000000, not None"),
    ],
)
def test_a_bad_scale_is_refused_by_name(wrong, reason):
    with pytest.raises(ValueError, match=reason):
        Scale(**wrong)


def test_the_table_stands_beside_the_figures_of_the_paper(capsys):
    assert main(["--seed", "3"]) == 0
    shown = capsys.readouterr().out
    assert "26/38/59" in shown
    assert all(f"DS-CH-{ch}, paper" in shown for ch in CHS)
    assert all(f"DS-CH-{ch} {n}, seed 3" in shown for ch in CHS for n in range(1, 6))
    assert "79.97" in shown


def test_a_bad_seed_is_told(capsys):
    assert main(["--seed", "-3"]) == 2
    assert capsys.readouterr().err.startswith("seed must be")
