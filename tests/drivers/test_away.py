"""A split that cannot be read at the moment waits, with the later ones of its source."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from rsp_engine.drivers.checkpoint.commits import BatchPlan
from rsp_engine.drivers.spark.arrow_codec import from_rows, to_rows
from rsp_engine.drivers.spark.driver import SparkDriver
from rsp_engine.drivers.splits.split_reducer import ReducedSplit
from rsp_engine.io.sources.splits import Split

AWAY = ReducedSplit(away="the broker cannot be reached")
READ = ReducedSplit()


@pytest.mark.parametrize("reduced", [AWAY, READ, ReducedSplit(trouble="late", lasts=True)])
def test_the_reason_comes_back_from_an_executor(reduced):
    batch = to_rows(0, 3, Split(5, 9), reduced)
    assert from_rows(pa.Table.from_batches([batch])) == [
        (3, Split(5, 9), ReducedSplit([], [], reduced.trouble, reduced.lasts, reduced.away))
    ]


def driver(*results: list[ReducedSplit]) -> Any:
    """Return a driver whose executors give these results for the splits of a plan, in turn."""
    given = iter(results)
    reports: list[tuple[int, str]] = []
    plans: list[BatchPlan] = []
    run = SimpleNamespace(
        report=lambda number, trouble: reports.append((number, trouble)),
        include=lambda _: None,
        end=lambda _: None,
    )
    made: Any = SparkDriver.__new__(SparkDriver)
    made._run, made._commits = run, SimpleNamespace(plan=plans.append)
    made._read_splits = lambda _, plan: [
        (*split, result) for split, result in zip(plan.splits, next(given), strict=True)
    ]
    made.reports, made.plans = reports, plans
    return made


PLAN = BatchPlan([(0, Split(0, 5)), (1, Split(0, 4)), (0, Split(5, 9)), (1, Split(4, 8))])


def test_what_was_read_is_planned_again_without_the_rest():
    """Of source 0 the first split cannot be read, so the second is left out, too."""
    made = driver([AWAY, READ, READ, READ])
    read = made._read(None, PLAN)
    assert [(source, split) for source, split, _ in read] == [PLAN.splits[1], PLAN.splits[3]]
    assert made.plans == [BatchPlan([PLAN.splits[1], PLAN.splits[3]])]
    assert made.reports == [(0, "the broker cannot be reached")]


def test_a_plan_that_was_read_whole_is_not_written_again():
    made = driver([READ] * 4)
    assert len(made._read(None, PLAN)) == 4
    assert made.plans == made.reports == []


def test_a_micro_batch_that_broke_off_is_read_again_until_all_of_it_is_there():
    made = driver([READ, AWAY, READ, READ], [READ] * 4)
    assert len(made._read_again(None, PLAN)) == 4
    assert made.reports == [(1, "the broker cannot be reached")]
