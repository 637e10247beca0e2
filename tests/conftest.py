"""What all tests share.

No test fails for being slow: time is looked at on purpose only. Queries run in this process,
unless a test asks for Spark. There is one Spark session for all tests, since it takes seconds to
start: the tests that use it are run one after the other, by the same worker.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

settings.register_profile("usual", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "thorough", settings.get_profile("usual"), max_examples=TIMES * settings().max_examples
)
settings.load_profile("usual" if TIMES == 1 else "thorough")
os.environ["RSP_RUNNER"] = "local"


class SparkOnOneWorker(LoadScopeScheduling):  # type: ignore[misc]
    """A scheduler that gives the tests with Spark to one worker, and any other test to any."""

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if "spark" in nodeid else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SparkOnOneWorker:
    return SparkOnOneWorker(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests that use Spark without saying so: the scheduler knows nothing but names."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and "spark" not in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid} uses Spark: say so in its name")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from rsp_engine.drivers.spark.session import start_session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Spark's own
        started = start_session("local[2]")
    yield started
    started.stop()
