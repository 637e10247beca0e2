"""What executors do: read the places that they are given, and reduce them."""

from __future__ import annotations

import base64
import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import cloudpickle

from rsp_engine.drivers.spark.arrow_codec import to_rows
from rsp_engine.io.sources.splits import Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from rsp_engine.drivers.splits.split_reducer import SplitReducer
    from rsp_engine.drivers.splits.split_run import StreamTask, UnreadSplit

__all__ = ["encode_reduced", "execute"]


def encode_reduced(tasks: Mapping[int, StreamTask]) -> str:
    """Write what executors need to know, by the numbers of the sources."""
    pickled: bytes = cloudpickle.dumps((str(Path.cwd()), dict(tasks)))  # type: ignore[no-untyped-call]
    return base64.b85encode(pickled).decode()


def execute(
    work: str, number: int, source: int, edges: tuple[int, int | None, int]
) -> pa.RecordBatch:
    """Read a place of a source, the so-manieth of its batch, and return what it is reduced to."""
    place = Split(*edges)
    reduced = _reducer(work, source).reduce(_tasks(work)[source].source.part(place))
    return to_rows(number, source, place, reduced)


@lru_cache(maxsize=1)
def _tasks(work: str) -> Mapping[int, StreamTask]:
    """Read what is to be done; Spark keeps a worker of Python for many tasks of a run."""
    folder, tasks = cloudpickle.loads(base64.b85decode(work))
    with suppress(OSError):
        os.chdir(folder)  # a path means what it means on the driver
    found: Mapping[int, StreamTask] = tasks
    return found


@lru_cache(maxsize=16)
def _reducer(work: str, source: int) -> SplitReducer | UnreadSplit:
    return _tasks(work)[source].reducer()
