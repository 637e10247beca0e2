"""The replay of a recorded run: small ones written here, and the authors' own where available."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from rsp_engine.errors import SourceError
from rsp_engine.experiments.datasets.recording import RecordedReplay, read_recording, recorded_rows
from rsp_engine.experiments.replay import (
    SEEDS,
    Reference,
    ReplaySetting,
    Total,
    main,
    mean,
    read_reference,
    replay_recording,
    total,
)
from rsp_engine.policies import POLICIES
from tests.data import real_data
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from pathlib import Path

BUDGETS = (7, 15) if TIMES > 1 else (7,)
NEAR = 8  # of 150 windows
HEADING = "window,eval_ts_ms,user_id,mn,dfc_true,oracle_score,oracle_rank,initial_replica_dfc\n"
SMALL = HEADING + (
    # Both windows hold the users 30, 20 and 10. The remote value of 10 rises, that of 30 falls.
    "0,1000,30,1,8,0,1,8\n"
    "0,1000,20,1,5,0,2,5\n"
    "0,1000,10,1,0,0,3,0\n"
    "1,2000,10,1,9,0,1,0\n"
    "1,2000,20,1,5,0,2,5\n"
    "1,2000,30,1,2,0,3,8\n"
)


@pytest.fixture
def small(tmp_path: Path) -> RecordedReplay:
    path = tmp_path / "small.csv"
    path.write_text(SMALL)
    return read_recording(path)


def test_a_recording_is_read_window_by_window_in_the_order_of_the_oracle(small):
    assert [window.close for window in small.windows] == [1000, 2000]
    assert [window.keys.tolist() for window in small.windows] == [[2, 1, 0], [0, 1, 2]]
    assert small.windows[1].remote.tolist() == [9, 5, 2]
    assert small.snapshot.tolist() == [0, 5, 8]
    assert small.step == 1000
    assert small.score(np.array([1]), np.array([9])).tolist() == pytest.approx([0.3])


@pytest.mark.parametrize(
    ("policy", "budget", "fetched", "is_right"),
    [
        # The replica says 30, 20, 10 in both windows; in the second 10, 20, 30 is right.
        ("WST", 1, 0, False),
        ("AT-TSM", 1, 1, False),  # 30 falls: 20 is taken to be first
        ("AT-TSM", 2, 2, False),
        ("AT-TSM", 3, 3, True),
        ("AT-BSM", 1, 1, False),  # 20, beyond the border: nothing new
        ("WSJ-LRU", 2, 2, True),  # 10 was not fetched in the first window, 30 comes second
        ("AT-ASM", 0, 3, True),
        ("EXACT", 0, 3, True),
    ],
)
def test_a_policy_changes_the_answer_by_what_it_fetches(small, policy, budget, fetched, is_right):
    """K = 1, and a list that holds the whole window."""
    first, second = replay_recording(small, policy, budget, setting=ReplaySetting(1, 1, 1))
    assert first.measures.precision == 1
    assert second.measures.precision == float(is_right)
    assert second.fetched == fetched
    assert second.has_true_scores == is_right


def test_only_policies_of_the_list_look_at_a_part_of_the_window(small):
    """A list of 2(1+0) holds 30 and 20, so that 10 is never fetched."""
    setting = ReplaySetting(1, 0, 1)
    for name, precision, fetched in [("AT-ASM", 0, 2), ("EXACT", 1, 3)]:
        _, second = replay_recording(small, name, 3, setting=setting)
        assert (second.measures.precision, second.fetched) == (precision, fetched)


def test_a_run_repeats_itself_under_one_seed(small):
    def run(seed):
        return tuple(replay_recording(small, "WSJ-RND", 1, seed, ReplaySetting(1, 1, 1)))

    assert run(3) == run(3)
    assert len({run(seed) for seed in range(20)}) > 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no column dfc_true, eval_ts_ms"),
        (SMALL.replace("mn", "mentions"), "has no column mn"),
        (HEADING, "at least two windows"),
        (SMALL.replace("1,2000,10,1,9", "1,2000,10,1,nine"), "a whole number, not 'nine'"),
        (HEADING + "0,1000,30\n", "a whole number, not None"),
    ],
)
def test_a_recording_that_cannot_be_read_is_refused_with_the_reason(tmp_path, text, reason):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=reason):
        read_recording(path)


def test_what_is_no_text_is_refused(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SourceError, match="is no CSV file"):
        read_recording(path)


@pytest.mark.parametrize("row", ["2,WST,1,many,1\n", "two,WST,1,1,1\n", "2,WST,1\n"])
def test_a_reference_that_cannot_be_read_is_refused(tmp_path, row):
    names = "budget,policy,cum_ndcg_paper_formula,cum_ndcg_authors_program,cum_precision\n"
    path = tmp_path / "bad.csv"
    path.write_text(names + row)
    with pytest.raises(SourceError, match="a number is missing or wrong"):
        read_reference(path)


def test_the_table_is_printed_beside_the_reference(tmp_path, capsys):
    (tmp_path / "replay_ch20.csv").write_text(SMALL)
    (tmp_path / "reference_metrics_ch20.csv").write_text(
        "budget,k,n,policy,windows,cum_ndcg_paper_formula,cum_ndcg_authors_program,cum_precision\n"
        "2,5,10,WST,2,1.25,1.5,1.75\n"
    )
    assert main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    lines = {line.split()[1]: line for line in shown.splitlines() if line.startswith("│")}
    assert set(lines) - {"AT-TSM,", "AT-VOI+signal"} == set(POLICIES)
    assert all(cell in lines["WST"] for cell in ("1.2", "1.5", "1.8"))
    assert "/     -" in lines["EXACT"]


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["no-such-folder"]])
def test_what_cannot_be_replayed_is_told(arguments, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(("usage: ", "cannot read no-such-folder"))


# The authors' run: K=5, N=10, 150 windows, 20 changes an invocation.


@pytest.fixture(scope="module")
def folder() -> Path:
    return real_data("acquatop")


@pytest.fixture(scope="module")
def recording(folder: Path) -> RecordedReplay:
    return read_recording(folder / "replay_ch20.csv")


@pytest.fixture(scope="module")
def reference(folder: Path) -> dict[tuple[str, int], Reference]:
    return read_reference(folder / "reference_metrics_ch20.csv")


def run(recording: RecordedReplay, policy: str, budget: int, seeds: int = 1) -> Total:
    runs = (replay_recording(recording, policy, budget, seed) for seed in range(seeds))
    return mean([total(outcomes) for outcomes in runs])


def test_the_order_of_the_recorded_oracle_is_ours(folder, recording):
    assert len(recording.windows) == 150
    for window in recording.windows:
        scores = recording.score(window.streamed, window.remote)
        ours = np.lexsort((-window.keys, -scores))[:5]
        assert ours.tolist() == [0, 1, 2, 3, 4]


def test_the_recorded_scores_are_those_of_the_query(folder, recording):
    rows = recorded_rows(folder / "replay_ch20.csv", ("mn", "dfc_true", "oracle_score"))
    numbers = np.array([[float(r[c]) for c in ("mn", "dfc_true", "oracle_score")] for r in rows])
    ours = recording.score(numbers[:, 0].astype(int), numbers[:, 1].astype(int))
    assert len(numbers) == 4785
    assert np.abs(ours * 1e8 - numbers[:, 2]).max() < 10


@pytest.mark.parametrize("policy", ["AT-ASM", "EXACT"])
def test_fetching_everything_gives_the_scores_of_the_oracle_in_every_window(recording, policy):
    assert run(recording, policy, 7).true_windows == 150


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(
    ("policy", "less"), [("WST", 0), ("WSJ-RND", 0), ("WSJ-LRU", 0), ("AT-TSM", 1)]
)
def test_the_measures_are_near_the_run_of_the_authors(recording, reference, policy, less, budget):
    """The authors' AT-TSM fetches one key less than its budget."""
    seeds = SEEDS if policy == "WSJ-RND" else 1
    found = run(recording, policy, budget - less, seeds).measures
    theirs = reference[policy, budget]
    assert found.ndcg == pytest.approx(theirs.ndcg, abs=NEAR)
    assert found.ndcg_by_place == pytest.approx(theirs.ndcg_by_place, abs=NEAR)
    assert found.precision == pytest.approx(theirs.precision, abs=NEAR)


@pytest.mark.parametrize("budget", BUDGETS)
def test_tsm_is_the_most_relevant_of_the_bounded(recording, budget):
    bounded = [name for name, policy in POLICIES.items() if policy.is_bounded]
    measures = {name: run(recording, name, budget).measures for name in bounded}
    for learns in ("AT-VOI", "WSJ-VOI"):  # these are no policies of the paper
        ours, theirs = measures.pop(learns), measures["AT-TSM"]
        assert ours.ndcg > theirs.ndcg - (0 if learns == "AT-VOI" else 0.2)
        assert ours.precision > theirs.precision + 1
    found = {name: one.ndcg for name, one in measures.items() if "ECR" not in name}  # learns, too
    first = found.pop("AT-TSM")
    assert first > found.pop("AT-BSM") - 1
    assert first > max(found.values())
