"""The executors' side: reading splits and reducing them."""

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

__all__ = ["encode_tasks", "execute"]


def encode_tasks(tasks: Mapping[int, StreamTask]) -> str:
    """Encode the tasks for the executors, by the number of the source."""
    pickled: bytes = cloudpickle.dumps((str(Path.cwd()), dict(tasks)))  # type: ignore[no-untyped-call]
    return base64.b85encode(pickled).decode()


def execute(
    work: str, number: int, source: int, edges: tuple[int, int | None, int]
) -> pa.RecordBatch:
    """Read and reduce a split of a source; `number` is its position in the micro-batch."""
    split = Split(*edges)
    reduced = _reducer(work, source).reduce(_tasks(work)[source].source.part(split))
    return to_rows(number, source, split, reduced)


@lru_cache(maxsize=1)
def _tasks(work: str) -> Mapping[int, StreamTask]:
    """Decode the tasks; cached, since Spark reuses a Python worker for many tasks of a run."""
    decoded: tuple[str, Mapping[int, StreamTask]]
    decoded = cloudpickle.loads(base64.b85decode(work))
    folder, tasks = decoded
    with suppress(OSError):
        os.chdir(folder)  # relative paths are those of the driver
    return tasks


@lru_cache(maxsize=16)
def _reducer(work: str, source: int) -> SplitReducer | UnreadSplit:
    return _tasks(work)[source].reducer()
