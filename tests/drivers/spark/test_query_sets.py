"""Sets of queries on Spark: each is answered as alone, also after its processes were killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.drivers.test_query_sets import killed_set

if TYPE_CHECKING:
    from pathlib import Path


def test_a_set_on_spark_that_is_killed_answers_each_query_as_alone(tmp_path: Path) -> None:
    """It takes some 60 seconds: Spark starts three times."""
    killed_set(tmp_path, "spark", (40, 1500))
