"""Trials are fair, their intervals cover, and the rival is chosen without looking."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from rsp_engine.errors import SuiteError
from rsp_engine.experiments import policy_run
from rsp_engine.experiments.bundled_suites import find_suite
from rsp_engine.experiments.clairvoyant import CLAIRVOYANT
from rsp_engine.experiments.policy_run import RunSetting, run_policy, split_ways
from rsp_engine.experiments.process_pool import in_turn
from rsp_engine.experiments.report.measured import Measured, Point, measured
from rsp_engine.experiments.results import Results, read_result_folder, run_suite
from rsp_engine.experiments.suite import Data, ParameterGrid, PolicyComparison, Suite, read_suite
from rsp_engine.experiments.tasks import dataset_of, tasks_of, work
from rsp_engine.experiments.trials.bootstrap import block_length, paired_difference
from rsp_engine.experiments.trials.cells import TrialCell, outcome_of, trial_cells
from rsp_engine.experiments.trials.tables import (
    TextTable,
    cells_table,
    signal_table,
    summary_tables,
    table_writer,
    trial_tables,
)
from rsp_engine.experiments.workload import workload_of
from rsp_engine.replica.endpoints.endpoint import UNLIMITED
from tests.thoroughness import TIMES

# No two policies of a comparison see different ties, signal, N or cold start.


def test_all_policies_of_a_comparison_see_the_same(monkeypatch):
    """Every run of the bundled suite is looked at as the engine gets it: all but the policy."""
    seen: dict[tuple[object, ...], list[tuple[str, Any]]] = {}
    plan_of = policy_run.plan_of
    suite = read_suite(find_suite("fair-trials-signal"), quick=True)
    suite = replace(
        suite,
        data=replace(suite.data, datasets=1, windows=3),
        grids=tuple(grid for grid in suite.grids if grid.family == "churn"),
    )

    def spied(workload, setting):
        plan = plan_of(workload, setting)
        if setting.policy != "EXACT":
            [service] = plan.services
            name, ways = split_ways(setting.policy)
            options = replace(service.options, policy="", change_interval=None, n=0)
            conditions = (
                options,  # seed, budget, limits, replica: all but the policy and N
                service.modified,
                service.is_pushed,
                plan.scans,
                workload.endpoint.snapshot(UNLIMITED, 0).answers,
                tuple((pane, id(content)) for pane, content in workload.contents),
                workload.users,
            )
            cell = (id(workload), setting.budget, setting.k, ways)
            seen.setdefault(cell, []).append((name, (conditions, plan.operator, service.policy)))
        return plan

    monkeypatch.setattr(policy_run, "plan_of", spied)
    for task in tasks_of(suite):
        work(task)
    named = {name for comparison in suite.comparisons for name in comparison.baselines}
    assert len(seen) == 3 * 2  # budgets, with and without the signal
    for runs in seen.values():
        assert {name for name, _ in runs} == named | {"AT-VOI"}
        for (_, one), (_, other) in combinations(runs, 2):
            (ours, our_operator, policy), (theirs, their_operator, rival) = one, other
            assert ours == theirs
            # The list alone depends on N, and only policies of the list look at it.
            if policy.proposer == rival.proposer == "list":
                assert our_operator == their_operator
            assert replace(our_operator, n=0) == replace(their_operator, n=0)


def test_a_policy_under_another_name_is_tied_with_itself():
    grid = made({"A": [0.5, 0.7], "B": [0.5, 0.7]})
    for cell in trial_cells(grid, PolicyComparison("x", ("A",), ("B",))):
        assert [*cell.rival.difference] == [0, 0, 0]
        assert outcome_of(cell.rival.difference) == "tied"


# The bootstrap.


def correlated(chance, count, phi):
    noise = chance.standard_normal(count + 50) * (chance.random(count + 50) < 0.4)
    series = np.zeros(count + 50)
    for place in range(1, count + 50):
        series[place] = phi * series[place - 1] + noise[place]
    return series[50:]


@pytest.mark.parametrize(("phi", "least"), [(0.0, 0.89), (0.3, 0.87), (0.6, 0.82)])
def test_the_interval_covers_the_true_mean_nearly_as_often_as_it_says(phi, least):
    """95 % is nominal. Differences of neighbouring windows of real runs correlate by 0 to 0.4."""
    chance, runs = np.random.default_rng(5), 100 * TIMES
    found = [paired_difference([0.3 + correlated(chance, 150, phi)]) for _ in range(runs)]
    covered = np.mean([one.low <= 0.3 <= one.high for one in found])
    assert least <= covered <= 0.99


def test_the_interval_is_that_of_a_naive_bootstrap():
    """A loop that draws circular blocks one window at a time has the same quantiles."""
    values = correlated(np.random.default_rng(2), 60, 0.4)
    length, chance = block_length(60), np.random.default_rng(3)
    means = []
    for _ in range(4000):
        drawn: list[float] = []
        while len(drawn) < 60:
            start = chance.integers(60)
            drawn += [values[(start + step) % 60] for step in range(length)]
        means.append(np.mean(drawn[:60]))
    blocks = -(-60 // length)
    low, high = values.mean() + np.sqrt(blocks / (blocks - 1)) * (
        np.quantile(means, (0.025, 0.975)) - values.mean()
    )
    found = paired_difference([values])
    assert found.mean == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.06 * (high - low))


def test_pairing_makes_the_interval_narrower():
    """What both policies find hard cancels out."""
    chance = np.random.default_rng(0)
    hard, own = chance.random(150), 0.02 * chance.random(150)
    paired = paired_difference([(hard + own + 0.01) - hard])
    unpaired = paired_difference([(hard + own + 0.01) - chance.permutation(hard)])
    assert paired.high - paired.low < 0.1 * (unpaired.high - unpaired.low)


def test_datasets_count_alike_and_more_of_them_narrow_the_interval():
    chance = np.random.default_rng(1)
    short, long = np.ones(10), np.zeros(100)
    assert paired_difference([short, long]).mean == 0.5
    rows = [chance.standard_normal(100) for _ in range(9)]
    one, nine = paired_difference(rows[:1]), paired_difference(rows)
    assert nine.high - nine.low < 0.5 * (one.high - one.low)


def test_a_single_window_tells_nothing():
    found = paired_difference([np.ones(1)])
    assert (found.mean, outcome_of(found)) == (1, "tied")


# Cells.


def made(means, *, budgets=(7,), family="walks", windows=40) -> Measured:
    """Return a grid whose policies have these mean nDCG, by dataset, and the same precision."""
    points = [Point(20, budget, 5, 40) for budget in budgets]
    noise = np.random.default_rng(0).normal(0, 1e-4, windows)
    rows = {}
    for policy, values in means.items():
        table = np.stack([np.full((len(values), windows), np.array(values)[:, None])] * 4)
        table[0] += noise
        rows.update({(policy, point): table for point in points})
    grid = ParameterGrid("g", tuple(means), (20,), budgets, (5,), (40,), family)
    manifest = {"data": {"source": "generated"}, "suite": "s"}
    return Measured(Results(None, manifest), grid, "budget", rows)  # type: ignore[arg-type]


def cells_of(grid, challengers=("AT-VOI",), baselines=("AT-TSM", "WSJ-LRU")) -> list[TrialCell]:
    comparison = PolicyComparison("others", challengers, baselines)
    return [cell for cell in trial_cells(grid, comparison) if cell.measure == "ndcg"]


def test_the_rival_is_the_best_on_the_other_datasets_and_the_best_is_known_afterwards():
    grid = made(
        {
            "AT-VOI": [0.5, 0.5, 0.5],
            "AT-TSM": [0.9, 0.1, 0.1],  # the best on the first alone
            "WSJ-LRU": [0.4, 0.4, 0.4],
        }
    )
    first, second, third = cells_of(grid)
    assert [cell.rival.name for cell in (first, second, third)] == ["WSJ-LRU", "AT-TSM", "AT-TSM"]
    assert [cell.best.name for cell in (first, second, third)] == ["AT-TSM", "WSJ-LRU", "WSJ-LRU"]
    assert first.rival.difference.mean == pytest.approx(150 * 0.1)
    assert first.best.difference.mean == pytest.approx(150 * -0.4)
    assert first.value == pytest.approx(75, abs=0.1)


@pytest.mark.parametrize("seed", range(10))
def test_the_rival_is_that_of_a_naive_choice(seed):
    chance = np.random.default_rng(seed)
    means = {name: chance.random(4).tolist() for name in ("AT-VOI", "a", "b", "c")}
    for cell in cells_of(made(means), baselines=("a", "b", "c")):
        others = [place for place in range(4) if place != cell.dataset - 1]
        naive = max("abc", key=lambda name: sum(means[name][place] for place in others))
        assert cell.rival.name == naive
        assert cell.best.name == max("abc", key=lambda name: means[name][cell.dataset - 1])


def test_a_single_dataset_has_the_best_in_hindsight_as_its_rival():
    [cell] = cells_of(made({"AT-VOI": [0.5], "AT-TSM": [0.6], "WSJ-LRU": [0.4]}))
    assert cell.rival.name == cell.best.name == "AT-TSM"
    assert outcome_of(cell.rival.difference) == "lost"


def test_runs_with_the_signal_are_compared_among_themselves():
    means = {"AT-VOI": [0.5], "AT-TSM": [0.4], "AT-VOI+signal": [0.6], "AT-TSM+signal": [0.7]}
    grid = made({**means, CLAIRVOYANT: [0.9]})
    plain, signal = cells_of(grid)
    assert (plain.ways, outcome_of(plain.rival.difference)) == ((), "won")
    assert (signal.ways, outcome_of(signal.rival.difference)) == (("signal",), "lost")
    assert plain.clairvoyant == signal.clairvoyant == pytest.approx(135, abs=0.1)
    table = signal_table([grid])
    assert table is not None
    assert [row[:3] for row in table.rows] == [
        ("AT-VOI", "1", "1, 0, 0"),
        ("AT-TSM", "1", "1, 0, 0"),
    ]


def test_the_measures_are_paired_by_window():
    grid = made({"AT-VOI": [0.5], "AT-TSM": [0.5]})
    point = grid.points[0]
    grid.rows["AT-VOI", point][0] = np.linspace(0, 1, 40)
    grid.rows["AT-TSM", point][0] = np.linspace(0, 1, 40) - 0.01
    [cell] = cells_of(grid)
    assert cell.rival.differences.tolist() == pytest.approx([0.01] * 40)
    assert cell.rival.difference == pytest.approx((1.5, 1.5, 1.5))


# Tables.


def test_a_table_counts_the_cells_of_each_family():
    grids = [
        made({"AT-VOI": [0.5, 0.5], "AT-TSM": [0.4, 0.4]}, budgets=(1, 3, 7)),
        made({"AT-VOI": [0.5, 0.5], "AT-TSM": [0.4, 0.6]}, budgets=(3,), family="bursts"),
    ]
    large, small = summary_tables(grids, PolicyComparison("others", ("AT-VOI",), ("AT-TSM",)))
    assert large.title == "AT-VOI against others, B >= 3"
    assert [row[:3] for row in large.rows] == [
        ("walks", "4", "4, 0, 0"),
        ("bursts", "2", "1, 0, 1"),
        ("all", "6", "5, 0, 1"),
    ]
    assert [row[6] for row in large.rows] == ["100 %", "50 %", "83 %"]
    assert [row[8] for row in large.rows] == ["0", "1", "1"]
    assert small.title.endswith("B < 3")
    assert [row[:3] for row in small.rows] == [("walks", "2", "2, 0, 0")]


def test_tables_are_written_as_markdown_csv_and_latex():
    table = TextTable("B >= 3 & more", ("data", "a_b"), (("x|y", "5 %"), ("<1", "")))
    assert table_writer("markdown")(table).splitlines() == [
        "**B >= 3 & more**",
        "",
        "| data | a_b |",
        "| --- | --- |",
        "| x\\|y | 5 % |",
        "| <1 |  |",
    ]
    assert table_writer("csv")(table) == "data,a_b\nx|y,5 %\n<1,\n"
    latex = table_writer("latex")(table)
    assert "\\caption{B $\\geq$ 3 \\& more}" in latex
    assert "data & a\\_b \\\\\n" in latex
    assert "x|y & 5 \\% \\\\\n$<$1 &  \\\\\n" in latex
    with pytest.raises(SuiteError, match="there is no table format html"):
        table_writer("html")


def test_a_suite_without_a_comparison_is_refused():
    with pytest.raises(SuiteError, match="nothing is compared"):
        list(trial_tables([((), [made({"A": [0.5]})])], has_cells=False))


def test_a_suite_is_run_and_compared(tmp_path):
    policies = ("AT-TSM", "WSJ-LRU", "AT-VOI", CLAIRVOYANT)
    grid = ParameterGrid("g, walks", policies, (20,), (3,), (5,), (40,), "walks")
    comparison = PolicyComparison("others", ("AT-VOI",), ("AT-TSM", "WSJ-LRU"))
    data = Data(datasets=2, windows=8, mentions="separate")
    suite = Suite("s", "S", "budget", data, (grid,), comparisons=(comparison,))
    folder = read_result_folder(run_suite(suite, tmp_path, in_turn))
    assert folder.comparisons == [comparison]
    table = cells_table(measured(folder), comparison)
    assert len(table.rows) == 2 * 3  # datasets, measures
    first = dict(zip(table.head, table.rows[0], strict=True))
    workload = workload_of(dataset_of(suite.data, "walks", 20, 1), 8)
    ours, theirs = (
        [o.ndcg for o in run_policy(workload, RunSetting(policy, 3, 5, 40))]
        for policy in ("AT-VOI", first["rival"])
    )
    assert float(first["difference"]) == pytest.approx(
        150 * np.mean(np.subtract(ours, theirs)), abs=0.001
    )
    # Another comparison of the same results needs no run.
    other = replace(suite, comparisons=(PolicyComparison("one", ("AT-VOI",), ("AT-TSM",)),))

    def refuse(_work, tasks):
        assert not tasks
        yield from ()

    assert read_result_folder(run_suite(other, tmp_path, refuse)).comparisons == [
        *other.comparisons
    ]
