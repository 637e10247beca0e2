"""What all tests share: queries run in this process, unless a test asks for Spark.

There is one Spark session for a whole run of the tests, since it takes seconds to start.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

os.environ["RSP_RUNNER"] = "local"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from rsp_engine.runtime.spark.session import session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Spark's own
        started = session("local[2]")
    yield started
    started.stop()
