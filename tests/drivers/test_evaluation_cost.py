"""The choice between executors and the driver: by what windows cost, as measured."""

from __future__ import annotations

import pytest

from rsp_engine.drivers.panes.evaluation_cost import MOST_ROWS, JobCost, WindowCost

LOAD, ASK = 3e-6, 5e-6


def measured(rows: int, panes: int) -> WindowCost:
    """Return the cost of windows that were measured often."""
    cost = WindowCost()
    first, moved = rows * (LOAD + ASK), rows * (LOAD / panes + ASK)
    for _ in range(20):
        cost.note([(first, rows), (moved, rows), (moved, rows)], panes, is_first=True)
    return cost


def test_what_loading_and_asking_cost_is_found_from_the_first_window_and_the_others():
    cost = measured(10_000, 10)
    assert cost.load == pytest.approx(LOAD, rel=1e-3)
    assert cost.ask == pytest.approx(ASK, rel=1e-3)


def test_windows_that_are_only_moved_keep_the_ratio_of_the_two():
    cost = measured(10_000, 10)
    for _ in range(20):
        cost.note([(2e4 * (LOAD / 10 + ASK), 10_000)], 10, is_first=False)
    assert cost.load == pytest.approx(2 * LOAD, rel=1e-3)
    assert cost.ask == pytest.approx(2 * ASK, rel=1e-3)


@pytest.mark.parametrize("cores", [1, 2, 16])
@pytest.mark.parametrize("number", [1, 2, 5, 50])
@pytest.mark.parametrize("rows", [10, 10_000, 400_000])
@pytest.mark.parametrize("has_buckets", [False, True])
def test_executors_are_chosen_where_the_formula_says_that_they_are_faster(
    cores, number, rows, has_buckets
):
    panes, job = 10, JobCost(0.05)
    load, ask = LOAD * rows / panes, ASK * rows
    here = number * (load + ask)
    first = (panes - 1) * load / (cores if has_buckets else 1)
    away = job.seconds + first + number * (load + ask) / cores
    chosen = measured(rows, panes).gains(
        [rows] * number, panes, cores, job, has_buckets=has_buckets
    )
    assert chosen == (cores > 1 and away < here)


def test_one_small_window_stays_on_the_driver():
    assert not WindowCost().gains([5_000], 10, 64, JobCost(), has_buckets=True)


def test_a_window_that_is_too_large_for_one_process_does_not():
    rows = [MOST_ROWS + 1]
    assert WindowCost(1e-12, 1e-12).gains(rows, 10, 2, JobCost(), has_buckets=False)
    assert not WindowCost(1e-12, 1e-12).gains(rows, 10, 1, JobCost(), has_buckets=False)


def test_empty_windows_cost_nothing_that_could_be_noted():
    cost = WindowCost()
    cost.note([(1.0, 0)], 10, is_first=True)
    assert cost == WindowCost()
