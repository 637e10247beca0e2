"""The data source of Structured Streaming: it reads the splits that the driver plans.

The driver writes the plan of the next micro-batch to a small file. The source, which Spark runs in
a process of its own, turns it into an offset. Executors read the splits, and return them reduced,
as Arrow tables. Spark's offset log lives only as long as the run: the driver has its own log, and a
run that resumes is a new one for Spark.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from rsp_engine.io.sources.splits import Split

    Planned = tuple[int, Split]
    Numbered = tuple[int | None, ...]
    """The number of a split in its micro-batch, its source, its start, its end and its line."""

__all__ = ["SOURCE_NAME", "NextBatch", "SplitSource"]

SOURCE_NAME = "rsp-splits"
TASK_BYTES = 2 << 20
"""The most bytes of splits that share a task."""
MOST_SPLITS = 8
"""The most splits that share a task; a micro-batch has as many of a source for each core."""


class NextBatch:
    """The file with the plan of the next micro-batch."""

    def __init__(self, folder: str | Path) -> None:
        self._path = Path(folder) / "next.json"

    def write(self, number: int, splits: Sequence[Planned]) -> None:
        """Write the splits of a micro-batch, each with the number of its source."""
        rows = [[source, split.start, split.end, split.line] for source, split in splits]
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({"seq": number, "splits": json.dumps(rows)}), encoding="utf-8")
        fresh.replace(self._path)

    def read(self) -> dict[str, Any]:
        """Return the plan as an offset; the driver writes one before the source starts."""
        offset: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
        return offset


def tasks(splits: Sequence[Numbered]) -> list[list[Numbered]]:
    """Group small neighbouring splits: a task costs as much as reading some hundred kB.

    >>> small, large = (0, 0, 0, 1000, 1), (1, 0, 1000, 9_000_000, 1)
    >>> [len(group) for group in tasks([small, small, large, small])]
    [2, 1, 1]
    """
    groups: list[list[Numbered]] = []
    size = 0
    for split in splits:
        start, end = split[2], split[3]
        length = TASK_BYTES if end is None or start is None else end - start
        if not groups or size + length > TASK_BYTES or len(groups[-1]) == MOST_SPLITS:
            groups.append([])
            size = 0
        groups[-1].append(split)
        size += length
    return groups


class SplitSource(DataSource):
    """The data source as Spark sees it.

    Its option `folder` is the folder of `NextBatch`, and `work` the text of `encode_tasks`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return SOURCE_NAME

    def schema(self) -> str:
        """Return the columns of reduced splits."""
        from rsp_engine.drivers.spark.arrow_codec import ARROW_COLUMNS

        return ARROW_COLUMNS

    def streamReader(self, schema: StructType) -> SplitReader:  # noqa: N802 - by Spark
        """Return the reader of the splits."""
        return SplitReader(self.options["folder"], self.options["work"])


class SplitReader(DataSourceStreamReader):
    """A reader whose offsets are numbers of micro-batches, with the splits of each."""

    def __init__(self, folder: str, work: str) -> None:
        self._next = NextBatch(folder)
        self._work = work

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset before the first micro-batch."""
        return {"seq": 0, "splits": "[]"}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: ANN401, N802
        """Return what the driver has planned; the start again if nothing is new."""
        planned = self._next.read()
        return start if planned["seq"] <= start["seq"] else planned

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the splits of a micro-batch; small ones share a task."""
        if start["seq"] == end["seq"]:
            return []
        splits = [(n, *split) for n, split in enumerate(json.loads(end["splits"]))]
        return [InputPartition(tuple(group)) for group in tasks(splits)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield each split of a partition, reduced; executors call this."""
        from rsp_engine.drivers.spark.executor import execute

        for number, source, *edges in partition.value:
            yield execute(self._work, number, source, tuple(edges))

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the driver has its own commits."""

    def stop(self) -> None:
        """Do nothing: the reader has no resources."""
