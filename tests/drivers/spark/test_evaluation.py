"""Windows that executors evaluate: the bytes are those of the local driver, whoever evaluates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from rsp_engine.drivers.spark.driver import SparkOptions
from tests.drivers.cut import texts
from tests.drivers.spark.test_driver import engine, lines
from tests.evaluators.cases import load, run
from tests.evaluators.test_semantics import CASES
from tests.evaluators.test_semantics import check as compare
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.drivers.panes.evaluation import Where

pytestmark = pytest.mark.usefixtures("spark")

SHARED = ("groups", "all rows", "general")
"""Kinds of queries whose windows executors evaluate."""


@pytest.fixture
def evaluated(monkeypatch) -> Callable[..., None]:
    """Return a function that decides who evaluates windows, and with how many buckets."""

    def choose(where: Where, buckets: int = 3) -> None:
        options = partial(SparkOptions, where=where, buckets=buckets, small_bytes=0)
        monkeypatch.setattr("rsp_engine.drivers.spark.driver.SparkOptions", options)

    return choose


@pytest.mark.parametrize("path", CASES if TIMES > 1 else CASES[::24], ids=lambda path: path.stem)
def test_a_case_of_the_semantics_holds_by_executors(path, evaluated, tmp_path, monkeypatch):
    monkeypatch.setenv("RSP_RUNNER", "spark")
    evaluated("executors")
    case = load(path)
    compare(case.expected, run(case, tmp_path))


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("buckets", (1, 3, 16) if TIMES > 1 else (3,))
def test_executors_give_the_bytes_of_the_local_driver(kind, buckets, evaluated, tmp_path):
    path = tmp_path / "stream.nq"
    path.write_text("".join(lines(1, late=True)), encoding="utf-8")
    local = engine(kind, str(path), "local")
    expected = texts(local)
    for where in ("executors", "driver", "auto"):
        evaluated(where, buckets)
        spark = engine(kind, str(path), "spark")
        assert texts(spark) == expected
        assert spark.counts == local.counts
