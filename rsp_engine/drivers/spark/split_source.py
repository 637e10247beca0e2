"""The source of Structured Streaming: it reads the places that the driver plans.

The driver writes what comes next into a small file; the source, which Spark keeps in a process of
its own, makes an offset of it. Executors read a place each, and give out what it is reduced to, as
Arrow tables. What Spark writes down of offsets is of no use after the run: the driver keeps its own
log, and a run that goes on begins anew for Spark.
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
    """The number of a place in its batch, its source, its start, its end and its line."""

__all__ = ["SOURCE_NAME", "NextBatch", "SplitSource"]

SOURCE_NAME = "rsp-places"
TASK_BYTES = 2 << 20
MOST_PLACES = 8
"""So many places at most share a task: a batch has as many for each core."""


class NextBatch:
    """The file in which the driver says what comes next."""

    def __init__(self, folder: str | Path) -> None:
        self._path = Path(folder) / "next.json"

    def write(self, number: int, places: Sequence[Planned]) -> None:
        """Say what the batch with this number reads: places, each with the number of its source."""
        told = [[source, place.start, place.end, place.line] for source, place in places]
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({"seq": number, "places": json.dumps(told)}), encoding="utf-8")
        fresh.replace(self._path)

    def read(self) -> dict[str, Any]:
        """Return what was said, as an offset; something was, before anybody asks."""
        found: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
        return found


def tasks(places: Sequence[Numbered]) -> list[list[Numbered]]:
    """Put small neighbouring places together: a task costs as much as some hundred kB to read.

    >>> small, large = (0, 0, 0, 1000, 1), (1, 0, 1000, 9_000_000, 1)
    >>> [len(group) for group in tasks([small, small, large, small])]
    [2, 1, 1]
    """
    groups: list[list[Numbered]] = []
    size = 0
    for place in places:
        start, end = place[2], place[3]
        more = TASK_BYTES if end is None or start is None else end - start
        if not groups or size + more > TASK_BYTES or len(groups[-1]) == MOST_PLACES:
            groups.append([])
            size = 0
        groups[-1].append(place)
        size += more
    return groups


class SplitSource(DataSource):
    """What Spark knows under the name of the source.

    Its option `folder` says where the file is, and `work` what executors do, as `executing` writes
    it.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return SOURCE_NAME

    def schema(self) -> str:
        """Return the columns of reduced places."""
        from rsp_engine.drivers.spark.arrow_codec import ARROW_COLUMNS

        return ARROW_COLUMNS

    def streamReader(self, schema: StructType) -> PlaceReader:  # noqa: N802 - by Spark
        """Return what reads the stream of places."""
        return PlaceReader(self.options["folder"], self.options["work"])


class PlaceReader(DataSourceStreamReader):
    """Offsets are numbers of batches, with the places that each of them reads."""

    def __init__(self, folder: str, work: str) -> None:
        self._next = NextBatch(folder)
        self._work = work

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where a new run starts."""
        return {"seq": 0, "places": "[]"}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: ANN401, N802
        """Return what the driver has planned, if it is new."""
        planned = self._next.read()
        return start if planned["seq"] <= start["seq"] else planned

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the places of a batch; small ones share a task."""
        if start["seq"] == end["seq"]:
            return []
        places = [(n, *place) for n, place in enumerate(json.loads(end["places"]))]
        return [InputPartition(tuple(group)) for group in tasks(places)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield what each place of a partition is reduced to; executors call this."""
        from rsp_engine.drivers.spark.executor import execute

        for number, source, *edges in partition.value:
            yield execute(self._work, number, source, tuple(edges))

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the driver knows how far it is."""

    def stop(self) -> None:
        """Do nothing: nothing is held."""
