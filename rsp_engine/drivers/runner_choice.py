"""The choice of a runner: where `runner="auto"` runs the queries, and why there."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from rsp_engine.errors import DriverError
from rsp_engine.io.sources.extent import bytes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.io.sources import ElementSource
    from rsp_engine.options import RunOptions

__all__ = ["LARGE_INPUT", "RunnerChoice", "choose_runner"]

LARGE_INPUT = 200_000_000
"""The largest input that `auto` reads in this process, in bytes of files."""


class RunnerChoice(NamedTuple):
    """A runner, and the reason for it.

    >>> str(RunnerChoice("local", "the input is small"))
    'runner: local, since the input is small; --runner spark changes it'
    """

    runner: Literal["local", "spark"]
    reason: str

    def __str__(self) -> str:
        other = "local" if self.runner == "spark" else "spark"
        return f"runner: {self.runner}, since {self.reason}; --runner {other} changes it"


def choose_runner(options: RunOptions, sources: Sequence[ElementSource]) -> RunnerChoice:
    """Return the runner of a run: the one that the options name, or the one that `auto` takes."""
    if options.runner != "auto":
        return RunnerChoice(options.runner, "it is named")
    if options.master is not None:
        return RunnerChoice("spark", "a Spark master is named")
    if (saved := _saved_runner(options)) is not None:
        where = "on Spark" if saved == "spark" else "without Spark"
        return RunnerChoice(saved, f"the run of the checkpoint began {where}")
    return _by_size(bytes_of(sources))


def _saved_runner(options: RunOptions) -> Literal["local", "spark"] | None:
    if options.checkpoint is None:
        return None
    # Most runs have no checkpoint.
    from rsp_engine.drivers.checkpoint.store import saved_runner

    return saved_runner(Path(options.checkpoint))


def _by_size(size: int) -> RunnerChoice:
    most = f"{LARGE_INPUT // 1_000_000} MB"
    if size <= LARGE_INPUT:
        return RunnerChoice("local", f"the input files have at most {most} together")
    reason = f"the input files have {size // 1_000_000} MB together, more than {most}"
    missing = _missing_for_spark()
    if missing is None:
        return RunnerChoice("spark", reason)
    return RunnerChoice("local", f"{missing}, though {reason}")


def _missing_for_spark() -> str | None:
    """Return why Spark cannot start; None if it can."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed"
    from rsp_engine.drivers.spark.session import check_java

    try:
        check_java()
    except DriverError as error:
        return error.message
    return None
