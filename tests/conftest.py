"""What all tests share.

No test fails for being slow: time is looked at on purpose only. Queries run in this process,
unless a test asks for Spark. There is one Spark session for all tests, since it takes seconds to
start: the tests that use it are run one after the other, by the same worker, as are those of a file
that share a fixture or a cache.

A usual run tries the same examples each time, so that what passes once passes again. `make soak`
draws others in each run, and many more.

`make test-fast` leaves out the tests marked `outside`, and lets no other start a process or a
server.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.thoroughness import IS_FAST, TIMES, scaled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.scheduler import SharedOnOneWorker

settings.register_profile(
    "project",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=scaled(settings().max_examples),
    derandomize=TIMES == 1,
)
settings.load_profile("project")
os.environ["RSP_RUNNER"] = "local"
# Workers and commands keep what they compile: there are hundreds of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Java compiles quickly rather than well: no test runs long enough to gain by the other.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

OUTSIDE = {
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "socket.bind",
    "socket.connect",
    "subprocess.Popen",
}
"""What a test does (as an audit event of Python) that starts a process or reaches a server."""


@pytest.hookimpl(optionalhook=True)  # xdist may be absent, as beside an installed wheel
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedOnOneWorker | None:
    if config.getvalue("dist") != "loadscope":
        return None
    from tests.scheduler import SharedOnOneWorker

    return SharedOnOneWorker(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests that use Spark without saying so: the scheduler knows nothing but names."""
    for item in items:
        if "spark" in item.nodeid:
            item.add_marker("outside")
        if "spark" in getattr(item, "fixturenames", ()) and "spark" not in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid} uses Spark: say so in its name")


class Inside:
    """A guard of the fast run: it refuses what a test not marked `outside` may not do."""

    def __init__(self) -> None:
        self._is_testing = False
        sys.addaudithook(self._refuse)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[Any]:
        self._is_testing = True
        try:
            return (yield)
        finally:
            self._is_testing = False

    def _refuse(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._is_testing and event in OUTSIDE:
            raise RuntimeError(f"{event}{arguments!r:.200}: mark the test as `outside`")


def pytest_configure(config: pytest.Config) -> None:
    if IS_FAST:
        config.pluginmanager.register(Inside())


def pytest_runtest_teardown() -> None:
    """Undo what `rsp run` does to the garbage collector: elsewhere, it owns its process."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from rsp_engine.drivers.spark.session import start_session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Spark's own
        started = start_session("local[2]")
    yield started
    started.stop()
