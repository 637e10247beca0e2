"""The benchmark of Spark: its baseline runs with what `make setup` installs."""

from __future__ import annotations

import runpy

from tests.data import PROJECT


def test_the_baseline_of_the_benchmark_needs_no_other_package(spark, tmp_path):
    benchmark = runpy.run_path(str(PROJECT / "benchmarks" / "bench_spark.py"))
    stream = tmp_path / "stream.nq"
    benchmark["write_stream"](stream, 100)
    assert benchmark["parse_seconds"](stream) > 0
