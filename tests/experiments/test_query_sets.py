"""Sets of queries under one budget: what each query is measured against, and what all fetch."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rsp_engine.errors import SuiteError
from rsp_engine.experiments.bundled_suites import find_suite
from rsp_engine.experiments.datasets.generator import Scale, generate
from rsp_engine.experiments.policy_run import RunSetting, oracle
from rsp_engine.experiments.process_pool import in_turn
from rsp_engine.experiments.query_sets import members_of, run_set, set_answers
from rsp_engine.experiments.report.measured import measured
from rsp_engine.experiments.report.query_sets import query_sets_rows, query_sets_table
from rsp_engine.experiments.results import read_result_folder, run_suite
from rsp_engine.experiments.suite import read_suite
from rsp_engine.experiments.workload import Workload, workload_of

if TYPE_CHECKING:
    from pathlib import Path

WAYS = ("AT-VOI", "AT-VOI+equal", "AT-VOI+apart", "AT-TSM", "AT-TSM+apart")


@pytest.fixture(scope="module")
def workload() -> Workload:
    return workload_of(generate(3, 20, 1, Scale(users=120, mentions=2000)), 8)


def test_any_two_queries_have_about_half_of_their_users_in_common(workload: Workload) -> None:
    members = members_of(workload, RunSetting("AT-VOI", 20, 5, 40, 1, queries=6))
    users = [set(member.mentions.users.tolist()) for member in members]
    for one, other in combinations(users, 2):
        assert 0.3 < len(one & other) / len(one) < 0.7
    smaller = members_of(workload, RunSetting("AT-VOI", 20, 5, 40, 1, queries=3))
    assert smaller == members[:3]


@pytest.mark.parametrize("policy", WAYS)
def test_a_set_fetches_no_more_than_its_budget(workload: Workload, policy: str) -> None:
    setting = RunSetting(policy, 7, 3, 10, 1, queries=4)
    fetched = [sum(o.fetched for o in outcomes) for outcomes in run_set(workload, setting)]
    assert max(fetched) <= 7
    assert min(fetched[1:]) > 0


@pytest.mark.parametrize("policy", WAYS)
def test_a_set_that_may_fetch_every_key_is_exact(workload: Workload, policy: str) -> None:
    setting = RunSetting(policy, 1000, 5, 200, 1, queries=3)
    exact = [oracle(member) for member in members_of(workload, setting)]
    answers = list(set_answers(members_of(workload, setting), setting))
    for window, outcomes in enumerate(run_set(workload, setting)):
        for number, outcome in enumerate(outcomes):
            assert outcome.ndcg == outcome.precision == 1
            assert outcome.answer == answers[window][number].users
            assert outcome.answer == exact[number][window].users[:5]


def test_the_suite_has_a_row_for_each_query_and_a_table_in_the_report(tmp_path: Path) -> None:
    suite = read_suite(find_suite("many-queries"), quick=True)
    results = read_result_folder(run_suite(suite, tmp_path, in_turn))
    [grid] = measured(results)
    for (policy, point), rows in grid.rows.items():
        assert rows.shape == (4, suite.data.datasets, suite.data.windows)
        by_query = grid.by_query[policy, point]
        assert by_query.shape == (4, suite.data.datasets, point.queries)
        assert np.allclose(by_query[:3].mean(axis=2), rows[:3].mean(axis=2))
        assert rows[-1].max() <= 20
    shown = list(query_sets_rows(grid))
    assert len(shown) == 2 * 2 * 3
    gains = [row[5] for row in shown if row[0] == "1" and row[1] != "AT-VOI"]
    assert all(gain.startswith(("+0.0000", "-0.0000")) for gain in gains), "a set of one is alone"
    assert "gain of one budget" in query_sets_table(grid)


@pytest.mark.parametrize(
    ("policies", "queries", "message"),
    [
        ('["AT-VOI+equal"]', "", "AT-VOI.equal is for sets of queries"),
        ('["CLAIRVOYANT"]', "queries = [3]", "CLAIRVOYANT is not for sets of queries"),
        ('["AT-TSM+pushed"]', "queries = [3]", "AT-TSM.pushed is not for sets of queries"),
        ('["AT-VOI"]', "queries = [0]", "queries: must be a whole number from 1 to 64"),
        ('["AT-VOI+equal+apart"]', "queries = [3]", "says something twice"),
    ],
)
def test_suites_of_sets_that_mean_nothing_are_refused(
    policies: str, queries: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        'title = "t"\nvaried = "budget"\n[[grid]]\nname = "g"\nch = [20]\nbudget = [3]\nk = [5]\n'
        f"n = [10]\npolicies = {policies}\n{queries}\n"
    )
    with pytest.raises(SuiteError, match=message):
        read_suite(path)
