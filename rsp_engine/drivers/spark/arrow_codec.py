"""The Arrow codec of reduced splits, which executors send to the driver as rows.

kind      content
split     the split that was read; in `text` why its elements must be taken one by one, in `texts`
          why it could not be read at the moment
segment   its first and its latest timestamp, and how many elements and triples it has
pane      a pane content of the segment before: the pane, and its table
stored    a pane content of the segment before that is in a file: the pane, and its manifest
letter    a dead letter, and the latest timestamp before it in its split
name      an element with blank nodes
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rsp_engine.drivers.panes.pane_table import decode_pane, encode_pane
from rsp_engine.drivers.panes.stored_pane import StoredPane, TablePlace
from rsp_engine.drivers.splits.segments import PaneContent, Segment, SplitLetter
from rsp_engine.drivers.splits.split_reducer import ReducedSplit
from rsp_engine.io.sources.splits import Split
from rsp_engine.model.streams import DeadLetter
from rsp_engine.model.windows import Pane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.evaluators.step import PutContent

__all__ = ["ARROW_SCHEMA", "from_rows", "to_rows"]

ARROW_SCHEMA = pa.schema(
    {
        "seq": pa.int64(),
        "kind": pa.string(),
        "step": pa.int32(),
        "scan": pa.int32(),
        "first": pa.int64(),
        "last": pa.int64(),
        "time": pa.int64(),
        "text": pa.string(),
        "data": pa.binary(),
        "texts": pa.list_(pa.string()),
        "times": pa.list_(pa.int64()),
    }
)

Row = dict[str, Any]


def to_rows(seq: int, source: int, split: Split, reduced: ReducedSplit) -> pa.RecordBatch:
    """Encode a reduced split as rows, in order; `seq` orders the splits of all sources."""
    rows = _rows(source, split, reduced)
    return pa.RecordBatch.from_pylist([{"seq": seq, **row} for row in rows], ARROW_SCHEMA)


def _rows(source: int, split: Split, reduced: ReducedSplit) -> Iterator[Row]:
    yield {
        "kind": "split",
        "text": reduced.trouble,
        "step": int(reduced.lasts),
        "scan": source,
        "first": split.start,
        "last": split.end,
        "texts": None if reduced.away is None else [reduced.away],
    }
    for time, name, count in reduced.names:
        yield {"kind": "name", "time": time, "text": name, "step": count}
    for item in reduced.items:
        if isinstance(item, SplitLetter):
            yield _letter_row(item)
            continue
        yield {
            "kind": "segment",
            "first": item.timestamp,
            "last": item.high,
            "step": item.elements,
            "time": item.triples,
            "scan": item.between_windows,
        }
        for content in item.pane_contents:
            yield {"kind": "pane", **_place(content), "data": encode_pane(content.content)}
        for stored in item.stored:
            yield {"kind": "stored", **_place(stored), **_manifest_row(stored.content)}


def _letter_row(item: SplitLetter) -> Row:
    letter = item.letter
    row = {"kind": "letter", "first": item.after, "time": letter.position, "data": letter.raw}
    return {**row, "texts": [letter.source, letter.reason]}


def _place(content: PaneContent[Any]) -> Row:
    pane = content.pane
    return {"step": content.step, "scan": content.scan, "first": pane.first, "last": pane.last}


def _manifest_row(stored: StoredPane) -> Row:
    places = [number for table in stored.tables for number in table]
    return {"texts": [stored.file], "times": places}


def from_rows(table: pa.Table) -> list[tuple[int, Split, ReducedSplit]]:
    """Decode the splits of a table in order, each with its source; the rows of one are adjacent."""
    numbers = table.column("seq").to_numpy()
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    slices = sorted((int(numbers[a]), a, b) for a, b in pairwise(starts) if a < b)
    return [_split(table.slice(a, b - a).combine_chunks().to_batches()[0]) for _, a, b in slices]


def _split(batch: pa.RecordBatch) -> tuple[int, Split, ReducedSplit]:
    first = batch.slice(0, 1).to_pylist()[0]
    split = Split(first["first"], first["last"])
    return first["scan"], split, _reduced(batch)


def _reduced(batch: pa.RecordBatch) -> ReducedSplit:
    plain = ["kind", "step", "scan", "first", "last", "time", "text"]
    columns = {name: batch.column(name).to_pylist() for name in plain}
    items: list[Segment | SplitLetter] = []
    names: list[tuple[int, str, int]] = []
    trouble, lasts, away = None, False, None
    pane_contents: list[PaneContent[PutContent]] = []
    stored: list[PaneContent[StoredPane]] = []
    for index, kind in enumerate(columns["kind"]):
        row = {name: column[index] for name, column in columns.items()}
        match kind:
            case "split":
                trouble, lasts = row["text"], bool(row["step"])
                [away] = batch.column("texts")[index].as_py() or [None]
            case "name":
                names.append((row["time"], row["text"], row["step"]))
            case "letter":
                source, reason = batch.column("texts")[index].as_py()
                raw = batch.column("data")[index].as_py()
                letter = DeadLetter(source, row["time"], raw, reason)
                items.append(SplitLetter(letter, row["first"]))
            case "segment":
                pane_contents, stored = [], []
                counts = row["step"], row["time"], row["scan"]
                items.append(Segment(row["first"], row["last"], *counts, pane_contents, stored))
            case _:
                place = row["step"], row["scan"], Pane(row["first"], row["last"])
                if kind == "stored":
                    stored.append(PaneContent(*place, _manifest(batch, index)))
                else:
                    data = batch.column("data")[index].as_py()
                    pane_contents.append(PaneContent(*place, decode_pane(data)))
    return ReducedSplit(items, names, trouble, lasts, away)


def _manifest(batch: pa.RecordBatch, index: int) -> StoredPane:
    [file] = batch.column("texts")[index].as_py()
    places = iter(batch.column("times")[index].as_py())
    width = len(TablePlace._fields)
    tables = zip(*[places] * width, strict=True)
    return StoredPane(file, tuple(TablePlace(*table) for table in tables))
